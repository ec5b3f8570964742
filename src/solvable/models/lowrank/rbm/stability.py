r"""Where a Boltzmann machine begins to learn, and where its largest likelihood is what the theory says.

The replicon of one binary unit is one at a point (m, q, V) that three equations fix, with the sample ratio eliminated:

    k = 1 - E[s/(1 - V s)],   alpha = 1/(V k)
    m k = sqrt(theta) E[u g],   q k = m sqrt(theta) E[u g] + V E[g^2],   k = V E[(s/(1 - V s))^2].

They are solved from the weak-spike limit V = theta, q = 2 theta, m = 2 sqrt(q) theta, alpha = 1/theta^2 + 8, or from a
coarse bracket in alpha. So for weak spikes the stable phase begins eight samples per dimension above the transition of
principal components, which is where small weights begin to learn [xu2025learning].
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

from solvable.channels.losses.quadrature import COARSE, Panel, panel
from solvable.core.errors import ComputationError
from solvable.core.registry import thresholds_of
from solvable.core.status import Status
from solvable.engine.solvers.anderson import ProximalEvolution
from solvable.engine.solvers.base import Thresholds
from solvable.models.lowrank.rbm.learners import RBM
from solvable.models.lowrank.rbm.theory import machine, maximum
from solvable.models.lowrank.rbm.units import BinaryUnits
from solvable.models.lowrank.spiked import SpikedCovariance
from solvable.numerics.roots import Bracket, first_beyond, halving

_WEAK = 0.05
"""Below this snr the limit of weak spikes is close enough to start from."""
_DOUBLINGS, _COARSE_HALVINGS, _HALVINGS = 12, 8, 40
_EXACT = 1e-9


@thresholds_of(SpikedCovariance, RBM, references=("baik2005phase", "xu2025learning"))
def machine_thresholds(model: SpikedCovariance, learner: RBM) -> Thresholds:
    """Where the machine begins to learn, and above which alpha its theory holds.

    - `weak_recovery`, where an eigenvalue leaves the bulk: small weights follow the eigenvectors and learn above it.
    - `stability`, of one binary unit: above it the replicon is below 1, and the maximum is what the theory describes.
    """
    with np.errstate(divide="ignore", over="ignore"):
        weak = float(1 / np.float64(model.snr) ** 2)
    if learner.layer != BinaryUnits(1):
        return Thresholds(weak_recovery=weak)
    stability, error = stability_threshold(model) if np.isfinite(weak) else (np.inf, 0.0)
    return Thresholds(weak_recovery=weak, stability=stability, errors={"stability": error} if error > 0 else None)


def stability_threshold(model: SpikedCovariance) -> tuple[float, float]:
    """The alpha at which the replicon is one, and its error; a `ComputationError` where it is not found."""
    theta = float(model.snr)
    if theta < _WEAK:
        start = np.log([2 * theta, 2 * theta, theta])
    else:
        bracket = _bracket(model)
        point = maximum(model, bracket.high)
        start = np.log([abs(point.c), point.q, point.V])
    alpha, error = _solved(start, machine(model, 1.0), theta)
    if error < alpha - 1 / theta**2:
        return alpha, error
    if theta < _WEAK:
        raise ComputationError(
            f"the alpha above which the theory of a binary unit is stable was not found at snr = {theta:.3g}: for so "
            "weak a spike it is weak_recovery, to the precision of numbers."
        )
    bracket = halving(lambda alpha: _stable(model, alpha), bracket.low, bracket.high, _HALVINGS)
    return bracket.high, bracket.high - bracket.low + 1e-14


def _solved(start: np.ndarray, evolution: ProximalEvolution, theta: float) -> tuple[float, float]:
    """The solution of the three equations as alpha, with what coarser quadrature changes; an infinite error if none."""
    from scipy.optimize import root  # loaded when needed: it takes long to import

    alphas = []
    for rule in (panel(), *(panel(nodes) for nodes in COARSE)):
        found = root(_equations, start, (evolution, rule), tol=1e-13)
        # Strong spikes have it at V next to 1, beyond which the proximal operator has several values.
        if not (np.max(np.abs(found.fun)) < _EXACT and found.x[2] < 0):
            return np.nan, np.inf
        alphas.append(float(np.exp(-found.x[2]) / (1 + _averages(found.x, evolution, rule).response)))
        start = found.x
    # k is of order theta for a weak spike, a difference that is known to rounding.
    return alphas[0], 2 * max(abs(alpha - alphas[0]) for alpha in alphas[1:]) + 1e-14 * alphas[0] * (1 + 1 / theta)


def _bracket(model: SpikedCovariance) -> Bracket:
    """Two neighbours of a coarse grid of alpha, the first not stable and the second stable."""
    grid = (1 + 1 / float(model.snr) ** 2) * 2.0 ** np.arange(_DOUBLINGS)
    found = first_beyond(lambda alpha: _stable(model, alpha), [1.0, *grid.tolist()])
    if found is None:
        raise ComputationError(f"no alpha up to {grid[-1]:.3g} was found at which a binary unit is stable.")
    return halving(lambda alpha: _stable(model, alpha), *found, _COARSE_HALVINGS)


def _stable(model: SpikedCovariance, alpha: float) -> bool:
    return int(maximum(model, alpha).status) == int(Status.CONVERGED)


def _equations(x: np.ndarray, evolution: ProximalEvolution, rule: Panel) -> np.ndarray:
    """The three equations as logarithms of ratios, at x the logarithms of (c, q, V)."""
    (c, q, V), out = np.exp(x), _averages(x, evolution, rule)
    m, k = c * np.sqrt(q), 1 + out.response
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.array([out.push / (m * k), (m * out.push + V * out.power) / (q * k), V * out.stiffness / k])
        return np.log(ratios)


def _averages(x: np.ndarray, evolution: ProximalEvolution, rule: Panel) -> Any:
    c, q, V = np.exp(x)
    return jax.device_get(_output_averages(evolution, c * np.sqrt(q), q, V, rule))


@eqx.filter_jit
def _output_averages(evolution: ProximalEvolution, m: Any, q: Any, V: Any, rule: Panel) -> Any:
    return evolution.output.averages(m, q, V, rule)
