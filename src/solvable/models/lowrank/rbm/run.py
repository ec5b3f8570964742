r"""The weights of largest likelihood on one data set: by optimisation, by eigenvectors, or by message passing.

Message passing is the engine's loop with the proximal step of the loss of a unit and the ridge of its normalisation,

    omega = X w - V g_old,   g = eta1'(z) at z = omega + V g,   A = -(1/d) sum dg/domega
    w = (X^T g + A w)/(Lambda + A),   V = 1/(Lambda + A)

where A is negative, since the loss is concave. Its fixed points are stationary points of the likelihood. It settles
where the replicon is below one; elsewhere it does not, and optimisation ends in one of many local maxima.
[xu2025learning]
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.linalg
import scipy.optimize

from solvable.channels.losses.samples import SampleLoss
from solvable.core.precision import float64
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.erm.run import message_passing
from solvable.engine.outputs.proximal import ProximalDenoiser
from solvable.engine.sides import SignalDenoiser, SignalStep
from solvable.engine.signals.separable import PenalisedDenoiser
from solvable.models.lowrank.rbm.learners import RBM
from solvable.models.lowrank.rbm.units import BinaryUnits, GaussianUnits, Units
from solvable.models.lowrank.spiked import SampleData, SpikedCovariance
from solvable.numerics.roots import crossing
from solvable.priors.penalties import Ridge

_SMALL = 0.1
"""The standard deviation of weights at the start of optimisation: so small that they first follow the eigenvectors."""
_LARGE = {BinaryUnits: 1.5, GaussianUnits: 0.7}
"""The same for message passing: V at the first step is one minus its square, and far from one."""
_MAX_STEPS = 5000
_SETTLED = 1e-5


@simulation(SpikedCovariance, RBM, references=("xu2025learning",))
def run_rbm(model: SpikedCovariance, learner: RBM, data: SampleData, rng: np.random.Generator) -> Outcome:
    """The maximum of the likelihood; the truth is used for scoring only."""
    units, X = learner.layer, data.X
    if learner.solver == "amp":
        W, converged, iterations = float64(_by_messages)(units, X, rng)
    elif isinstance(units, GaussianUnits):
        W, converged, iterations = by_eigenvectors(units, X), True, 1
    else:
        W, converged, iterations = by_ascent(units, X, rng)
    Q = W.T @ W / len(W)
    metrics = overlaps_of(W.T @ data.truth / len(W), Q) | {"log_likelihood": log_likelihood(units, X, W)}
    return Outcome(metrics, W, converged, details={"iterations": iterations, "Q": Q})


def overlaps_of(M: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    """Metrics of weights with the overlaps M (k, 1) with the spike and Q (k, k) among each other.

    squared_overlap = M^T Q^+ M is the share of the spike in the span of the weights, squared_norm = Tr Q / k.
    """
    squared = float(np.clip((M.T @ np.linalg.pinv(Q, rcond=1e-12, hermitian=True) @ M)[0, 0], 0.0, 1.0))
    return {"cosine": np.sqrt(squared), "squared_overlap": squared, "squared_norm": float(np.trace(Q)) / len(Q)}


def log_likelihood(units: Units, X: np.ndarray, W: np.ndarray) -> float:
    """That of all samples, relative to W = 0, over d."""
    d = len(W)
    return (float(np.sum(units.gain(X @ W))) - len(X) * units.cost(W.T @ W / d)) / d


def gradient(units: Units, X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """That of the summed log-likelihood, X^T eta1'(X W) - W Lambda."""
    return X.T @ units.force(X @ W) - W @ (len(X) / len(W) * units.ridge(W.T @ W / len(W)))


def by_ascent(units: Units, X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, bool, int]:
    """L-BFGS from small random weights."""
    n, d = X.shape

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        W = w.reshape(d, units.count)
        return -log_likelihood(units, X, W) * d / n, -gradient(units, X, W).ravel() / n

    options = {"maxiter": _MAX_STEPS, "maxfun": 2 * _MAX_STEPS, "ftol": 1e-15, "gtol": 1e-11, "maxcor": 20}
    start = _SMALL * rng.standard_normal(d * units.count)
    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    W = found.x.reshape(d, units.count)
    pull = W @ (n / d * units.ridge(W.T @ W / d))
    settled = np.linalg.norm(gradient(units, X, W)) <= _SETTLED * np.linalg.norm(pull)
    return W, bool(settled), int(found.nit)


def by_eigenvectors(units: Units, X: np.ndarray) -> np.ndarray:
    """The leading eigenvectors of X^T X at eigenvalues l above n/d, each of squared norm 1 - n/(d l) times d."""
    n, d = X.shape
    W = np.zeros((d, units.count))
    found = min(units.count, n, d)
    few = n < d
    kernel = X @ X.T if few else X.T @ X
    values, vectors = scipy.linalg.eigh(kernel, subset_by_index=[len(kernel) - found, len(kernel) - 1])
    vectors = X.T @ vectors / np.sqrt(np.maximum(values, 1e-300)) if few else vectors
    W[:, :found] = np.sqrt(d * np.maximum(1 - n / d / np.maximum(values, 1e-300), 0.0)) * vectors
    return W[:, ::-1]


def _by_messages(units: Units, X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, bool, int]:
    n, d = X.shape
    signal: SignalDenoiser = PenalisedDenoiser(Ridge(n / d))
    if isinstance(units, GaussianUnits):
        signal = GaussianDenoiser(n / d)
    start = _LARGE[type(units)] * rng.standard_normal((d, 1))
    found = message_passing(X, ProximalDenoiser(SampleLoss(units.loss, np.zeros(n))), signal, start, rng)
    return found.estimate[:, None], found.converged, found.iterations


@dataclasses.dataclass(frozen=True)
class GaussianDenoiser:
    """The signal side of a Gaussian unit: w = B/(Lambda + A) with Lambda = alpha/(1 - q) at its own q = |w|^2/d."""

    alpha: float

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        A, size = float(precision[0, 0]), np.sqrt(np.mean(B**2))

        def excess(q: float) -> float:
            return np.sqrt(q) * (self.alpha + A * (1 - q)) - size * (1 - q)

        # It rises where Lambda + A is positive, and is positive at q = 1.
        q = crossing(excess, max(0.0, 1 + self.alpha / A) if A < 0 else 0.0, 1.0, 1e-15)
        margin = self.alpha / (1 - q) + A
        response = np.full((1, 1), 1 / margin)
        return SignalStep(B / margin, response, precision, response)
