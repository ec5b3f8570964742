r"""What the label law alone says: trivial, easy or hard, the generative exponent, and the weak-recovery threshold.

The labels enter learning through conditioning only. lambda_k = E_y |E[h_k(z)|y]|^2, summed over the Hermite polynomials
of degree k, measures what they say at degree k; the generative exponent is the lowest k > 0 with lambda_k > 0: what the
best transformation of the label reveals [damian2024computational]. Exponent 1: one step learns, at any alpha (trivial).
Exponent 2: learned for alpha > alpha_weak = 1 / |E[G (x) G]|, with one projection 1 / E[G^2] (easy)
[mondelli2017fundamental, troiani2024fundamental]. Above: not learned at n proportional to d (hard).
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import logsumexp, ndtr

from solvable.channels.base import Channel, LabelLaw, TargetChannel
from solvable.channels.generic import GenericChannel
from solvable.channels.levels.labels import LabelRule
from solvable.channels.levels.levelset import LevelSetChannel, LevelSets
from solvable.channels.scalar import ScalarChannel
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import hermite_functions, normal_density

MAX_ORDER = 24
"""The highest degree searched with one projection."""
_MAX_ORDER = {2: 10, 3: 8, 4: 6}
_ZERO, _ZERO_ON_SURFACES = 1e-11, 1e-6
"""lambda_k below this, or below a multiple of what fewer nodes change, counts as zero."""


def label_spectrum(channel: TargetChannel, order: int | None = None, fineness: float = 1.0) -> np.ndarray:
    """lambda_0..lambda_order of the noiseless labels of a channel's target, exact on their level sets."""
    if not isinstance(channel, ScalarChannel):
        degree = _MAX_ORDER[channel.projections] if order is None else order
        return _surface_spectrum(GenericChannel(channel.target).rule(fineness), degree)
    rows = LevelSetChannel(channel.landscape).rows(fineness)
    conditional = _conditional_hermite(rows.observation, MAX_ORDER if order is None else order)
    spectrum = (conditional**2) @ rows.weight
    if channel.target.is_even():
        spectrum[1::2] = 0.0
    return spectrum


def generative_exponent(channel: TargetChannel) -> float:
    """The lowest k with lambda_k > 0 of the noiseless labels, or infinity if there is none up to the degree searched.

    Additive noise on the label never changes it: convolution with a Gaussian is injective.
    """
    if isinstance(channel, ScalarChannel) and channel.exponent is not None:
        return channel.exponent
    fine, coarse = label_spectrum(channel), label_spectrum(channel, fineness=COARSER)
    return _lowest(fine, coarse, isinstance(channel, ScalarChannel))


def weak_recovery(channel: Channel) -> float:
    """alpha_weak: 0 where trivial, 1 / |E[G (x) G]| where easy, infinite where hard."""
    if isinstance(channel, ScalarChannel) and channel.keeps_exponent:
        exponent = generative_exponent(channel)
    else:
        exponent = _low_exponent(channel)
    if exponent == 1:
        return 0.0
    if exponent > 2:
        return np.inf
    return threshold(channel.label_law())


def threshold(law: LabelLaw) -> float:
    """1 over the largest eigenvalue of dM -> E[G dM G], the growth of an infinitesimal overlap."""
    r = law.G.shape[1]
    growth = np.einsum("l,lij,lkm->ikjm", law.weight, law.G, law.G, optimize=True).reshape(r * r, r * r)
    return float(1 / np.linalg.eigvalsh(growth)[-1])


def _low_exponent(channel: Channel) -> float:
    """1 or 2 if the label law has that exponent, else infinity: all that the weak-recovery threshold needs.

    Contamination can change the exponent. Half of the labels of z turned into those of -z leave no mean: 2.
    """

    def spectrum(fineness: float) -> np.ndarray:
        weight, mean, G = channel.label_law(fineness)
        return np.array([1.0, weight @ np.sum(mean**2, 1), weight @ np.sum(G**2, (1, 2)) / 2])

    return _lowest(spectrum(1.0), spectrum(COARSER), isinstance(channel, ScalarChannel))


def _lowest(fine: np.ndarray, coarse: np.ndarray, one: bool) -> float:
    """The lowest degree above 0 whose lambda is clear of its numerical error."""
    change = np.abs(fine - coarse)
    zero = np.maximum(_ZERO, 10 * change) if one else _ZERO_ON_SURFACES + 5 * change
    degrees = np.nonzero((fine > zero)[1:])[0] + 1
    return float(degrees[0]) if degrees.size else np.inf


def _surface_spectrum(rule: LabelRule, order: int) -> np.ndarray:
    """lambda_0..lambda_order of the noiseless labels of a rule of several projections."""
    r = rule.sets.z.shape[1]
    h = np.stack([hermite_functions(column, order) for column in rule.sets.z.T])
    mass, start = rule.mass, rule.sets.start
    filled = np.nonzero(np.diff(start))[0]
    law = np.add.reduceat(mass, start[filled])
    spectrum = np.zeros(order + 1)
    for k in itertools.product(range(order + 1), repeat=r):
        if sum(k) > order:
            continue
        value = mass.copy()
        for i, degree in enumerate(k):
            if degree:
                value *= h[i, degree]
        mean = np.add.reduceat(value, start[filled])
        spectrum[sum(k)] += np.sum(mean**2 / np.maximum(law, 1e-300)) / law.sum()
    return spectrum


def _conditional_hermite(level_sets: LevelSets, order: int) -> np.ndarray:
    """E[h_k(z)|y] for z ~ N(0, 1), shape (order + 1, rows).

    A root c weighs phi(c)/|g'(c)|; an interval contributes (h_{k-1}(a) phi(a) - h_{k-1}(b) phi(b)) / sqrt(k).
    """
    root, lower, upper = level_sets.root, np.clip(level_sets.lower, -40, 40), np.clip(level_sets.upper, -40, 40)
    log_weight = level_sets.log_jacobian - root**2 / 2
    norm = logsumexp(log_weight, axis=-1, keepdims=True) if root.shape[-1] else np.zeros((len(root), 1))
    with np.errstate(invalid="ignore"):
        weight = np.where(np.isfinite(norm), np.exp(log_weight - norm), 0.0)
    from_roots = np.sum(hermite_functions(root, order) * weight, -1)
    if not lower.shape[-1]:
        return from_roots
    present = np.exp(level_sets.log_present)
    at_lower, at_upper = hermite_functions(lower, order), hermite_functions(upper, order)
    flux = at_lower * normal_density(lower) - at_upper * normal_density(upper)
    mass = np.sum(present * _interval_mass(lower, upper), -1)
    from_intervals = np.zeros_like(from_roots)
    from_intervals[1:] = np.sum(present * flux[:-1], -1) / np.sqrt(np.arange(1, order + 1))[:, None]
    from_intervals /= np.where(mass > 0, mass, 1.0)
    from_intervals[0] = 1.0
    return np.where(mass > 0, from_intervals, from_roots)


def _interval_mass(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
