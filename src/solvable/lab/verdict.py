r"""Whether runs agree with theory: one rule for every comparison, which cannot say yes without being able to say no.

Runs at one point give an interval $[l, u]$ for what they measure: mean and Student's t, $\bar x \pm t\,s/\sqrt n$, or
for runs in two groups the median with an interval of order statistics. Its chance of missing is `LEVEL`, divided by the
number of points that are compared together (Bonferroni), which holds however the points depend on each other: along a
path they are the same runs. With $r$ what the comparison cannot resolve (a dimension that is finite, an
algorithm that stops, a theory that is computed), the runs *reject* a value $x$ if

$$x < l - r \quad\text{or}\quad x > u + r .$$

- **differs**: the runs reject the theory $t$.
- **agrees**: they do not, but they reject $t + M$ and $t - M$, the theories that are wrong by $M$, 10 % of the value.
- **too few runs to say**: they reject neither the theory nor one that is wrong by 10 %.

"Agrees" is thus an equivalence test (two one-sided tests): everything the runs allow lies within 10 % of theory. A
theory that is wrong by 10 % agrees with a probability of at most `LEVEL`, whatever $r$ is; a larger $r$, or fewer runs,
only make it harder to agree.

Runs that did not settle (that did not stop moving, or whose own estimates disagree: both are known without the truth)
are set aside and counted. If they are more than a quarter, those that are left may be no fair sample: the interval then
covers both what the settled runs say and what all of them do.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

AGREES, DIFFERS, TOO_FEW = "agrees", "differs", "too few runs to say"

WRONG = 0.1
"""The relative error of a theory that must be told apart from a right one."""
LEVEL = 0.01
"""The chance that a right theory is said to differ at one of the points that are compared."""
LEAST = 3
"""Fewer runs never agree, however near they are to each other."""
MANY = 0.25
"""If more than this share of the runs did not settle, the others are not judged without them."""
FINITE_SIZE = 8.0
"""Runs at dimension d are expected within a relative 8/d of the limit: the largest shift seen far from thresholds."""
MOST = WRONG / 2
"""The largest relative shift that is put down to a finite dimension, so that enough runs can always tell 10 %."""
SPLIT = 0.9
"""Runs are in two groups if cutting them in two explains this share of their variance; of a normal law it is 0.64."""
GROUPED = 12
"""Fewer runs are not sorted into groups: they seem to be in two too often by chance."""
SMALL = 1e-3
"""An error smaller than this part of its scale is as good as zero."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the runs of one point say of a number.

    `value` is the mean of the settled runs, or their median if they are in two `groups` (the mean and number of each);
    `error` is its standard error, and `low` and `high` are the ends of its interval. `runs` counts the settled runs,
    `aside` the others; `every` is the mean of all of them. `chance` is that of the interval to miss.
    """

    value: float
    error: float
    low: float
    high: float
    runs: int
    aside: int = 0
    every: float = math.nan
    groups: tuple[tuple[float, int], ...] = ()
    chance: float = LEVEL

    def rejects(self, value: float, resolution: float) -> bool:
        """Whether a value lies outside of the interval by more than what can be resolved."""
        return value < self.low - resolution or value > self.high + resolution


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The word on one point, and why it is not said that theory agrees or differs."""

    word: str
    reason: str = ""


def finite_size(d: int | None) -> float:
    """The relative shift that is expected of runs at dimension d; None is no dimension."""
    return min(FINITE_SIZE / d, MOST) if d else 0.0


def read(runs: np.ndarray, settled: np.ndarray, points: int = 1) -> Reading:
    """The reading of runs (NaN: a run that gave nothing), of which some settled, at one of a number of points."""
    known = np.isfinite(runs)
    every, kept = runs[known], np.sort(runs[known & settled])
    aside = len(every) - len(kept)
    mean = float(np.mean(every)) if len(every) else math.nan
    groups = two_groups(kept)
    value, error, low, high = _centre(kept, LEVEL / points)
    if aside > MANY * len(every):
        with_them = _centre(np.sort(every), LEVEL / points)
        if len(kept) < 2:
            value, error, low, high = with_them
        low, high = min(low, with_them[2]), max(high, with_them[3])
    return Reading(value, error, low, high, len(kept), aside, mean, groups, LEVEL / points)


def shown(runs: np.ndarray) -> tuple[float, float, float]:
    """What stands for runs in a figure or a table: their mean, and how far its bars reach down and up.

    The bars are standard errors (NaN below two runs). Of runs in two groups it is the median, with bars that hold the
    central 68 % of the runs.
    """
    runs = np.sort(runs[np.isfinite(runs)])
    if two_groups(runs):
        low, middle, high = np.quantile(runs, (0.16, 0.5, 0.84))
        return float(middle), float(middle - low), float(high - middle)
    value, error, _, _ = _mean(runs, LEVEL)
    return value, error, error


def reading_of(value: float, error: float, freedom: int | None, points: int = 1) -> Reading:
    """The reading of an estimate with its standard error, known from that many degrees of freedom (None: well)."""
    half = quantile(LEVEL / points, freedom) * error
    runs = LEAST if freedom is None else freedom + 1
    return Reading(value, error, value - half, value + half, runs, every=value, chance=LEVEL / points)


def judge(theory: float, reading: Reading, resolution: float, margin: float, shift: float = 0.0) -> Judgement:
    """The word on a theory, its rivals being wrong by `margin`; `shift` is the finite dimension's part of `resolution`.

    The reason for too few runs says which of them must change: their number, their dimension, or the theory.
    """
    made = reading.runs + reading.aside
    if not (math.isfinite(reading.low) and math.isfinite(reading.high)):
        return Judgement(TOO_FEW, f"{_runs(made)} at this point")
    if reading.rejects(theory, resolution):
        return Judgement(DIFFERS)
    rivals = (theory - margin, theory + margin)
    if made >= LEAST and all(reading.rejects(rival, resolution) for rival in rivals):
        return Judgement(AGREES)
    if reading.groups:
        parts = " and ".join(f"{count} near {value:.3g}" for value, count in reading.groups)
        return Judgement(TOO_FEW, f"the runs end in two groups, {parts}")
    if resolution >= margin:
        what = "the dimension is too small" if 2 * shift >= resolution else "theory or algorithm is not exact enough"
        return Judgement(TOO_FEW, f"{what} to tell a theory that is wrong by {margin:.2g}")
    if reading.aside > MANY * made:
        return Judgement(TOO_FEW, f"{reading.aside} of {_runs(made)} did not settle, too many to leave out")
    enough = _enough(reading, (margin - resolution) / 2)
    more = f": about {enough} would" if enough else ""
    return Judgement(TOO_FEW, f"{_runs(reading.runs)} cannot tell a theory that is wrong by {margin:.2g}{more}")


def two_groups(runs: np.ndarray) -> tuple[tuple[float, int], ...]:
    """The means and numbers of two groups of sorted runs, if there are two; nothing otherwise.

    The runs are cut in two, with two at least on each side, where that explains most of their variance, and the two
    parts are groups if it explains `SPLIT` of it. So it does for one sample in two hundred of 12 runs of a normal law,
    one in a thousand of 16, and for 95 % of those of 16 runs of two normal laws ten standard deviations apart.
    """
    count = len(runs)
    if count < GROUPED:
        return ()
    away = runs - np.mean(runs)
    cuts = np.arange(2, count - 1)
    below = np.cumsum(away)[cuts - 1]  # their sum is minus that of the others
    explained = below**2 * count / (cuts * (count - cuts))
    cut = int(cuts[np.argmax(explained)])
    if np.ptp(runs) == 0 or np.max(explained) < SPLIT * np.sum(away**2):
        return ()
    return (float(np.mean(runs[:cut])), cut), (float(np.mean(runs[cut:])), count - cut)


def _enough(reading: Reading, half: float) -> int:
    """About how many runs have an interval of that half-width, to two digits; 0 if it is known or beyond a million."""
    spread = reading.error * math.sqrt(reading.runs)
    for count in (round(10 ** (k / 20)) for k in range(10, 121)):
        if count > reading.runs and quantile(reading.chance, count - 1) * spread / math.sqrt(count) <= half:
            return int(float(f"{count:.2g}"))
    return 0


def quantile(chance: float, freedom: int | None) -> float:
    """How many standard errors a mean exceeds with this chance, to either side; infinite without freedom."""
    return _quantile(chance, math.inf if freedom is None else freedom)


@functools.lru_cache(maxsize=1024)
def _quantile(chance: float, freedom: float) -> float:
    from scipy.special import ndtri, stdtrit

    if freedom < 1:
        return math.inf
    return float(-ndtri(chance / 2) if math.isinf(freedom) else -stdtrit(freedom, chance / 2))


def _centre(runs: np.ndarray, chance: float) -> tuple[float, float, float, float]:
    """The mean of sorted runs, or the median of two groups: its value, its standard error and its interval."""
    return _median(runs, chance) if two_groups(runs) else _mean(runs, chance)


def _mean(runs: np.ndarray, chance: float) -> tuple[float, float, float, float]:
    if len(runs) < 2:
        return (float(np.mean(runs)) if len(runs) else math.nan), math.nan, -math.inf, math.inf
    mean, error = float(np.mean(runs)), float(np.std(runs, ddof=1) / math.sqrt(len(runs)))
    half = quantile(chance, len(runs) - 1) * error
    return mean, error, mean - half, mean + half


def _median(runs: np.ndarray, chance: float) -> tuple[float, float, float, float]:
    """The median of sorted runs between order statistics: fewer than k runs are below it with a binomial chance.

    The standard error is half of the interval that one standard deviation of that count leaves.
    """
    from scipy.special import bdtr

    count = len(runs)
    k = 0
    while 2 * (k + 1) <= count and 2 * bdtr(k, count, 0.5) <= chance:
        k += 1
    low, high = (float(runs[k - 1]), float(runs[count - k])) if k else (-math.inf, math.inf)
    inner = max(0, math.floor(count / 2 - math.sqrt(count) / 2))
    return float(np.median(runs)), float(runs[count - 1 - inner] - runs[inner]) / 2, low, high


def _runs(count: int) -> str:
    return f"{count or 'no'} run{'' if count == 1 else 's'}"
