r"""Whether a forecast would have come true: from a quarter of the rows to three quarters, against measured errors.

Two random partitions into quarters make eight forecasts, each from the rows of one quarter alone. What they are
compared with are errors on a quarter that is held out, after training on as many of the other rows as were forecast.
Both are about the same rows, and the rule is that of `lab/verdict.py`: the forecast agrees only if one that is wrong by
10 % would not. What it cannot resolve is the scatter of the eight forecasts.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.core.digits import with_error
from solvable.lab.forecast.curves import fit_of
from solvable.lab.forecast.samples import Samples
from solvable.lab.verdict import AGREES, DIFFERS, TOO_FEW, WRONG, judge, quantile, read

QUARTERS = 4
PARTITIONS, SPLITS = 2, 8


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

    def __str__(self) -> str:
        said = f"{self.word} ({self.reason})" if self.reason else self.word
        measured = with_error(self.measured, self.standard_error)
        return f"from {self.rows} rows, {self.forecast:.4g} at n = {self.n}; measured {measured}: {said}"


def hold_out(samples: Samples, penalties: dict[int, float], rng: np.random.Generator) -> tuple[Check, ...]:
    """The checks at each number of samples, with the penalty that is used there."""
    count = len(samples.y)
    orders = [rng.permutation(count) for _ in range(PARTITIONS)]
    parts = [samples.estimate(np.sort(part)) for order in orders for part in np.array_split(order, QUARTERS)]
    splits = [rng.permutation(count) for _ in range(SPLITS)]
    held = count // QUARTERS
    found = []
    for n, penalty in penalties.items():
        forecasts = np.array([fit_of(part, n, samples.p, penalty).error for part in parts])
        errors = np.array([samples.error(split[held : held + n], split[:held], penalty, rng) for split in splits])
        reading = read(errors, np.ones(len(errors), bool), len(penalties))
        value = float(np.exp(np.mean(np.log(forecasts))))
        blur = value * float(np.std(np.log(forecasts), ddof=1) / np.sqrt(len(forecasts)))
        resolution = quantile(reading.chance, len(forecasts) - 1) * blur
        judged = judge(value, reading, resolution, WRONG * value)
        reason = judged.reason.replace("theory", "forecast")
        found.append(Check(held, n, value, reading.value, reading.error, judged.word, reason))
    return tuple(found)


def overall(checks: tuple[Check, ...]) -> str:
    """The word on all of them: they agree if each does, and differ if one does."""
    words = {check.word for check in checks}
    if DIFFERS in words:
        return DIFFERS
    return AGREES if words == {AGREES} else TOO_FEW
