"""Laws of eigenvalues as text, read and written: what command lines and files give, and what is stored beside results.

The forms are `marchenko-pastur:RHO`, `semicircle`, `semicircle:SCALE,CENTRE`, `power-law:GAMMA`,
`power-law:GAMMA,SIZE`, `discrete:V1,V2,..` with equal weights and `discrete:V1,V2,..@W1,W2,..`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.checks import real_array
from solvable.core.errors import bad_parameter
from solvable.spectra.discrete import Discrete, PowerLaw
from solvable.spectra.law import Law
from solvable.spectra.semicircle import Semicircle
from solvable.spectra.wishart import MarchenkoPastur

TAKES = (
    "a law of eigenvalues, a list of them, or a text: 'marchenko-pastur:RHO', 'semicircle', 'semicircle:SCALE,CENTRE', "
    "'power-law:GAMMA', 'power-law:GAMMA,SIZE', 'discrete:-1,1' or, with weights, 'discrete:-1,0,1@0.1,0.8,0.1'"
)
_MOST_WRITTEN = 12
"""Point masses up to which a law is written in full."""


def as_law(value: Any) -> Law:
    """A law from a law, a list of eigenvalues, or one of the texts of this module.

    Anything else is a `ValueError` that names `spectrum`, the parameter that such values are given as.
    """
    if isinstance(value, Law):
        return value
    try:
        return _read(value) if isinstance(value, str) else Discrete(_eigenvalues(value))
    except (ValueError, TypeError, OverflowError) as error:
        why = f" ({error})" if " is not allowed: " in str(error) else ""
        raise ValueError(f"{bad_parameter('spectrum', value, TAKES)}{why}") from None


def law_text(law: Law) -> str:
    """The text of a law, which `as_law` reads back where there is one; else a short description."""
    if isinstance(law, MarchenkoPastur):
        return f"marchenko-pastur:{_number(law.rho)}"
    if isinstance(law, Semicircle):
        scale, centre = _number(law.scale), _number(law.centre)
        return f"semicircle:{scale},{centre}" if centre != "0" else "semicircle" + (f":{scale}" if scale != "1" else "")
    if isinstance(law, PowerLaw):
        return f"power-law:{_number(law.gamma)},{len(law.values)}"
    if isinstance(law, Discrete):
        return _discrete_text(law)
    return f"a {type(law).__name__} law on [{_number(law.ends[0])}, {_number(law.ends[1])}]"


def _discrete_text(law: Discrete) -> str:
    count = len(law.values)
    if count > _MOST_WRITTEN:
        values, weights = np.asarray(law.values), np.asarray(law.weights)
        return f"{count} eigenvalues from {values[0]:g} to {values[-1]:g}, mean square {weights @ values**2:g}"
    values = ",".join(map(_number, law.values))
    equal = all(weight == law.weights[0] for weight in law.weights)
    return f"discrete:{values}" + ("" if equal else "@" + ",".join(map(_number, law.weights)))


def _number(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    try:
        number = float(value)
    except TypeError:  # a value that JAX is tracing has none
        return str(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _read(text: str) -> Law:
    name, _, rest = text.strip().lower().replace("_", "-").partition(":")
    if name == "discrete":
        values, at, weights = rest.partition("@")
        return Discrete(_numbers(values), _numbers(weights) if at else None)
    if name not in _NAMED:
        raise ValueError
    build, fewest, most = _NAMED[name]
    numbers = _numbers(rest) if rest.strip() else []
    if not fewest <= len(numbers) <= most:
        raise ValueError
    return build(*numbers)


def _power_law(gamma: float, size: float | None = None) -> PowerLaw:
    if size is None:
        return PowerLaw(gamma)
    if not size.is_integer():
        raise bad_parameter("size", size, "a positive number of eigenvalues")
    return PowerLaw(gamma, int(size))


_NAMED: dict[str, tuple[Callable[..., Law], int, int]] = {
    "marchenko-pastur": (MarchenkoPastur, 1, 1),
    "semicircle": (Semicircle, 0, 2),
    "power-law": (_power_law, 1, 2),
}
"""What each name builds, and how many numbers it takes, at least and at most."""


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _eigenvalues(value: Any) -> np.ndarray:
    try:
        return real_array("spectrum", value)
    except ValueError:
        raise TypeError from None
