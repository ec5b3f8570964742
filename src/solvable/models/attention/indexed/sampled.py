r"""Labels that are any function of the T x T scores, read by draws of the scores.

Given what is known, $h_e \sim N(\omega_e, \sigma_e^2)$, draws $h^1, \dots, h^K$ stand for the prior of a sample's
scores. A label weighs them, by $w_{ij} = P(y_i | h^j)$: one where the label is the same, for labels that are a few
values; Gaussian, for labels with noise. With $\delta = (h - \omega)/\sigma$ the information of a sample is

    V I = E sum_e E[delta_e | y]^2 = E[ delta^i . sum_{j != i} w_ij delta^j / sum_{j != i} w_ij ],

the draw whose label it is being left out of the posterior mean: without that, its own noise would count as knowledge.
Labels that take a continuum of values without noise cannot be read this way, and are refused.

V I is fitted by powers of $s = \sqrt V$, from s on for a few values (ties inform: a share of s of the samples), from
$s^2$ on with noise. Then $\Psi = \frac12 \int I\, dq$ is closed, and the curve of fixed points too.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from solvable.core.errors import NotSolvable, bad_parameter
from solvable.engine.outputs.explicit import ExplicitOutput
from solvable.engine.sides import OutputStep
from solvable.engine.token_pairs import pairs
from solvable.numerics.sobol import normal_points

_NODES = np.array([0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0])
_POWERS = 5
_REPLICAS = 4
_DEVIATIONS = 3.0
"""The stated error in standard deviations, which themselves are told by few replicas."""
_OMEGAS, _DRAWS = {False: 8, True: 6}, {False: 512, True: 256}
"""For labels of a few values and for noisy ones: 2 to what power means are drawn, and draws at each."""
_MESSAGE_DRAWS = 1024
_TINY = 1e-300
_BLOCK = 2**21

Function = Callable[[np.ndarray], np.ndarray]


def scales(tokens: int, tied: bool) -> np.ndarray:
    """The deviations (m,) of the scores that differ, for a unit one off the diagonal: those $a \\le b$ of a symmetric
    matrix where keys and queries are `tied`, all T^2 otherwise."""
    return pairs(tokens)[2] if tied else np.ones(tokens**2)


def matrices(entries: np.ndarray, tokens: int) -> np.ndarray:
    """The matrices (n, T, T) of scores (n, m) that differ, symmetric unless all T^2 are given."""
    if entries.shape[1] == tokens**2:
        return entries.reshape(-1, tokens, tokens)
    first, second, _ = pairs(tokens)
    h = np.empty((len(entries), tokens, tokens))
    h[:, first, second] = entries
    h[:, second, first] = entries
    return h


def labels_of(function: Function, entries: np.ndarray, tokens: int) -> np.ndarray:
    """The labels (..., k) of scores (..., m)."""
    flat = matrices(entries.reshape(-1, entries.shape[-1]), tokens)
    y = np.asarray(function(flat), float)
    if y.shape[:1] != flat.shape[:1] or not np.isfinite(y).all():
        raise bad_parameter(
            "output", function, "a function of scores (n, T, T) that gives n finite labels, each a number or an array"
        )
    return y.reshape(*entries.shape[:-1], -1)


class _Fit(NamedTuple):
    """V I = sum of `coefficients` times s to the `powers`, and the covariance of the coefficients."""

    powers: np.ndarray
    coefficients: np.ndarray
    covariance: np.ndarray


@dataclasses.dataclass(frozen=True)
class SampledOutput(ExplicitOutput):
    """Labels `function` (h) plus Gaussian noise of variance `noise`, where the part of the scores that is always known
    has variance `known`; of symmetric scores where keys and queries are `tied`."""

    function: Function
    tokens: int
    known: float
    noise: float = 0.0
    tied: bool = True

    @property
    def gain_weak(self) -> float:
        """The first step learns: the trace, which is known, breaks the symmetry of any function that informs."""
        return 0.0

    @property
    def monotone(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether V I rises with V: then I rises more slowly than 1/V, mmse falls no faster than 1/qhat, and there is
        one fixed point."""
        scaled = self._scaled(np.linspace(0.0, 1.0, 200))
        return bool(np.all(np.diff(scaled) > 0))

    def information(self, V: Any) -> Any:
        V = np.asarray(V, float)
        return np.maximum(self._scaled(np.sqrt(V)), _TINY) / V

    def information_error(self, V: Any) -> np.ndarray:
        V = np.asarray(V, float)
        return self.relative_error(np.log(np.maximum(1 - V, _TINY)) - np.log(V))

    def at_nothing(self) -> tuple[float, float]:
        """V I where nothing is known, of scores of unit variance without a trace, and its relative error."""
        found = np.array([drawn_information(dataclasses.replace(self, known=0.0), 1.0, k)[0] for k in range(_REPLICAS)])
        value, error = float(found.mean()), float(_DEVIATIONS * found.std(ddof=1) / np.sqrt(_REPLICAS))
        if value <= error:
            raise NotSolvable(
                "the narrow threshold of this output is not known: its labels say nothing at first order."
            )
        return value, error / value

    def log_information(self, t: np.ndarray) -> np.ndarray:
        s = np.sqrt(expit(-np.asarray(t, float)))
        return np.log(np.maximum(self._scaled(s), _TINY)) - 2 * np.log(np.maximum(s, _TINY))

    def entropy(self, t: np.ndarray | float) -> np.ndarray:
        s = np.sqrt(expit(-np.asarray(t, float)))
        fit = self._fit
        return np.sum(fit.coefficients / fit.powers * (1 - s[..., None] ** fit.powers), -1)

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        s, fit = np.sqrt(expit(-np.asarray(t, float))), self._fit
        powers = s[..., None] ** fit.powers
        spread = np.sqrt(np.einsum("...a,ab,...b->...", powers, fit.covariance, powers))
        return _DEVIATIONS * spread / np.maximum(self._scaled(s), _TINY)

    def _scaled(self, s: np.ndarray) -> np.ndarray:
        """V I."""
        return s[..., None] ** self._fit.powers @ self._fit.coefficients

    @property
    def _fit(self) -> _Fit:
        return _fitted(self)

    def denoiser(self, y: np.ndarray) -> SampledLabels:
        return SampledLabels(self, y)


@functools.lru_cache(maxsize=16)
def _fitted(output: SampledOutput) -> _Fit:
    found = np.array([[drawn_information(output, s**2, k) for s in _NODES] for k in range(_REPLICAS)])
    mean = found[..., 0].mean(0)
    # The scatter of few replicas is itself uncertain: that of neighbouring nodes counts too.
    scatter = found[..., 0].std(0, ddof=1) / np.sqrt(_REPLICAS) / mean
    padded = np.pad(scatter, 1, mode="edge")
    error = mean * np.hypot((padded[:-2] + scatter + padded[2:]) / 3, found[..., 1].mean(0) / mean) + 1e-9
    powers = np.arange(1, _POWERS + 1) + (1 if output.noise > 0 else 0)
    basis = _NODES[:, None] ** powers / error[:, None]
    covariance = np.linalg.inv(basis.T @ basis)
    coefficients = covariance @ basis.T @ (mean / error)
    misfit = np.sum((basis @ coefficients - mean / error) ** 2) / (len(_NODES) - _POWERS)
    return _Fit(powers, coefficients, covariance * max(1.0, misfit))


def drawn_information(output: SampledOutput, V: float, replica: int = 0) -> tuple[float, float]:
    """V I at one V, by scrambled means and independent draws, and half of what its correction for their number is.

    The bias, of a ratio of averages or of labels that only one draw has, falls like one over the number of draws: half
    of them tell it.
    """
    T, noisy = output.tokens, output.noise > 0
    scale, draws = scales(T, output.tied), _DRAWS[noisy]
    rng = np.random.default_rng([2026, replica])
    means = np.sqrt(1 + output.known - V) * normal_points(len(scale), _OMEGAS[noisy], replica)
    whole = half = 0.0
    for block in _blocks(len(means), draws * max(draws if noisy else 1, len(scale))):
        delta = rng.standard_normal((len(means[block]), draws, len(scale)))
        y = labels_of(output.function, (means[block, None] + np.sqrt(V) * delta) * scale, T)
        seen = y + np.sqrt(output.noise) * rng.standard_normal(y.shape) if noisy else y
        groups = None if noisy else _numbered(y)
        for part, share in ((slice(None), 1.0), (slice(None, draws // 2), 0.5), (slice(draws // 2, None), 0.5)):
            d = delta[:, part]
            found = (
                _left_out(d, y[:, part], seen[:, part], output.noise)
                if groups is None
                else _grouped(d, groups[:, part])
            )
            if share == 1:
                whole += float(np.sum(found))
            else:
                half += share * float(np.sum(found))
    correction = (whole - half) / len(means)
    return whole / len(means) + correction, abs(correction) / 2


def _left_out(delta: np.ndarray, y: np.ndarray, seen: np.ndarray, noise: float) -> np.ndarray:
    """The mean of delta^i . E[delta | y_i] for each row of draws (n, K, m), by Gaussian weights."""
    squares = np.sum(y**2, -1)[:, None, :] - 2 * seen @ y.swapaxes(1, 2) + np.sum(seen**2, -1)[:, :, None]
    weight = np.exp(-np.maximum(squares, 0.0) / (2 * noise))
    weight[:, np.arange(weight.shape[1]), np.arange(weight.shape[1])] = 0.0
    total = weight.sum(-1)
    return np.sum(np.sum(weight @ delta * delta, -1) / np.maximum(total, _TINY), 1) / delta.shape[1]


def _numbered(y: np.ndarray) -> np.ndarray:
    """The labels (n, K, k) of a few values as numbers from 0 on, (n, K)."""
    label = np.zeros(y.shape[0] * y.shape[1], int)
    for column in y.reshape(len(label), -1).T:
        different, number = np.unique(column, return_inverse=True)
        label = np.unique(label * len(different) + number, return_inverse=True)[1]
    if label.max() >= len(label) // 4:
        raise bad_parameter(
            "noise", 0.0, "positive for an output whose labels are all different, or the output one of a few values"
        )
    return label.reshape(y.shape[:2])


def _grouped(delta: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The same for labels of a few values: pairs of different draws with one label."""
    n, K, m = delta.shape
    values = int(label.max()) + 1
    group = label + values * np.arange(n)[:, None]
    count = np.bincount(group.ravel(), minlength=n * values)
    sums = np.stack([np.bincount(group.ravel(), delta[..., k].ravel(), n * values) for k in range(m)], -1)
    own = np.bincount(group.ravel(), np.sum(delta**2, -1).ravel(), n * values)
    pair = np.where(count > 1, (np.sum(sums**2, -1) - own) / np.maximum(count - 1, 1), 0.0)
    return pair.reshape(n, -1).sum(1) / K


def _blocks(rows: int, width: int) -> Iterator[slice]:
    size = max(1, _BLOCK // width)
    for start in range(0, rows, size):
        yield slice(start, start + size)


class SampledLabels:
    """The denoiser of labels `y` (n, k). Each sample keeps its draws, so that message passing has a fixed point."""

    def __init__(self, output: SampledOutput, y: np.ndarray, always: float | np.ndarray = 0.0):
        self._output, self._y, self._always = output, np.asarray(y, float), always

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        output, v = self._output, float(V[0, 0])
        scale = scales(output.tokens, output.tied)
        omega = (Omega + self._always).reshape(-1, len(scale))
        rng = np.random.default_rng(2027)
        mean, square, log_P = np.empty(omega.shape), np.empty(omega.shape), np.empty(len(omega))
        for block in _blocks(len(omega), _MESSAGE_DRAWS * len(scale)):
            delta = rng.standard_normal((len(omega[block]), _MESSAGE_DRAWS, len(scale)))
            y = labels_of(output.function, (omega[block, None] + np.sqrt(v) * delta) * scale, output.tokens)
            weight, log_P[block] = self._weights(y, self._y[block, None])
            mean[block] = np.einsum("nk,nkm->nm", weight, delta)
            square[block] = np.einsum("nk,nkm->nm", weight, delta**2)
        own = np.mean(1 - square + mean**2) / v
        return OutputStep((mean / np.sqrt(v)).reshape(-1, 1), np.full((1, 1), own), None, lambda: log_P)

    def _weights(self, y: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the draws (n, K), of sum one, and the logarithm of their mean before; a label that no draw has
        says nothing."""
        noise = self._output.noise
        if noise > 0:
            log_weight = -np.sum((y - seen) ** 2, -1) / (2 * noise)
        else:
            log_weight = np.where((y == seen).all(-1), 0.0, -np.inf)
            log_weight[np.isinf(log_weight).all(1)] = 0.0
        top = log_weight.max(1, keepdims=True)
        weight = np.exp(log_weight - top)
        total = weight.sum(1)
        log_P = np.log(total / y.shape[1]) + top[:, 0] - y.shape[2] / 2 * (np.log(2 * np.pi * noise) if noise else 0.0)
        return weight / total[:, None], log_P
