r"""Regression by message passing: the posterior mean of the label of a multi-index model, on one's own data.

Inputs are whitened, so that z = X W of weights with |w|^2 = d is N(0, I); the labels are $y = b + a\, g(z)$ and noise.
Message passing (`engine/amp.py`) finds the posterior mean $\hat W$ of Gaussian weights, and a new input x of
projection $\omega = x\cdot\hat W$ is given the label $b + a\, E[g(z)]$, $z \sim N(\omega, I - \hat W^T \hat W/d)$.

What is not known is learned from the labels themselves. The noise is that of a grid under which labels, each left out
in turn, are likeliest. A link of one direction is piecewise linear: it starts from a direction of `SpectralIndex`,
and is fitted again to the leave-one-out projections of message passing, a few times.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.channels.base import Channel
from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.learners import AMP
from solvable.core.model import Data
from solvable.engine.amp import AMPReport, amp
from solvable.engine.operators import Dense
from solvable.engine.outputs.posterior import PosteriorDenoiser
from solvable.engine.signals.separable import gaussian_denoiser
from solvable.estimators.links import PiecewiseLinear, fitted
from solvable.estimators.spectral_index import SpectralIndex
from solvable.estimators.whitening import doubts, warn_of, whitening
from solvable.models.index import MultiIndex

_ROUNDS, _MOST_STARTS = 4, 9
_LEAST_V = 1e-4
_RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Variances of the noise that are tried, over that of the noiseless labels."""
_FLIPS = (0.002, 0.02, 0.07, 0.15, 0.3)
"""Of labels with few values: how likely the nearest other one is to be seen instead."""
_PROBES = 20_000


class AMPRegressor(RegressorMixin, BaseEstimator):
    """Regression by message passing on a function of one to three projections of the whitened inputs.

    - `target`: the function, as `MultiIndex` takes it (`"abs(z)"`, `"sign(z1*z2)"`, a `Target`, a named channel); None
      for a piecewise linear one of one projection that is learned from the labels.
    - `noise`: variance of the noise, in units of the target; None to learn it. Without a target it is learned always.
    - `affine`: whether labels are fitted as b + a g(z), by their mean and variance, or by the values that they take.
      Without noise labels of a target of many values are taken as they are.
    - `max_steps`: of message passing. `random_state`: of its starts.

    After `fit`: `components_` (r x d), projections are (X - mean_) @ components_.T; `overlaps_`, their expected squared
    cosines with the truth; `target_` and `noise_`; `scale_` a and `offset_` b; `converged_`, whether message passing
    came to rest, and `consistent_`, whether its own estimates agree; `evidence_`, the mean log probability of a label
    that is left out.
    """

    def __init__(
        self,
        target: Any = None,
        noise: float | None = None,
        affine: bool = True,
        max_steps: int = 600,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.target = target
        self.noise = noise
        self.affine = affine
        self.max_steps = max_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> AMPRegressor:
        """Fit labels y (n) on inputs X (n x d)."""
        check_count("max_steps", self.max_steps, least=1)
        if self.noise is not None:
            checked_variance(self.noise)
            if self.target is None:
                raise bad_parameter("noise", self.noise, "None without a target: it is learned with the link")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        labels = np.asarray(y, float)
        self._whitening = whitening(X)
        self.mean_ = self._whitening.mean
        white = self._whitening(X)
        warn_of("AMPRegressor", doubts(X, white, self._whitening))
        if np.ptp(labels) == 0 or white.shape[1] == 0:
            raise ValueError("y or every column of X is constant: there is nothing to learn.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        run = self._learned(X, white, labels) if self.target is None else self._typed(white, labels, rng)
        self._set(run, white.shape[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The posterior mean of the noiseless label of each input."""
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        Omega = (X - self.mean_) @ self.components_.T * np.sqrt(self._norms)
        channel, V = self._channel, self._V
        if isinstance(channel, PiecewiseLinear):
            values = channel.smoothed(Omega[:, 0], float(V[0, 0]))
        else:
            values = np.asarray(channel.predictor.predict(Omega, V))
        return self.offset_ + self.scale_ * values

    def _set(self, run: _Run, d: int) -> None:
        report = run.report
        self.converged_, self.consistent_ = bool(report.converged), bool(report.consistent)
        self.n_iter_, self.evidence_ = report.iterations, run.evidence
        self.scale_, self.offset_ = run.scale, run.offset
        self.noise_, self.target_ = run.channel.noise, run.name
        W = report.estimate if np.isfinite(report.estimate).all() else np.zeros_like(report.estimate)
        if not report.converged:
            warnings.warn(
                f"AMPRegressor: message passing did not come to rest in {report.iterations} steps: the data are not "
                "those of this target, or there are too few.",
                ConvergenceWarning,
                stacklevel=3,
            )
        Q = W.T @ W / d
        q, u = np.linalg.eigh(Q)
        self._V = (u * np.clip(1 - q, _LEAST_V, 1.0)) @ u.T
        self._norms = np.diag(Q)
        self.overlaps_ = np.clip(self._norms, 0.0, 1.0)
        self._channel = run.channel
        # Projections of variance one, as those of SpectralIndex; their sizes are kept apart.
        unit = W / np.sqrt(np.maximum(d * self._norms, np.finfo(float).tiny))
        self.components_ = (self._whitening.map @ unit).T

    def _learned(self, X: np.ndarray, white: np.ndarray, labels: np.ndarray) -> _Run:
        """A link of one direction, fitted in turn with the direction."""
        n, d = white.shape
        offset, scale = float(labels.mean()), float(labels.std())
        y = (labels - offset) / scale
        W, Omega, V = _start(X, white, y)
        best: _Run | None = None
        for _ in range(_ROUNDS):
            link = fitted(Omega[:, 0], V, y)
            operator = Dense(white / np.sqrt(d))
            report = amp(
                operator,
                PosteriorDenoiser(link, y),
                gaussian_denoiser,
                W,
                np.random.default_rng(0),
                memory=operator.forward(W) - Omega,
                max_steps=int(self.max_steps),
                vmin=_LEAST_V,
            )
            evidence = -np.inf if report.log_likelihood is None else report.log_likelihood - float(np.log(scale))
            run = _Run(report, link, link.text, scale, offset, evidence)
            if best is None or run.better_than(best):
                gain = np.inf if best is None else evidence - best.evidence
                best = run
                if gain < 1 / n:
                    break
            else:
                break
            W, Omega, V = report.estimate, report.Omega, float(report.V[0, 0])
            if not (np.isfinite(W).all() and np.isfinite(Omega).all() and np.isfinite(V)):
                break
        assert best is not None
        return best

    def _typed(self, white: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> _Run:
        """A target that is given, with the noise under which the labels are likeliest."""
        clean = MultiIndex(self.target)
        named = clean.named_channel is not None
        probes = clean.target.numpy(np.random.default_rng(0).standard_normal((_PROBES, clean.projections)))
        atoms = np.unique(probes) if len(np.unique(probes)) <= 32 else np.zeros(0)
        if named or self.noise is not None:
            noises = [0.0 if named else float(self.noise or 0.0)]
        elif len(atoms):
            gap = float(np.diff(atoms).min())
            noises = [gap**2 / (2 * np.log((1 - p) / p)) for p in _FLIPS]
        else:
            noises = [ratio * float(np.var(probes)) for ratio in _RATIOS]
        runs = []
        for noise in noises:
            scale, offset = self._units(labels, probes, atoms, noise)
            model = MultiIndex(self.target) if named else MultiIndex(self.target, noise=noise)
            runs.append(self._run(model, white, (labels - offset) / scale, rng, scale, offset, atoms, probes))
        best = runs[0]
        for run in runs[1:]:
            best = run if run.better_than(best) else best
        return best

    def _units(self, labels: np.ndarray, probes: np.ndarray, atoms: np.ndarray, noise: float) -> tuple[float, float]:
        """a and b of the labels b + a g(z)."""
        if not self.affine or (noise == 0 and not len(atoms)):
            return 1.0, 0.0
        if len(atoms):
            scale = float(np.ptp(labels) / np.ptp(atoms))
            return scale, float(labels.min() - scale * atoms.min())
        scale = float(np.sqrt(np.var(labels) / (np.var(probes) + noise)))
        return scale, float(labels.mean() - scale * probes.mean())

    def _run(
        self,
        model: MultiIndex,
        white: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
        scale: float,
        offset: float,
        atoms: np.ndarray,
        probes: np.ndarray,
    ) -> _Run:
        d, r = white.shape[1], model.projections
        channel = model.channel
        y = _snapped(y, atoms)
        _check_possible(channel, y, atoms, probes)
        instance = model.instance(Data(white / np.sqrt(d), y, np.zeros((d, r))))
        report, _ = instance.uninformed(rng, AMP(max_steps=int(self.max_steps)))
        evidence = _evidence(channel, y, report, atoms) - (0.0 if len(atoms) else float(np.log(scale)))
        return _Run(report, channel, str(model.target), scale, offset, evidence)


def _start(X: np.ndarray, white: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights (d x 1) with their leave-one-out projections and the variance these leave: of the directions of
    `SpectralIndex`, and that of the mean of y x, the one from which a link predicts the labels best."""
    n, d = white.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = SpectralIndex(random_state=0).fit(X, y)
    candidates = [(index._U[:, j], index._fields[:, j], index.overlaps_[j]) for j in range(len(index.components_))]
    mean = white.T @ y / n
    s = max(float(np.linalg.norm(mean)), np.finfo(float).tiny)
    field = white @ mean / s - y * d / (n * s)
    candidates.append((mean / s, field / max(float(field.std()), np.finfo(float).tiny), 1 - d / (n * s**2)))
    found = []
    for u, omega, overlap in candidates[-_MOST_STARTS:]:
        q = float(np.clip(overlap, 0.01, 0.999))
        omega = np.sqrt(q) * omega
        left = float(np.mean((y - fitted(omega, 1 - q, y).smoothed(omega, 1 - q)) ** 2))
        found.append((left, np.sqrt(d * q) * u[:, None], omega[:, None], 1 - q))
    return min(found, key=lambda part: part[0])[1:]


class _Run(NamedTuple):
    """The end of message passing with a channel for (y - offset) / scale; the evidence is that of y."""

    report: AMPReport
    channel: Channel
    name: str
    scale: float
    offset: float
    evidence: float

    def better_than(self, other: _Run) -> bool:
        """Runs that came to rest first, then those under which labels are likelier."""
        return (self.report.converged, self.evidence) > (other.report.converged, other.evidence)


def _snapped(y: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Labels that are values of the target up to rounding, made exactly these."""
    if not len(atoms):
        return y
    nearest = atoms[np.argmin(np.abs(y[:, None] - atoms), axis=1)]
    return np.where(np.abs(y - nearest) < 1e-6 * np.ptp(atoms), nearest, y)


def _check_possible(channel: Channel, y: np.ndarray, atoms: np.ndarray, probes: np.ndarray) -> None:
    """Refuse labels that a target without noise, or a named channel, never gives."""
    if channel.noise > 0:
        return
    if len(atoms):
        bad = np.min(np.abs(y[:, None] - atoms), axis=1) > 0
    else:
        # Beyond an end of the values by much more than the gap between the last of many of them.
        low, lower, upper, high = np.quantile(probes, (0, 0.001, 0.999, 1))
        slack = 0.01 * probes.std()
        bad = (y < low - 5 * (lower - low) - slack) | (y > high + 5 * (high - upper) + slack)
    if bad.any():
        raise ValueError(
            f"noise = 0 is not allowed with the label {y[np.argmax(bad)]:.4g} (in units of the target), which it never "
            "gives: noise must be above 0, or None to learn it."
        )


def _evidence(channel: Channel, y: np.ndarray, report: AMPReport, atoms: np.ndarray) -> float:
    """The mean log probability of a label that is left out; of a target of few values that among these."""
    if report.log_likelihood is None or not np.isfinite(report.Omega).all():
        return -np.inf
    if not len(atoms) or channel.noise == 0:
        return float(report.log_likelihood)

    def log_Z(labels: np.ndarray) -> np.ndarray:
        return np.asarray(channel.posterior(channel.observe(labels), report.Omega, report.V).log_Z)

    whole = logsumexp([log_Z(np.full_like(y, atom)) for atom in atoms], axis=0)
    return float(np.mean(log_Z(y) - whole))
