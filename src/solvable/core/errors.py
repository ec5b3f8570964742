"""The errors a user of the library can meet, each saying what to do next."""

from __future__ import annotations

from typing import Any

_LONGEST = 120
"""The most characters of a bad value that a message shows."""


class SolvableError(Exception):
    """Base class of every error that the library raises on purpose."""


class NotSolvable(SolvableError, NotImplementedError):
    """No theory is registered for this pair of model and learner."""


class NotSimulable(SolvableError, NotImplementedError):
    """No algorithm is registered for this pair of model and learner."""


class ComputationError(SolvableError, RuntimeError):
    """What was asked is meaningful, but computing it did not succeed."""


class ConvergenceError(ComputationError):
    """A scalar prediction did not succeed; the message says why and what to try.

    `prediction` holds the values with their status, where there are any: None if the theory itself raised.
    """

    prediction: Any = None


class TimeLimitError(ComputationError):
    """A computation took longer than the time it was given."""


class TargetError(SolvableError, ValueError):
    """A target's text or function cannot be used; `column` (from 1) points into the text where known."""

    def __init__(self, message: str, text: str | None = None, column: int | None = None):
        self.reason = message
        self.text = text
        self.column = column
        if text is not None and column is not None:
            message = f"{message} (column {column})\n  {text}\n  {' ' * (column - 1)}^"
        super().__init__(message)


def checked_variance(noise: Any) -> Any:
    """`noise` as a float, or a `ValueError` unless it is a finite number, zero or positive."""
    from solvable.core.checks import real_number  # which raises the errors of this module

    return real_number("noise", noise, "a variance: a finite number, zero or positive", lambda x: x >= 0)


def bad_parameter(name: str, got: object, takes: str) -> ValueError:
    """The `ValueError` for a bad parameter: its name, what it got and what it takes."""
    return ValueError(f"{name} = {_shown(got)} is not allowed: {name} must be {takes}.")


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # an integer of thousands of digits has none
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
