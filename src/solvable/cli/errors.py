"""How the command line fails: one line on standard error, exit code 2 for bad input and 1 for a failed computation.

A full disk has a code of its own, 3: what was finished is kept, and the same command goes on once there is room.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BAD_INPUT, FAILED, FULL, INTERRUPTED = 2, 1, 3, 130


def guarded(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code. `SOLVABLE_DEBUG=1` lets exceptions through with their traceback."""
    try:
        with _plain_warnings():
            code = command()
        if code == INTERRUPTED:  # how other versions of the argument parser pass on an interruption
            return _say("interrupted", INTERRUPTED)
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone (`| head`). Give the interpreter a stream it can close without complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if os.environ.get("SOLVABLE_DEBUG"):
            raise
        return _say(*explain(error))


def explain(error: Exception) -> tuple[str, int]:
    """One line that says what is wrong, and the exit code."""
    if type(error).__name__ == "Abort":  # how some versions of the argument parser pass on an interruption
        return "interrupted", INTERRUPTED
    parser_message = getattr(error, "format_message", None)
    if parser_message is not None:  # the argument parser's own errors
        message = str(parser_message())
        if message.startswith("No such option: -") and not message.startswith("No such option: --"):
            message += " (a target that begins with a minus sign goes last, after --)"
        return message, BAD_INPUT

    from solvable.core.errors import ComputationError, SolvableError, TargetError

    if isinstance(error, ComputationError):
        return str(error), FAILED
    if isinstance(error, TargetError):
        where = f" at column {error.column} of {error.text!r}" if error.column is not None else ""
        return f"{error.reason}{where}", BAD_INPUT
    if isinstance(error, KeyError):
        return str(error.args[0]) if error.args else "missing key", BAD_INPUT
    if isinstance(error, OSError) and _is_full(error):
        where = f": {error.filename} could not be written" if error.filename else ""
        return f"the disk is full{where} ({error.strerror or error}); make room and run the command again", FULL
    if isinstance(error, (SolvableError, ValueError, OSError)):
        return str(error), BAD_INPUT
    return f"internal error: {type(error).__name__}: {error} (SOLVABLE_DEBUG=1 shows where)", FAILED


def _is_full(error: OSError) -> bool:
    """Whether there is no room left, on the disk or in what a user may have of it; HDF5 says so in its text."""
    return error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)) or os.strerror(errno.ENOSPC) in str(
        error
    )


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show a warning as one line, without the place in our code that it comes from."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *place, **more: f"solvable: {' '.join(str(message).split())}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _say(message: str, code: int) -> int:
    print(f"solvable: {' '.join(message.split())}", file=sys.stderr)
    return code
