"""Compiled programs of JAX kept on disk from one command to the next, so that the second one starts sooner.

JAX does the keeping; it is told by environment variables, which must be set before it is imported and which worker
processes inherit. What is added here makes that safe to have on by default:

- A folder for each version, kind and number of processors: a program made for another processor is loaded with no more
  than a message, and can end with an illegal instruction. Home folders of clusters are seen by many kinds.
- An entry is only used if it has a checksum inside. JAX compresses with zlib, which has one, or with zstandard where it
  is installed, and then without one: a flipped bit would be run as machine code. Those entries are written again with
  a checksum when the command ends (`seal`), and removed at the next start if that did not happen (`tidy`). The mark
  of an entry that has been looked at is that its file is read-only, which a listing of the folder shows for nothing.
- JAX warns about a damaged entry, compiles afresh, and leaves the entry in place. Here it goes, without a word.
"""

from __future__ import annotations

import atexit
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

SWITCH = "SOLVABLE_COMPILE_CACHE"
OFF, ON = ("off", "0", "no", "false", "none"), ("", "on", "1", "yes", "true")
LIMIT = 200_000_000  # bytes; about 15000 entries, which take less than a tenth of a second to list

SUFFIX, PART = "-cache", ".part"  # the first is JAX's
ZSTD_MAGIC, ZSTD_CHECKSUM_BIT = b"\x28\xb5\x2f\xfd", 0x04
COMPLAINT = "Error (?:reading|writing) persistent compilation cache entry"
QUIET_WORKERS = [f"ignore:Error {verb} persistent compilation cache entry" for verb in ("reading", "writing")]


def enable() -> Path | None:
    """Turn the cache on for this process and those it starts; the folder, or None if there is to be none.

    Call it before JAX is imported. A folder that cannot be had means no cache, not an error.
    """
    environment = os.environ
    if "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in environment:
        return None
    if environment.get("JAX_ENABLE_COMPILATION_CACHE", "").lower() in OFF:
        return None
    try:
        folder = _own_folder()
        if folder is None:
            return None
        tidy(folder)
    except OSError:
        return None
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    # Everything is worth keeping: there are many small programs, and each costs more to compile than to load.
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    # The default writes the path of the folder into the key of each entry.
    environment.setdefault("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "none")
    # On processors with AVX-512, XLA reports each load as an error on the very machine that compiled it (openxla/xla
    # issue 44565): it takes preferences of the compiler for instructions. Real errors still come as exceptions.
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    environment["PYTHONWARNINGS"] = ",".join([*filter(None, [environment.get("PYTHONWARNINGS")]), *QUIET_WORKERS])
    _heal(folder)
    atexit.register(seal, folder)
    return folder


def cache_home() -> Path | None:
    """Where the system keeps what can be made again, or what `SOLVABLE_COMPILE_CACHE` says; None if it says off."""
    wanted = os.environ.get(SWITCH, "").strip()
    if wanted.lower() in OFF:
        return None
    if wanted.lower() not in ON:
        return Path(os.path.abspath(os.path.expanduser(wanted)))
    home, base = os.path.expanduser("~"), os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        pass
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.path.join(home, ".cache")
    return Path(base, "solvable") if os.path.isabs(base) else None


def _own_folder() -> Path | None:
    """The folder of this version on this processor, made if need be. One that others can write to is not used."""
    home = cache_home()
    if home is None:
        return None
    from hashlib import sha256
    from importlib.metadata import PackageNotFoundError, version

    try:
        jax = version("jax")
    except PackageNotFoundError:
        return None
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = home / f"jax-{jax}-python-{python}-{sha256(_processor().encode()).hexdigest()[:12]}"
    home.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return None
    if sys.platform != "win32":
        found = folder.stat()
        # What is in the folder is run, so nobody else may put anything there.
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
    return folder


def _processor() -> str:
    """A text that differs between processors on which compiled programs may differ."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as listing:
            first = listing.read(8192).split("\n\n")[0]
        names = r"vendor_id|cpu|cpu family|machine|model|model name|stepping|flags|Features|CPU \w+|isa|mmu|uarch"
        kind = "\n".join(line for line in first.splitlines() if re.match(rf"(?:{names})\s*:", line))
    except OSError:
        machine = getattr(os, "uname", None)
        kind = f"{machine().nodename} {machine().machine}" if machine else os.environ.get("PROCESSOR_IDENTIFIER", "")
    return f"{sys.platform} {count} {kind}"


def tidy(folder: Path) -> None:
    """Remove the entries of this folder that have no checksum and, above `LIMIT`, the oldest of all versions."""
    entries: list[tuple[float, int, str]] = []
    for version in _listing(folder.parent):
        if not (version.name.startswith("jax-") and version.is_dir(follow_symlinks=False)):
            continue
        for entry in _listing(Path(version.path)):
            try:
                found = entry.stat(follow_symlinks=False)
                if not entry.name.endswith((SUFFIX, SUFFIX + PART)) or not stat.S_ISREG(found.st_mode):
                    continue
                if version.name == folder.name and not _keep(Path(entry.path), found.st_mode):
                    continue
                entries.append((max(found.st_mtime, found.st_atime), found.st_size, entry.path))
            except OSError:
                continue  # another process has removed it
    size = sum(entry[1] for entry in entries)
    if size > LIMIT:
        for _, bytes_, path in sorted(entries):
            _remove(Path(path))
            size -= bytes_
            if size <= 0.8 * LIMIT:
                break


def seal(folder: Path) -> None:
    """Give a checksum to the new entries that have none. It is done on a copy, which then takes the entry's place."""
    for entry in _listing(folder):
        try:
            if not entry.name.endswith(SUFFIX) or not entry.stat().st_mode & stat.S_IWUSR:
                continue
            path = Path(entry.path)
            if not _has_checksum(path):
                compress, decompress = _zstd()
                part = path.with_name(path.name + PART)
                part.write_bytes(compress(decompress(path.read_bytes())))
                part.replace(path)
            path.chmod(stat.S_IRUSR)
        except Exception:
            # Half written by another process, or gone: the next start decides. A cache must never fail a command.
            continue


def _keep(path: Path, mode: int) -> bool:
    """Whether an entry of the folder in use may be loaded; if not it is removed."""
    if not mode & stat.S_IWUSR:
        return True
    if path.name.endswith(SUFFIX) and _has_checksum(path):
        path.chmod(stat.S_IRUSR)
        return True
    _remove(path)
    return False


def _has_checksum(path: Path) -> bool:
    """Whether the bytes are zlib's, or a zstandard frame whose header announces a checksum."""
    with path.open("rb") as file:
        head = file.read(5)
    if len(head) < 5:
        return False
    if head[:4] == ZSTD_MAGIC:
        return bool(head[4] & ZSTD_CHECKSUM_BIT)
    return head[0] & 0x0F == 8 and (256 * head[0] + head[1]) % 31 == 0


def _zstd() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    """Compression with a checksum, and decompression, from the module that JAX takes."""
    module: Any
    try:
        module = import_module("compression.zstd")  # Python 3.14
    except ImportError:
        module = import_module("zstandard")
        return module.ZstdCompressor(write_checksum=True).compress, module.ZstdDecompressor().decompress
    options = {module.CompressionParameter.checksum_flag: 1}
    return lambda data: module.compress(data, options=options), module.decompress


def _heal(folder: Path) -> None:
    """Where JAX warns that it cannot load an entry, remove it: JAX then writes the program it compiles instead."""
    show = warnings.showwarning

    def showwarning(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not re.match(COMPLAINT, str(message)):
            show(message, category, *rest, **more)
            return
        named = re.search(r"entry for '([\w.<>-]+)': ", str(message))
        for entry in _listing(folder):
            if named and entry.name.startswith(f"{named[1]}-") and entry.name.endswith(SUFFIX):
                _remove(Path(entry.path))

    warnings.showwarning = showwarning
    warnings.filterwarnings("always", message=COMPLAINT)


def _listing(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _remove(path: Path) -> None:
    try:
        if sys.platform == "win32":
            path.chmod(stat.S_IWRITE)
        path.unlink()
    except OSError:
        pass
