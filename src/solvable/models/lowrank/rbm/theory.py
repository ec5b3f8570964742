r"""What the weights of largest likelihood know of the spike, in the limit of large d.

A binary unit: an output that is the proximal step of $-\log\cosh$ and a ridge of strength alpha,

    prox z = omega + V tanh z,  g = tanh z,  s = 1 - g^2,  omega = sqrt(theta) m u + N(0, q)
    m_hat = alpha sqrt(theta) E[u g],   q_hat = alpha E[g^2],   V_hat = -alpha E[s/(1 - V s)]
    V = 1/(alpha + V_hat),   m = m_hat V,   q = (m_hat^2 + q_hat) V^2,   replicon = alpha V^2 E[(s/(1 - V s))^2].

The operator has one value for V < 1, which takes alpha > 1. The point describes the maximum where the replicon is below
one. With m = 0 it never is: $E g^2 \le q E[g'^2]$ (Poincare) and $q = \alpha V^2 E g^2$ give replicon >= 1.

Gaussian units: the leading eigenvectors of X^T X, at eigenvalues l with Q = 1 - alpha/l, each of which adds
$(l - \alpha - \alpha\log(l/\alpha))/2$ to the log-likelihood over d. The first has left the bulk if
$\alpha\theta^2 > 1$, and then [baik2005phase]

    l = (1 + theta)(alpha + 1/theta),   squared_overlap = (1 - 1/(alpha theta^2)) / (1 + 1/(alpha theta)),

V = 1/(1 + alpha theta) and replicon 1/(alpha theta^2); all others are at the edge $(1 + \sqrt\alpha)^2$.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
from scipy.special import xlogy

from solvable.core.errors import NotSolvable
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.outputs.proximal import ProximalOutput
from solvable.engine.outputs.unlabelled import SpikedInputs
from solvable.engine.sides import Evolution
from solvable.engine.signals.separable import PenalisedSignal
from solvable.engine.solvers.anderson import BLANK, ProximalEvolution, ProximalPoint, moved, solve
from solvable.models.lowrank.rbm.learners import RBM
from solvable.models.lowrank.rbm.units import BinaryUnits, GaussianUnits
from solvable.models.lowrank.spiked import SpikedCovariance
from solvable.numerics.batches import in_batches
from solvable.priors.penalties import Ridge

_LARGEST_V = 0.7
"""That of the start: the proximal operator has one value below 1."""
_ROUNDING = 1e-12
_NEWTON = 8
"""The most steps of Newton's method where the iteration creeps, as it does for weak spikes near the transition."""
_MANY = 8
"""From this number of points on they are solved together: compiling that pays then."""
_NONE = BLANK._replace(status=np.int64(Status.UNSTABLE))
_solve, _moved = eqx.filter_jit(solve), eqx.filter_jit(moved)
_solve_many = eqx.filter_jit(jax.vmap(lambda evolution, gain, start: solve(evolution, gain, start)))


@theory(SpikedCovariance, RBM, references=("xu2025learning", "baik2005phase"))
def largest_likelihood(model: SpikedCovariance, learner: RBM, alpha: np.ndarray) -> Prediction:
    """The maximum of the likelihood, valid where `replicon` is below 1 or the units are Gaussian."""
    units, snr = learner.layer, float(model.snr)
    if isinstance(units, GaussianUnits):
        return principal_components(snr, units.count, alpha)
    if units.count > 1:
        raise NotSolvable(
            f"the maximum of the likelihood is solved for one binary unit, not for {units.count}: they leave nothing "
            "but noise to all but one, where many maxima compete. Use RBMAscent, hidden='gaussian', or simulate."
        )
    points = maxima(model, alpha) if len(alpha) >= _MANY else [maximum(model, value) for value in alpha]
    return _prediction(jax.tree.map(lambda *column: np.array(column), *points), alpha)


def machine(model: SpikedCovariance, alpha: float) -> ProximalEvolution:
    """One binary unit as two sides: -log cosh on the inputs of the model, and a ridge of strength alpha."""
    inputs = SpikedInputs.of(float(model.snr), model.latent)
    sides = Evolution(ProximalOutput(BinaryUnits.loss, inputs), PenalisedSignal.of(Ridge(float(alpha)), model.prior))
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), sides)  # numbers as arrays: one program for all of them


def maximum(model: SpikedCovariance, alpha: Any) -> ProximalPoint:
    """The fixed point of one binary unit, `UNSTABLE` where there is none or its replicon is not below 1."""
    if not _begins(model, alpha):
        return _NONE
    evolution, start, alpha = machine(model, alpha), _start(model, alpha), np.asarray(alpha, float)
    found = jax.device_get(_solve(evolution, alpha, start))
    for _ in range(_NEWTON):
        if found.status != int(Status.MAX_STEPS) or not found.V < 1:
            break
        near = jax.device_get(_moved(found, evolution, alpha))
        found = jax.device_get(_solve(evolution, alpha, np.stack([near.c, np.log(near.q), np.log(near.V)])))
    return _NONE if found.V >= 1 else found


def maxima(model: SpikedCovariance, alpha: np.ndarray) -> list[ProximalPoint]:
    """The same for many alpha at once; what a common number of steps does not solve is solved alone."""
    asked = [value for value in alpha if _begins(model, value)]
    if not asked:
        return [_NONE] * len(alpha)
    evolutions = jax.tree.map(lambda *leaves: np.stack(leaves), *(machine(model, value) for value in asked))
    starts = np.stack([_start(model, value) for value in asked])
    found = in_batches(_solve_many, evolutions, np.array(asked), starts, alone=False)
    rows = iter([jax.tree.map(lambda leaf, k=k: leaf[k], found) for k in range(len(asked))])
    points = []
    for value in alpha:
        point = next(rows) if _begins(model, value) else _NONE
        solved = point.status != int(Status.MAX_STEPS)
        points.append(maximum(model, value) if not solved else _NONE if point.V >= 1 else point)
    return points


def _begins(model: SpikedCovariance, alpha: Any) -> bool:
    """V < 1 takes alpha > 1, and m = 0 has a replicon of at least one."""
    return alpha > 1 and float(model.snr) > 0


def _start(model: SpikedCovariance, alpha: Any) -> np.ndarray:
    """(c, log q, log V) of the first step: the cosine of the principal component where there is one."""
    theta = float(model.snr)
    noise = (1 + 1 / theta) / alpha
    excess = alpha * theta**2 - 1
    squared = excess / (alpha * theta**2 + theta) if excess > 0 else theta / (theta + noise)
    return np.array([np.sqrt(squared), np.log(theta + noise), np.log(min(noise, _LARGEST_V))])


def _prediction(points: ProximalPoint, alpha: np.ndarray) -> Prediction:
    """The metrics at fixed points, each with twice what coarser quadrature changes."""
    metrics = _metrics(alpha, points.c, points.q, points.loss, points.replicon)
    c, q, _, replicon, loss, _ = points.coarse
    coarse = _metrics(alpha, c, q, loss, replicon)
    uncertainty = {
        name: 2 * np.abs(value - coarse[name]) + _ROUNDING * (1 + np.abs(value)) for name, value in metrics.items()
    }
    order = {"m": points.c * np.sqrt(points.q)}
    order |= {name: getattr(points, name) for name in ("q", "V", "m_hat", "q_hat", "V_hat")}
    return Prediction(metrics, order, points.status, points.residual, points.iterations, uncertainty)


def _metrics(alpha: Any, c: Any, q: Any, loss: Any, replicon: Any) -> dict[str, Any]:
    c = np.clip(np.abs(c), 0.0, 1.0)  # the likelihood is the same for w and -w; rounding may put c outside
    gained = {"log_likelihood": -alpha * (loss + q / 2), "replicon": replicon}
    return {"cosine": c, "squared_overlap": c**2, "squared_norm": q} | gained


def principal_components(snr: float, count: int, alpha: np.ndarray) -> Prediction:
    """Gaussian units, for any law of the latent variable and of the spike; without samples the limit of few."""
    theta = np.float64(snr)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = alpha * theta**2 > 1
        edge = (1 + np.sqrt(alpha)) ** 2  # eigenvalues of X^T X, which is alpha times that of X^T X / n
        first = np.where(out, (1 + theta) * (alpha + 1 / theta), edge)
        squared = np.where(out, (1 - 1 / (alpha * theta**2)) / (1 + 1 / (alpha * theta)), 0.0)
        replicon = np.where(out & (count == 1), 1 / (alpha * theta**2), 1.0)
        values = np.stack([first] + [edge] * (count - 1))
        gained = np.sum(values - alpha - xlogy(alpha, values / alpha), axis=0) / 2
    q = np.mean(1 - alpha / values, axis=0)
    metrics = {
        "cosine": np.sqrt(squared),
        "squared_overlap": squared,
        "squared_norm": q,
        "log_likelihood": gained,
        "replicon": replicon,
    }
    uncertainty = {name: _ROUNDING * (1 + np.abs(value)) for name, value in metrics.items()}
    return Prediction(metrics, {"q": q, "eigenvalue": first}, uncertainty=uncertainty)
