"""The axes of a model: the quantities the verbs take by keyword, such as samples per dimension."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis: its `name` is the keyword of the verbs, its `label` what plots write beside it, such as `"n/d"`.

    Values are finite numbers from `least` to `most`, integers if `whole`. `closed` says which of the two bounds are
    values themselves: `"both"`, `"left"`, `"right"` or `"neither"`. With `infinite` plus infinity is a value too: a
    limit that theory knows.
    """

    name: str
    label: str = ""
    whole: bool = False
    least: float = 0.0
    most: float = math.inf
    closed: str = "both"
    infinite: bool = False

    def __post_init__(self):
        for name in ("least", "most"):
            bound = getattr(self, name)
            if type(bound) is not float or math.isnan(bound):  # a float may be infinite
                from solvable.core.checks import real_number  # which knows the models, and so the axes

                real_number(name, bound, "a number, or infinite")
        if not self.name.isidentifier():
            raise bad_parameter("name", self.name, "a keyword that Python takes, such as 'alpha'")
        if self.closed not in ("both", "left", "right", "neither"):
            raise bad_parameter("closed", self.closed, "'both', 'left', 'right' or 'neither'")

    @property
    def takes(self) -> str:
        """The values it takes, in words."""
        low = "at least" if self.closed in ("both", "left") else "above"
        high = "at most" if self.closed in ("both", "right") else "below"
        above = f"{low} {self.least:g}" if self.least > -math.inf else ""
        below = f"{high} {self.most:g}" if self.most < math.inf else ""
        if (self.whole, above, below) == (False, "at least 0", ""):
            return "not negative, or infinite" if self.infinite else "finite and not negative"
        kind = "a whole number" if self.whole else "a finite number"
        bounds = " and ".join(filter(None, (above, below)))
        text = f"{kind} {'of ' if bounds.startswith('at') else ''}{bounds}".rstrip()
        return f"{text}, or infinite" if self.infinite else text

    def check(self, values: Any) -> None:
        """Refuse values outside the bounds, or between integers, with a `ValueError` naming the axis."""
        array = np.asarray(values, dtype=np.float64)
        low = array >= self.least if self.closed in ("both", "left") else array > self.least
        high = array <= self.most if self.closed in ("both", "right") else array < self.most
        good = np.isfinite(array) & low & high
        if self.whole:
            good &= array == np.round(array)
        if self.infinite:
            good |= array == np.inf
        if not np.all(good):
            raise bad_parameter(self.name, float(array[~good].flat[0]), self.takes)


def as_axes(axes: Any) -> tuple[Axis, ...]:
    """The axes of a model, each an `Axis` or the name of one that takes any number that is not negative."""
    found = tuple(axis if isinstance(axis, Axis) else Axis(axis) for axis in axes)
    names = [axis.name for axis in found]
    if len(set(names)) < len(names):
        raise bad_parameter("axes", names, "different names")
    return found
