"""How long a fresh process takes: the import, the help text, and commands with an empty and a filled compile cache.

Each command runs in a temporary cache folder: first empty (cold), then filled (warm). The CPU time is less sensitive
than the wall time to what else the machine is doing.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

COMMANDS = (
    ["diagnose", "abs(z)"],
    ["predict", "abs(z)", "--alpha", "0.8"],
    ["predict", "abs(z)", "--alpha", "0.8", "--noise", "0.1"],
    ["predict", "sign(z1*z2)", "--alpha", "3"],
    ["thresholds", "abs(z)"],
)
REPEATS = 2  # of the warm run; the fastest counts


def seconds(arguments: list[str], folder: str) -> tuple[float, float]:
    """Wall and CPU time of a fresh interpreter."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | {"SOLVABLE_COMPILE_CACHE": folder}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    print(f"{'seconds, wall (CPU)':50} {'cold':>14} {'warm':>14} {'cold/warm':>14}")
    for name, arguments in {
        "import solvable": ["-c", "import solvable"],
        "import solvable.models": ["-c", "import solvable.models"],
        "solvable --help": ["-m", "solvable", "--help"],
    }.items():
        wall, cpu = min(seconds(arguments, "off") for _ in range(REPEATS))
        print(f"{name:50} {'':14} {wall:6.2f} ({cpu:5.2f})", flush=True)
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["-m", "solvable", *command]
            cold, cold_cpu = seconds(arguments, folder)
            warm, warm_cpu = min(seconds(arguments, folder) for _ in range(REPEATS))
        name = "solvable " + " ".join(f'"{word}"' if "(" in word else word for word in command)
        ratios = f"{cold / warm:6.2f} ({cold_cpu / warm_cpu:5.2f})"
        print(f"{name:50} {cold:6.2f} ({cold_cpu:5.2f}) {warm:6.2f} ({warm_cpu:5.2f}) {ratios}", flush=True)


if __name__ == "__main__":
    main()
