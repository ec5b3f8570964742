"""The cache of compiled programs: filled once, never a different number, never a word, and never without the switch."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from solvable.cli import cache

SRC = str(Path(__file__).parents[2] / "src")
PREDICT = ("predict", "z", "--noise", "0.3", "--alpha", "0.8", "--json")
# A command's way to its programs, without what the package loads and compiles.
PROGRAM = """
from solvable.cli.cache import enable
enable()
import jax, jax.numpy as jnp
for function in (jnp.cumsum, jnp.sort, jnp.flip, jnp.sin):
    print(jax.jit(function)(jnp.arange(8.0)))
"""
# What a fresh process has after `enable`, without the cost of loading JAX.
REPORT = """
import json, os, sys
from solvable.cli.cache import enable
folder = enable()
kept = {name: value for name, value in os.environ.items() if name.startswith(("JAX_", "TF_", "PYTHONWARNINGS"))}
print(json.dumps({"folder": folder and str(folder), "environment": kept, "jax": "jax" in sys.modules}))
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Of a process that knows no cache but the one below `home`."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "TF_", "SOLVABLE_", "PYTHONWARNINGS"))}
    path = os.pathsep.join(filter(None, [SRC, os.environ.get("PYTHONPATH")]))
    return plain | {"XDG_CACHE_HOME": str(home), "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"} | more


def start(home: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, *arguments] if arguments[0] == "-c" else [sys.executable, "-m", "solvable", *arguments]
    return subprocess.Popen(
        command, env=environment(home, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output(process: subprocess.Popen[str]) -> str:
    """What it printed; it must end well and say nothing on standard error."""
    out, err = process.communicate(timeout=1800)
    assert (process.returncode, err) == (0, "")
    return out


def report(home: Path, **more: str) -> dict[str, Any]:
    return json.loads(output(start(home, "-c", REPORT, **more)))


def entries(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def write(path: str, content: bytes) -> None:
    """Change an entry behind the back of its read-only mark, as a bad disk would."""
    os.chmod(path, 0o600)
    Path(path).write_bytes(content)
    os.chmod(path, 0o400)


class Filled(NamedTuple):
    """A folder filled by one command, what the command printed, and the entries."""

    command: tuple[str, ...]
    home: Path
    printed: str
    first: dict[str, bytes]


@pytest.fixture(scope="module", params=[("-c", PROGRAM), pytest.param(PREDICT, marks=pytest.mark.slow)])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    home = tmp_path_factory.mktemp("home")
    return Filled(request.param, home, output(start(home, *request.param)), entries(home))


def test_second_run_loads_what_the_first_has_written(filled: Filled) -> None:
    command, home, printed, first = filled
    assert len(first) >= 3 and all(name.endswith("-cache") for name in first)
    assert all(not os.stat(name).st_mode & stat.S_IWUSR for name in first)
    assert output(start(home, *command)) == printed
    assert entries(home) == first


def test_commands_have_it_unless_told(tmp_path: Path) -> None:
    output(start(tmp_path, "--no-compile-cache", "status", "--help"))
    assert list(tmp_path.iterdir()) == []
    output(start(tmp_path, "status", "--help"))
    assert [folder.name[:4] for folder in (tmp_path / "solvable").iterdir()] == ["jax-"]


@pytest.mark.slow
def test_no_cache_gives_the_same_output(tmp_path: Path) -> None:
    printed = output(start(tmp_path / "without", "--no-compile-cache", *PREDICT))
    assert not (tmp_path / "without").exists() and json.loads(printed)["converged"] is True
    assert output(start(tmp_path, *PREDICT)) == printed


def test_damaged_entries_change_nothing_and_are_replaced(filled: Filled) -> None:
    """Every other entry has two bits flipped, the rest are cut."""
    command, home, printed, first = filled
    for i, (name, content) in enumerate(first.items()):
        if i % 2:
            for offset in (0.02 + 0.9 * i / len(first), 0.5):
                at = int(offset * len(content))
                content = content[:at] + bytes([content[at] ^ 1 << i % 8]) + content[at + 1 :]
        write(name, content if i % 2 else content[: len(content) * i // len(first)])
    broken = entries(home)
    assert output(start(home, *command)) == printed
    repaired = entries(home)
    assert repaired.keys() == first.keys()
    assert all(repaired[name] != broken[name] for name in first)


def test_environment_of_a_process_and_its_workers(tmp_path: Path) -> None:
    found = report(tmp_path, PYTHONWARNINGS="default")
    folder = found["folder"]
    assert Path(folder).parent == tmp_path / "solvable" and Path(folder).name.startswith("jax-")
    assert not found["jax"]
    assert found["environment"]["JAX_COMPILATION_CACHE_DIR"] == folder
    assert found["environment"]["PYTHONWARNINGS"].startswith("default,ignore:Error reading persistent")
    if sys.platform != "win32":
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


@pytest.mark.parametrize("word", ["off", "0", "no", "False"])
def test_switched_off_by_the_environment(tmp_path: Path, word: str) -> None:
    assert report(tmp_path, SOLVABLE_COMPILE_CACHE=word) == {"folder": None, "environment": {}, "jax": False}
    assert list(tmp_path.iterdir()) == []


def test_another_folder(tmp_path: Path) -> None:
    found = report(tmp_path / "unused", SOLVABLE_COMPILE_CACHE=str(tmp_path / "mine"))
    assert Path(found["folder"]).parent == tmp_path / "mine"
    assert not (tmp_path / "unused").exists()


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/solvable"), ("darwin", "Library/Caches/solvable"), ("win32", "AppData/Local/solvable")],
)
def test_the_folder_of_each_system(platform: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", cache.SWITCH):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.cache_home() == Path.home() / expected
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.cache_home() == Path.home() / expected
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath("/somewhere"))
    assert cache.cache_home() == Path(os.path.abspath("/somewhere"), "solvable")


def test_the_users_own_settings_of_jax_stay(tmp_path: Path) -> None:
    own = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "own")}
    assert report(tmp_path, **own) == {"folder": None, "environment": own, "jax": False}
    never = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    assert report(tmp_path, **never) == {"folder": None, "environment": never, "jax": False}
    assert list(tmp_path.iterdir()) == []
    kept = report(tmp_path, TF_CPP_MIN_LOG_LEVEL="0")["environment"]
    assert kept["TF_CPP_MIN_LOG_LEVEL"] == "0"


@pytest.mark.slow
def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert report(blocked) == {"folder": None, "environment": {}, "jax": False}
    assert "y = z" in output(start(blocked, "diagnose", "z"))


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    folder = report(tmp_path)["folder"]
    os.chmod(folder, 0o777)
    assert report(tmp_path) == {"folder": None, "environment": {}, "jax": False}


@pytest.mark.parametrize("command", ["--version", pytest.param("models", marks=pytest.mark.slow)])
def test_library_and_run_do_not_enable_it(tmp_path: Path, command: str) -> None:
    code = """
import os, sys
from solvable.cli.app import run
import solvable
assert run(sys.argv[1:]) == 0
import jax
assert jax.config.jax_compilation_cache_dir is None
assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
"""
    output(start(tmp_path, "-c", code, command))
    assert list(tmp_path.iterdir()) == []


def test_entries_without_checksum_are_removed_at_the_start(tmp_path: Path) -> None:
    import zlib

    folder = tmp_path / "jax-1"
    folder.mkdir()
    plain, checked = cache.ZSTD_MAGIC + b"\x60" + b"data", cache.ZSTD_MAGIC + b"\x64" + b"data"
    contents = {"a": zlib.compress(b"data"), "b": plain, "c": checked, "d": b"", "e": b"noise noise"}
    for name, content in contents.items():
        (folder / f"{name}-cache").write_bytes(content)
    (folder / "c-cache.part").write_bytes(checked)
    (folder / "other").write_bytes(b"")
    cache.tidy(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["a-cache", "c-cache", "other"]
    assert not (folder / "a-cache").stat().st_mode & stat.S_IWUSR


def test_sealing_adds_the_checksum_and_leaves_what_it_cannot_read(tmp_path: Path, monkeypatch: Any) -> None:
    plain, checked = cache.ZSTD_MAGIC + b"\x60", cache.ZSTD_MAGIC + b"\x64"

    def decompress(content: bytes) -> bytes:
        if content[5:] != b"data":
            raise ValueError("half written")
        return content[5:]

    monkeypatch.setattr(cache, "_zstd", lambda: (lambda data: checked + data, decompress))
    (tmp_path / "a-cache").write_bytes(plain + b"data")
    (tmp_path / "b-cache").write_bytes(plain + b"da")
    cache.seal(tmp_path)
    assert entries(tmp_path) == {str(tmp_path / "a-cache"): checked + b"data", str(tmp_path / "b-cache"): plain + b"da"}
    assert [bool(os.stat(tmp_path / name).st_mode & stat.S_IWUSR) for name in ("a-cache", "b-cache")] == [False, True]


def test_zstandard_detects_damage_once_sealed(tmp_path: Path) -> None:
    pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    compress, decompress = cache._zstd()
    content = compress(bytes(range(256)) * 40)
    assert content[4] & cache.ZSTD_CHECKSUM_BIT
    with pytest.raises(Exception, match="checksum|orrupt|decompress"):
        decompress(content[:-1] + bytes([content[-1] ^ 1]))


def test_oldest_entries_go_above_the_limit(tmp_path: Path, monkeypatch: Any) -> None:
    import zlib

    content = zlib.compress(b"data")
    monkeypatch.setattr(cache, "LIMIT", 10 * len(content))
    for folder, count in (("jax-old", 6), ("jax-new", 6), ("else", 1)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            path = tmp_path / folder / f"{i}-cache"
            path.write_bytes(content)
            age = 1000 * (folder == "jax-old") + i
            os.utime(path, (time.time() - age, time.time() - age))
    cache.tidy(tmp_path / "jax-new")
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*-cache"))
    assert left == ["else/0-cache", *(f"jax-new/{i}-cache" for i in range(6)), "jax-old/0-cache", "jax-old/1-cache"]


@pytest.mark.slow
def test_two_processes_at_once_and_one_that_is_killed(tmp_path: Path) -> None:
    printed = output(start(tmp_path / "first", *PREDICT))
    tmp_path /= "second"
    killed = start(tmp_path, *PREDICT)
    while not entries(tmp_path) and killed.poll() is None:
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    killed.communicate()
    for _ in range(2):
        assert [output(p) for p in [start(tmp_path, *PREDICT) for _ in range(2)]] == [printed, printed]
    before = entries(tmp_path)
    assert output(start(tmp_path, *PREDICT)) == printed
    assert entries(tmp_path) == before


@pytest.mark.slow
def test_workers_share_the_folder(tmp_path: Path) -> None:
    command = ("curve", "abs(z)", "--alpha", "0.5,1", "--learner", "amp", "--d", "100", "--seeds", "2", "--json")
    alone = output(start(tmp_path, "--no-compile-cache", *command))
    assert output(start(tmp_path, *command, "--workers", "2")) == alone
    before = entries(tmp_path)
    assert before
    assert output(start(tmp_path, *command, "--workers", "2")) == alone
    assert entries(tmp_path) == before
