"""The verdict on a published number, in one line."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from solvable.lab.figures.entry import Claim, Material
from solvable.lab.figures.estimators import Estimate

STANDARD_ERRORS = 3.0
"""A simulated value agrees with the computed one within this many of its standard errors, if those are known well."""

AGREES = "agrees"
KNOWN = "differs, as documented"
DIFFERS = "differs"
SIMULATION_DIFFERS = "simulation differs"
COMPUTED = "computed only"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim with what we computed and simulated, and what follows."""

    claim: Claim
    computed: float
    simulated: Estimate | None = None

    @property
    def word(self) -> str:
        """`agrees`; `differs` where the computed value is not the published one; `simulation differs`.

        A published number that is known to be wrong `differs, as documented`, as long as it does differ. Without a
        published number or a simulated one there is nothing to agree with: `computed only`.
        """
        published = self.claim.value
        if published is None and self.simulated is None:
            return COMPUTED
        if published is not None and not _near(self.computed, published, self.claim.allowed):
            return KNOWN if self.claim.known_wrong else DIFFERS
        return AGREES if self.simulation_agrees else SIMULATION_DIFFERS

    @property
    def simulation_agrees(self) -> bool:
        """Whether the simulated value, if there is one, is within three standard errors of the computed one.

        If the error comes from few runs it is uncertain itself, and more of it is allowed (see `Estimate.bound`).
        """
        if self.simulated is None or not math.isfinite(self.simulated.error):
            return True
        return _near(self.simulated.value, self.computed, self.simulated.bound(STANDARD_ERRORS))

    @property
    def expected(self) -> bool:
        """Whether the computed value is the published one, or differs from it as documented."""
        return self.word != DIFFERS

    def line(self, entry: str, alone: bool = False) -> str:
        """The verdict in one line; `alone` leaves out the claim's name."""
        parts = [published_text(self.claim), f"computed {computed_text(self)}"]
        if self.simulated is not None:
            parts.append(f"simulated {simulated_text(self.simulated)}")
        word = self.word
        if word == KNOWN and not self.simulation_agrees:
            word += f"; {SIMULATION_DIFFERS}"
        return f"{entry if alone else f'{entry}, {self.claim.name}'}: {', '.join(parts)}: {word}"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "name": self.claim.name,
            "published": self.claim.value,
            "published_text": self.claim.published,
            "tolerance": self.claim.allowed,
            "source": None if self.claim.source is None else str(self.claim.source),
            "second_hand": self.claim.second_hand,
            "computed": self.computed,
            "simulated": None if self.simulated is None else self.simulated.value,
            "standard_error": None if self.simulated is None else self.simulated.error,
            "verdict": self.word,
            "expected": self.expected,
            "note": self.claim.known_wrong if self.word == KNOWN else None,
        }


def judge(claim: Claim, material: Material) -> Verdict:
    """Compute and simulate what was published."""
    simulated = None if claim.simulate is None else claim.simulate(material)
    return Verdict(claim, float(claim.compute(material)), simulated)


def published_text(claim: Claim) -> str:
    """What was published, a closed form with its value."""
    if claim.published is None:
        return "not published"
    number = claim.exact is None or not math.isfinite(claim.exact) or _is_number(claim.published)
    return f"published {claim.published}" + ("" if number else f" = {claim.exact:.4g}")


def computed_text(verdict: Verdict) -> str:
    """The computed value: two digits more than were published; six for a closed form."""
    claim, value = verdict.claim, verdict.computed
    if not math.isfinite(value) or value == round(value):
        return f"{value:g}"
    if claim.published is None or claim.exact is not None:
        return f"{value:#.6g}"
    return f"{value:.{claim.decimals + 2}f}"


def simulated_text(simulated: Estimate) -> str:
    """The simulated value with its standard error in parentheses."""
    if not (math.isfinite(simulated.value) and math.isfinite(simulated.error)):
        return "undetermined"
    return with_uncertainty(simulated.value, simulated.error)


def with_uncertainty(value: float, error: float) -> str:
    """A value with its standard error in parentheses, in units of the last digit: 2.49(3), 0.1234(12), 130(20).

    One digit of the error is given, two where it begins with 1.
    """
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{value:.6g}({error:g})"
    place = math.floor(math.log10(error))
    if round(error / 10.0**place) == 10:  # 0.0098 is 0.010
        place += 1
    if round(error / 10.0 ** (place - 1)) < 20:
        place -= 1
    units = round(error / 10.0**place)
    if place >= 0:
        return f"{round(value / 10**place) * 10**place}({units * 10**place})"
    return f"{value:.{-place}f}({units})"


def _near(one: float, other: float, distance: float) -> bool:
    """Whether two numbers, possibly infinite, are within a distance; NaN is near nothing."""
    return one == other or abs(one - other) <= distance * (1 + 1e-12)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
