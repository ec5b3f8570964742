"""The verdict on a published number, in one line."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from solvable.core.digits import says_number, with_uncertainty
from solvable.lab.figures.entry import Claim, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.verdict import AGREES, DIFFERS, TOO_FEW, WRONG, Judgement, reading_of
from solvable.lab.verdict import judge as judge_runs

KNOWN = "differs, as documented"
COMPUTED, SIMULATED = "computed only", "simulated only"
SIMULATIONS = {DIFFERS: "simulation differs", TOO_FEW: TOO_FEW}
"""What is said of runs that do not agree with what was computed."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim with what we computed and simulated, and what follows."""

    claim: Claim
    computed: float
    simulated: Estimate | None = None

    @property
    def computation(self) -> str:
        """The word on the computed value: `agrees` with the published one, or `differs` from it.

        A published number that is known to be wrong `differs, as documented`, as long as it does differ. Without a
        published number it is `computed only`, and `simulated only` where there is no theory.
        """
        if self.claim.compute is None:
            return SIMULATED
        published = self.claim.value
        if published is None:
            return COMPUTED
        if _near(self.computed, published, self.claim.allowed):
            return AGREES
        return KNOWN if self.claim.known_wrong else DIFFERS

    @property
    def simulation(self) -> Judgement | None:
        """The word on the computed value by the runs, if there are any: the rule of `lab/verdict.py`.

        A theory is wrong by 10 % if its value is. Where the runs leave the value undetermined they are too few.
        """
        found = self.simulated
        if found is None or self.claim.compute is None:
            return None
        if not (math.isfinite(found.value) and math.isfinite(found.error) and math.isfinite(self.computed)):
            return Judgement(TOO_FEW, "the runs leave it undetermined")
        size = abs(self.computed)
        shift = found.shift * size
        return judge_runs(
            self.computed, reading_of(found.value, found.error, found.freedom), shift, WRONG * size, shift
        )

    @property
    def word(self) -> str:
        """The words on what was computed and on what was simulated, as one if they agree."""
        runs = self.simulation
        if runs is None:
            return self.computation
        of_runs = SIMULATIONS.get(runs.word, AGREES)
        if self.computation == COMPUTED:
            return of_runs
        return self.computation if runs.word == AGREES else f"{self.computation}; {of_runs}"

    @property
    def expected(self) -> bool:
        """Whether the computed value is the published one, or differs from it as documented."""
        return self.computation != DIFFERS

    def line(self, entry: str, alone: bool = False) -> str:
        """The verdict in one line; `alone` leaves out the claim's name."""
        parts = [published_text(self.claim)]
        if self.claim.compute is not None:
            parts.append(f"computed {computed_text(self)}")
        if self.simulated is not None:
            parts.append(f"simulated {simulated_text(self.simulated)}")
        return f"{entry if alone else f'{entry}, {self.claim.name}'}: {', '.join(parts)}: {self.word}"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "name": self.claim.name,
            "published": self.claim.value,
            "published_text": self.claim.published,
            "tolerance": self.claim.allowed,
            "source": None if self.claim.source is None else str(self.claim.source),
            "second_hand": self.claim.second_hand,
            "computed": None if self.claim.compute is None else self.computed,
            "simulated": None if self.simulated is None else self.simulated.value,
            "standard_error": None if self.simulated is None else self.simulated.error,
            "verdict": self.word,
            "simulation": None if self.simulation is None else self.simulation.word,
            "reason": None if self.simulation is None else self.simulation.reason or None,
            "expected": self.expected,
            "note": self.claim.known_wrong if self.computation == KNOWN else None,
        }


def judge(claim: Claim, material: Material) -> Verdict:
    """Compute and simulate what was published."""
    simulated = None if claim.simulate is None else claim.simulate(material)
    computed = math.nan if claim.compute is None else float(claim.compute(material))
    return Verdict(claim, computed, simulated)


def published_text(claim: Claim) -> str:
    """What was published, a closed form with its value."""
    if claim.published is None:
        return "not published"
    number = claim.exact is None or not math.isfinite(claim.exact) or says_number(claim.published)
    return f"published {claim.published}" + ("" if number else f" = {claim.exact:.4g}")


def computed_text(verdict: Verdict) -> str:
    """The computed value: two digits more than were published; six for a closed form; nothing without a theory."""
    claim, value = verdict.claim, verdict.computed
    if claim.compute is None:
        return ""
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


def _near(one: float, other: float, distance: float) -> bool:
    """Whether two numbers, possibly infinite, are within a distance; NaN is near nothing."""
    return one == other or abs(one - other) <= distance * (1 + 1e-12)
