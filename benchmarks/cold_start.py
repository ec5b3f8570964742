"""How long a fresh process takes: the import, the help text (CPU time), and the first diagnosis."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

COMMANDS = {
    "import solvable": ["-c", "import solvable"],
    "solvable --help": ["-m", "solvable", "--help"],
    'solvable diagnose "abs(z)"': ["-m", "solvable", "diagnose", "abs(z)"],
    'solvable predict "abs(z)" --alpha 0.8': ["-m", "solvable", "predict", "abs(z)", "--alpha", "0.8"],
    'solvable predict "abs(z)" --noise 0.1': [
        "-m",
        "solvable",
        "predict",
        "abs(z)",
        "--alpha",
        "0.8",
        "--noise",
        "0.1",
    ],
}


def main() -> None:
    for name, arguments in COMMANDS.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{name}: {wall:.2f} s, {cpu:.2f} s of CPU")


if __name__ == "__main__":
    main()
