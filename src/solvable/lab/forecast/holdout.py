r"""Whether a forecast would have come true: from a quarter of the rows to three quarters, against measured errors.

The rows are cut into quarters at random, several times. Each quarter alone makes a forecast; and each is held out and
predicted from as many of the other rows as were forecast. The means over the four quarters of a cut use every row once
in both, so that what is peculiar to these rows cancels in their difference. Over the cuts it is judged by the rule of
`lab/verdict.py`: the forecast agrees only if one that is wrong by 10 % would not. Many rows tell small differences from
none, so that one that differs is given with its size.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from solvable.core.digits import with_error
from solvable.lab.forecast.curves import fit_of
from solvable.lab.forecast.samples import Samples
from solvable.lab.verdict import AGREES, DIFFERS, TOO_FEW, WRONG, judge, read

QUARTERS = 4
MANY, FEW, LARGE = 16, 12, 600
"""How often the rows are cut: less often where there are more than `LARGE` of them and a kernel matrix for each."""


@dataclasses.dataclass(frozen=True)
class Check:
    """A forecast from `rows` rows at `n` samples, and the measured error with its standard error; `word` on both."""

    rows: int
    n: int
    forecast: float
    measured: float
    standard_error: float
    word: str
    reason: str = ""

    def in_units(self, square: float) -> Check:
        """The same for labels in another unit, whose square is given."""
        numbers = {name: square * getattr(self, name) for name in ("forecast", "measured", "standard_error")}
        return dataclasses.replace(self, **numbers)

    def __str__(self) -> str:
        said = f"{self.word} ({self.reason})" if self.reason else self.word
        measured = with_error(self.measured, self.standard_error)
        return f"from {self.rows} rows, {self.forecast:.4g} at n = {self.n}; measured {measured}: {said}"


def hold_out(samples: Samples, penalties: dict[int, float], rng: np.random.Generator) -> tuple[Check, ...]:
    """The checks at each number of samples, with the penalty that is used there."""
    count = len(samples.y)
    number = FEW if samples.costly and count > LARGE else MANY
    cuts = [np.array_split(rng.permutation(count), QUARTERS) for _ in range(number)]
    parts = [[samples.estimate(np.sort(part)) for part in cut] for cut in cuts]
    found = []
    for n, penalty in penalties.items():
        forecasts = np.mean([[fit_of(part, n, samples.p, penalty).error for part in cut] for cut in parts], axis=1)
        places = [[_held_out(samples, cut, k, n, penalty, rng) for k in range(QUARTERS)] for cut in cuts]
        errors, value = np.mean(places, axis=1), float(np.mean(forecasts))
        reading = read(value + errors - forecasts, np.ones(number, bool), len(penalties))
        judged = judge(value, reading, 0.0, WRONG * value)
        scatter = float(np.std(errors, ddof=1)) / math.sqrt(number)
        reason = judged.reason.replace("theory", "forecast").replace("runs", "cuts")
        measured = float(np.mean(errors))
        if judged.word == DIFFERS:
            reason = f"by {100 * abs(measured / value - 1):.2g} %"
        found.append(Check(count // QUARTERS, n, value, measured, scatter, judged.word, reason))
    return tuple(found)


def _held_out(
    samples: Samples, cut: list[np.ndarray], k: int, n: int, penalty: float, rng: np.random.Generator
) -> float:
    """The error on the k-th quarter after training on n of the other rows."""
    others = np.concatenate([part for j, part in enumerate(cut) if j != k])
    return samples.error(others[:n], cut[k], penalty, rng)


def overall(checks: tuple[Check, ...]) -> str:
    """The word on all of them: they agree if each does, and differ if one does."""
    words = {check.word for check in checks}
    if DIFFERS in words:
        return DIFFERS
    return AGREES if words == {AGREES} else TOO_FEW
