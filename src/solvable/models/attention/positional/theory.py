r"""The minima of the risk: state evolution of its two branches, and where the lower one changes.

The weights are compared with two orthogonal directions, w* and p: the fixed point of `solvers.anderson` in
$(\theta, m)/\sqrt q$, log q and log V, with the scores of `scores.py` and a ridge. Without overlap with p, or without
overlap with w*, an iteration stays so: from either side it ends in the semantic or the positional branch. The branch of
the lower risk is the minimum. [cui2024phase]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from solvable.channels.losses import Square
from solvable.channels.losses.quadrature import COARSE, panel
from solvable.core.errors import NotSolvable
from solvable.core.precision import float64
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.engine.erm import ERM
from solvable.engine.outputs.proximal import ProximalOutput
from solvable.engine.sides import Evolution
from solvable.engine.signals.separable import PenalisedSignal
from solvable.engine.solvers.anderson import BLANK, ProximalEvolution, ProximalPoint, solve, step
from solvable.models.attention.positional.model import POSITIONAL, SEMANTIC, PositionalSemantic
from solvable.models.attention.positional.scores import AttentionScores
from solvable.priors import Gaussian
from solvable.priors.penalties import Ridge

BRANCHES = (SEMANTIC, POSITIONAL)
_COSINE, _SQUARE = 0.9, 0.5
"""Of the weights that a branch starts from."""
_ROUNDING = 1e-12
_solve, _step = eqx.filter_jit(solve), eqx.filter_jit(step)


@eqx.filter_jit
def _moments(scores: AttentionScores, m: Any, q: Any, V: Any) -> Any:
    return scores.moments(m, q, V, panel())


@eqx.filter_jit
def generalization_error(scores: AttentionScores, m: Any, q: Any) -> Any:
    """E |y - S x|^2 / d for weights of overlaps m = (theta, m) and square q."""
    return scores.error(m, q)


def sides(model: PositionalSemantic, learner: ERM) -> ProximalEvolution:
    """The scores of the model and a ridge, or `NotSolvable`; numbers as arrays: one program for all of them."""
    check(learner, NotSolvable)
    output = ProximalOutput(Square(), scores(model))
    risk = Evolution(output, PenalisedSignal.of(learner.penalty, Gaussian()))
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), risk)


def scores(model: PositionalSemantic) -> AttentionScores:
    """What the model's samples say of scores."""
    numbers = (model.positional, model.place, model.variance)
    return AttentionScores(*(np.asarray(number, float) for number in numbers))


def check(learner: ERM, error: type[Exception]) -> None:
    """Refuse what this risk does not have."""
    learner.check_start(*BRANCHES)
    if not isinstance(learner.loss, Square) or not isinstance(learner.penalty, Ridge) or learner.solver != "direct":
        raise error("attention with places is known for the square loss, a ridge, and solver = 'direct'.")
    if not float(learner.penalty.strength) > 0:
        raise error("attention with places takes a positive penalty: the scores of fitted labels have no bound.")


def branch(risk: ProximalEvolution, alpha: float, name: str) -> ProximalPoint:
    """The fixed point of one branch at alpha > 0."""
    start = np.zeros(4)
    start[BRANCHES.index(name)] = _COSINE
    start[2:] = np.log(_SQUARE), np.log(0.5 / float(risk.signal.penalty.strength))
    return jax.device_get(_solve(risk, np.float64(alpha), start))
