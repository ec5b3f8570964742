"""What the label law alone says: trivial, easy or hard, the generative exponent, and the weak-recovery threshold.

The labels enter learning through conditioning only. lambda_k = E_y[E[h_k(z)|y]^2] measures what they say at degree k;
the generative exponent is the lowest k with lambda_k > 0. Exponent 1: one step learns, at any alpha (trivial).
Exponent 2: learned for alpha > alpha_weak = 1 / E[G^2] (easy). Above: not learned at n proportional to d (hard).
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, ndtr

from solvable.channels.base import Channel
from solvable.channels.levelset import LevelSetChannel, LevelSets
from solvable.numerics.gaussian import hermite_functions, normal_density

MAX_ORDER = 24
_ZERO = 1e-11
"""lambda_k below this, or below ten times what fewer nodes change, counts as zero."""


def label_spectrum(channel: LevelSetChannel, order: int = MAX_ORDER, fineness: float = 1.0) -> np.ndarray:
    """lambda_0..lambda_order of a noiseless channel, exact on its level sets."""
    rows = channel.rows(fineness)
    conditional = _conditional_hermite(rows.observation, order)
    spectrum = (conditional**2) @ rows.weight
    if channel.landscape.target.is_even():
        spectrum[1::2] = 0.0
    return spectrum


def generative_exponent(channel: LevelSetChannel) -> float:
    """The lowest k with lambda_k > 0, or infinity if there is none up to MAX_ORDER.

    Additive noise on the label never changes it: convolution with a Gaussian is injective.
    """
    fine, coarse = label_spectrum(channel), label_spectrum(channel, fineness=0.7)
    for k in range(1, len(fine)):
        zero = max(_ZERO, 10 * abs(fine[k] - coarse[k]))
        if fine[k] > zero:
            return float(k)
    return np.inf


def weak_recovery(channel: Channel) -> float:
    """alpha_weak: 0 where trivial, 1 / E[G^2] where easy, infinite where hard."""
    if not channel.keeps_exponent:
        exponent = _low_exponent(channel)
    else:
        exponent = generative_exponent(LevelSetChannel(channel.landscape))
    if exponent == 1:
        return 0.0
    if exponent > 2:
        return np.inf
    law = channel.label_law()
    return float(1 / np.sum(law.weight * law.G**2))


def _low_exponent(channel: Channel) -> float:
    """1 or 2 if the label law has that exponent, else infinity: all that the weak-recovery threshold needs.

    Contamination can change the exponent. Half of the labels of z turned into those of -z leave no mean: 2.
    """
    fine, coarse = channel.label_law(), channel.label_law(0.7)
    for k, values in ((1, lambda law: law.mean), (2, lambda law: law.G / np.sqrt(2))):
        here, there = (float(np.sum(law.weight * values(law) ** 2)) for law in (fine, coarse))
        if here > max(_ZERO, 10 * abs(here - there)):
            return float(k)
    return np.inf


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
