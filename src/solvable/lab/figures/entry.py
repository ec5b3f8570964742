"""What a figure of the literature is to us: what was published, what we compute, what we simulate, and the picture."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solvable.core.bibliography import Publication as Source
from solvable.lab.figures.estimators import Estimate

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from solvable.lab.curve import Curve

EXACT_TOLERANCE = 1e-5
"""How near, relatively, a computed value comes to a published closed form."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is spent on an entry: `quick` is under a minute, otherwise the paper's sizes as far as feasible."""

    quick: bool = False
    executor: Executor | None = None
    progress: bool = True

    def pick(self, quick: Any, full: Any) -> Any:
        """One of two settings."""
        return quick if self.quick else full


@dataclasses.dataclass(frozen=True)
class Material:
    """What an entry computed and simulated: numbers by name, curves by name, and the sizes and seeds of the runs."""

    values: Mapping[Any, Any]
    curves: Mapping[str, Curve] = dataclasses.field(default_factory=dict)
    sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Claim:
    """One published number and how we get it.

    `published` is the number as printed. Its `tolerance` is half a unit of the last printed digit; a closed form
    (`exact`, with `published` its text, such as "pi^2/4") is met to 1e-5. `compute` and `simulate` take the entry's
    material. `known_wrong` is a sentence that says why a published number is not met, with the evidence. A number that
    belongs to the figure but that we have not seen in print has neither `published` nor `source`. `second_hand` marks a
    number that is quoted from notes or other works: we have not checked it in the source itself. What only runs tell,
    since no theory of it is computed, has None for `compute`.
    """

    name: str
    published: str | None
    source: Source | None
    compute: Callable[[Material], float] | None
    simulate: Callable[[Material], Estimate] | None = None
    exact: float | None = None
    tolerance: float | None = None
    known_wrong: str | None = None
    second_hand: bool = False

    @property
    def value(self) -> float | None:
        """The published number."""
        if self.exact is not None or self.published is None:
            return self.exact
        return float(self.published)

    @property
    def decimals(self) -> int:
        """How many digits after the point were printed."""
        return len((self.published or "").partition(".")[2])

    @property
    def allowed(self) -> float:
        """How far a computed value may be from the published one."""
        if self.tolerance is not None:
            return self.tolerance
        if self.exact is not None:
            return EXACT_TOLERANCE * max(1.0, abs(self.exact)) if math.isfinite(self.exact) else 0.0
        return 0.5 * 10.0**-self.decimals


@dataclasses.dataclass(frozen=True)
class Entry:
    """A figure or a set of headline numbers, with the id that `solvable reproduce` takes."""

    id: str
    title: str
    sources: Sequence[Source]
    shows: str
    claims: Sequence[Claim]
    gather: Callable[[Effort], Material]
    draw: Callable[[Material, Sequence[Any]], Figure]
    """Takes the material and the verdicts of the claims, in their order."""

    @property
    def credit(self) -> str:
        """Authors and year of the sources, in one line."""
        return "; ".join(source.short for source in self.sources)
