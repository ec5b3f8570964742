r"""The minima of the risk: state evolution of its two branches, and where the lower one changes.

The weights are compared with two orthogonal directions, w* and p: the fixed point of `solvers.anderson` in
$(\theta, m)/\sqrt q$, log q and log V, with the scores of `scores.py` and a ridge. Without overlap with p, or without
overlap with w*, an iteration stays so: from either side it ends in the semantic or the positional branch. The branch of
the lower risk is the minimum. [cui2024phase]
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import numpy as np

from solvable.channels.losses import Square
from solvable.channels.losses.quadrature import panel
from solvable.core.errors import ComputationError, NotSolvable
from solvable.core.precision import float64
from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.engine.erm import ERM
from solvable.engine.outputs.proximal import ProximalOutput
from solvable.engine.sides import Evolution
from solvable.engine.signals.separable import PenalisedSignal
from solvable.engine.solvers.anderson import BLANK, ProximalEvolution, ProximalPoint, solve, step
from solvable.engine.solvers.base import Thresholds
from solvable.models.attention.positional.model import POSITIONAL, SEMANTIC, PositionalSemantic
from solvable.models.attention.positional.scores import COARSER, AttentionScores
from solvable.numerics.gaussian import normal_trapezoid
from solvable.numerics.roots import crossing, first_beyond
from solvable.priors import Gaussian
from solvable.priors.penalties import Ridge

BRANCHES = (SEMANTIC, POSITIONAL)
_COSINE, _SQUARE = 0.9, 0.5
"""Of the weights that a branch starts from."""
_ROUNDING = 5e-11
_RTOL = 1e-8
"""Of the fixed point: quadrature that follows jumps is no smoother."""
_NOTHING = 1e-5
"""An overlap below this is none."""
MOST_JUMPS = 1 / 3
"""The largest share of jumps in the response up to which runs were found to agree."""
_LANDING, _LANDING_STEP, _SETTLED, _VANISHING = 80, 0.25, 0.03, 1e-7
"""Steps before the solver: their share of a whole step, since log q overshoots by a factor of three to five."""
_TRANSITION, _TURNS, _FARTHEST = 1e-3, 30, 100.0
_solve, _step = eqx.filter_jit(solve), eqx.filter_jit(step)


@eqx.filter_jit
def _moments(scores: AttentionScores, m: Any, q: Any, V: Any) -> Any:
    return scores.moments(m, q, V, panel())


@eqx.filter_jit
def generalization_error(scores: AttentionScores, m: Any, q: Any, coarser: Any = 1.0) -> Any:
    """E |y - S x|^2 / d for weights of overlaps m = (theta, m) and square q."""
    return scores.error(m, q, coarser)


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


def law_of(risk: ProximalEvolution) -> AttentionScores:
    """The scores of a risk that `sides` made."""
    return cast("AttentionScores", risk.output.labels)


def check(learner: ERM, error: type[Exception]) -> None:
    """Refuse what this risk does not have."""
    learner.check_start(*BRANCHES)
    if not isinstance(learner.loss, Square) or not isinstance(learner.penalty, Ridge) or learner.solver != "direct":
        raise error("attention with places is known for the square loss, a ridge, and solver = 'direct'.")
    if not float(learner.penalty.strength) > 0:
        raise error("attention with places takes a positive penalty: the scores of fitted labels have no bound.")


class Branch(NamedTuple):
    """A fixed point and how far it is to be trusted: `status`, and `jumps`, the share of the response by jumps."""

    point: ProximalPoint
    status: Status
    jumps: float

    @property
    def overlaps(self) -> np.ndarray:
        """(theta, m), up to their signs, which labels do not show."""
        return np.abs(self.point.c) * np.sqrt(self.point.q)


def branch(risk: ProximalEvolution, alpha: float, name: str) -> Branch:
    """The fixed point of one branch at alpha."""
    law, strength = law_of(risk), float(risk.signal.penalty.strength)
    zero = at_zero(law, strength, alpha)
    start = _landed(risk, alpha, _start(law, strength, name), zero is not None) if alpha > 0 else None
    if start is None:
        return Branch(zero or BLANK, Status.CONVERGED, 0.0)
    point = jax.device_get(_solve(risk, np.float64(alpha), start, rtol=_RTOL))
    status = Status(int(point.status))
    if status != Status.CONVERGED:
        return Branch(point, status, np.nan)
    found = _moments(law, point.c * np.sqrt(point.q), point.q, point.V)
    jumps = 1 - float(found.response / found.smooth)
    # A slope above one along an overlap that is zero: the point is the lowest one in its half only, a saddle.
    saddle = any(abs(c) < _NOTHING and slope > 1 for c, slope in zip(point.c, np.diag(point.slope), strict=False))
    lost = saddle or point.replicon >= 1 or abs(jumps) > MOST_JUMPS
    return Branch(point, Status.UNSTABLE if lost else status, jumps)


def _start(law: AttentionScores, strength: float, name: str) -> np.ndarray:
    """Weights close to the teacher, or along p as long as the mean label asks, $T - 1/2 = m^2/2$ of scores (m, -m)."""
    x, weight = normal_trapezoid()
    mean = float(weight @ np.asarray(law.labels(np.meshgrid(x, x, indexing="ij"))[0]) @ weight) - 0.5
    size = 2 * max(mean, 0.01) if name == POSITIONAL else _SQUARE
    start = np.zeros(4)
    start[BRANCHES.index(name)] = _COSINE
    start[2:] = np.log(size), np.log(0.5 / strength)
    return start


def _landed(risk: ProximalEvolution, alpha: float, start: np.ndarray, vanishes: bool) -> np.ndarray | None:
    """Where damped steps lead, which stay in their basin; None if to w = 0, which has no place in log q."""
    x, length, before = start, _LANDING_STEP, np.zeros(len(start))
    for _ in range(_LANDING):
        move = np.asarray(_step(x, risk, np.float64(alpha))) - x
        # The more samples, the further a full step overshoots: turning back says so.
        length, before = length * (0.5 if move @ before < 0 else 1.0), move
        x = x + length * move
        if vanishes and x[2] < np.log(_VANISHING):
            return None
        if np.max(np.abs(move)) < _SETTLED:
            break
    return x


def at_zero(law: AttentionScores, strength: float, alpha: float) -> ProximalPoint | None:
    r"""w = 0, where it is a minimum: no direction grows there, neither w* nor p nor a random one.

    With $h = H (1 + \sigma^2 V H)^{-1}$ of the Hessian $H = -\sigma^2 [[t_1, -(t_1 + t_2)/2], [.., t_2]]$ at zero
    scores, $t = T - 1/2$, V solves $V (penalty + \alpha\sigma^2 E\,Tr\,h) = 1$, and the directions grow by

        alpha sigma^2 V E[Tr h - z h z],    -alpha V E[s h s],    alpha (sigma^2 V)^2 E|h|^2 (the square).
    """
    s2 = float(law.variance)
    if alpha == 0:
        return _zero(1 / strength, 0.0, 0.0, law, alpha)
    x, weight = normal_trapezoid()
    z = [part.ravel() for part in np.meshgrid(x, x)]
    weight = np.outer(weight, weight).ravel()
    one, two = (np.asarray(part) - 0.5 for part in law.labels(z))
    H = -s2 * np.array([[one, -(one + two) / 2], [-(one + two) / 2, two]]).transpose(2, 0, 1)
    lowest = float(np.min(np.linalg.eigvalsh(H)))

    def responses(V: float) -> np.ndarray:
        return H @ np.linalg.inv(np.eye(2) + s2 * V * H)

    def excess(V: float) -> float:
        return V * (strength + alpha * s2 * float(weight @ np.trace(responses(V), axis1=1, axis2=2))) - 1

    largest = min(1 / max(-lowest * s2, 1e-300), 1e6 / strength)
    bracket = first_beyond(lambda V: excess(V) >= 0, largest * (1 - 1e-9) * np.linspace(0, 1, 400))
    if bracket is None:
        return None
    V = crossing(excess, *bracket, 1e-12)
    h = responses(V)
    trace = float(weight @ np.trace(h, axis1=1, axis2=2))
    along = float(weight @ (z[0] ** 2 * h[:, 0, 0] + z[1] ** 2 * h[:, 1, 1] + 2 * z[0] * z[1] * h[:, 0, 1]))
    across = float(weight @ (h[:, 0, 0] + h[:, 1, 1] - 2 * h[:, 0, 1]))
    replicon = alpha * (s2 * V) ** 2 * float(weight @ np.sum(h**2, axis=(1, 2)))
    if max(alpha * s2 * V * (trace - along), -alpha * V * across, replicon) >= 1:
        return None
    return _zero(V, alpha * s2 * trace, replicon, law, alpha)


def _zero(V: float, V_hat: float, replicon: float, law: AttentionScores, alpha: float) -> ProximalPoint:
    none, nothing = np.zeros(2), np.float64(0)
    loss = np.asarray(generalization_error(law, none, nothing)) / 2
    numbers = (np.float64(number) for number in (V, V_hat, replicon))
    V, V_hat, replicon = numbers
    return BLANK._replace(
        c=none,
        q=nothing,
        V=V,
        m_hat=none,
        q_hat=nothing,
        V_hat=V_hat,
        replicon=replicon,
        loss=loss,
        energy=alpha * loss,
        status=np.int64(Status.CONVERGED),
        residual=nothing,
        coarse=(none, nothing, V, replicon, loss, np.float64(1)),
    )


@theory(PositionalSemantic, ERM, references=("cui2024phase",))
def risk_minimum(model: PositionalSemantic, learner: ERM, alpha: np.ndarray) -> Prediction:
    """The branch that `start` names, or the one of the lower risk; a saddle or a replicon above 1 is UNSTABLE.

    `jumps` is the share of the response that is due to a proximal operator of two values. There the theory is no more
    than replica symmetric; runs agree with it to one or two per cent up to a share of a third.
    """
    risk = sides(model, learner)
    names = BRANCHES if learner.start is None else (learner.start,)
    chosen = [lowest([branch(risk, float(value), name) for name in names], risk, float(value)) for value in alpha]
    rows = [_row(found, risk, float(value)) for found, value in zip(chosen, alpha, strict=True)]
    metrics, order, uncertainty = (
        {name: np.array([row[k][name] for row in rows]) for name in rows[0][k]} for k in range(3)
    )
    return Prediction(
        metrics,
        order,
        np.array([int(found.status) for found in chosen]),
        np.array([float(found.point.residual) for found in chosen]),
        np.array([int(found.point.iterations) for found in chosen]),
        uncertainty,
    )


def lowest(found: list[Branch], risk: ProximalEvolution, alpha: float) -> Branch:
    """Of the branches that are minima the one of the lowest risk; ambiguous where another is not known to be higher."""
    minima = [each for each in found if each.status == Status.CONVERGED] or found
    best = min(minima, key=lambda each: float(each.point.energy))
    for other in found:
        same = np.allclose(best.overlaps, other.overlaps, atol=_NOTHING)
        errors = sum(_energy_error(each, risk, alpha) for each in (best, other))
        # A branch that was not found has no risk to compare.
        if other is not best and not same and not other.point.energy - best.point.energy > errors:
            return best if best.status != Status.CONVERGED else best._replace(status=Status.AMBIGUOUS_BRANCH)
    return best


def _energy(found: Branch, risk: ProximalEvolution, alpha: float) -> float:
    """The risk as coarser quadrature has it."""
    _, q, _, _, loss, _ = found.point.coarse
    return float(alpha * loss + risk.signal.penalty.strength * q / 2)


def _energy_error(found: Branch, risk: ProximalEvolution, alpha: float) -> float:
    return 2 * abs(float(found.point.energy) - _energy(found, risk, alpha))


def _row(found: Branch, risk: ProximalEvolution, alpha: float) -> tuple[dict[str, float], ...]:
    """Metrics, order parameters in units of scores, and the error of each metric."""
    point, law = found.point, law_of(risk)
    s2 = float(law.variance)
    c, q, _, _, loss, _ = point.coarse
    metrics = scored(law, np.abs(point.c), point.q, point.loss, point.energy)
    coarse = scored(law, np.abs(c), q, loss, _energy(found, risk, alpha), COARSER)
    uncertainty = {
        name: 2 * abs(value - coarse[name]) + _ROUNDING * (1 + abs(value)) for name, value in metrics.items()
    }
    theta, m = found.overlaps
    order = {
        "theta": s2 * theta,
        "m": m,
        "q": s2 * point.q,
        "V": s2 * point.V,
        "replicon": point.replicon,
        "jumps": found.jumps,
    }
    return metrics, {name: float(value) for name, value in order.items()}, uncertainty


def scored(
    law: AttentionScores, c: np.ndarray, q: Any, loss: Any, energy: Any, coarser: float = 1.0
) -> dict[str, float]:
    """The metrics of weights of cosines c with w* and p, and of square q; by rules `coarser`."""
    m = c * np.sqrt(q)
    found = {
        **cosines(m[0], np.float64(q), np.float64(1.0)),
        "positional_overlap": c[1],
        "generalization_error": generalization_error(law, m, np.asarray(q, float), coarser),
        "training_loss": loss,
        "risk": energy,
    }
    return {name: float(value) for name, value in found.items()}


def _cost_of_a_sample(point: ProximalPoint, alpha: float) -> float:
    """Its loss and what moving its scores costs, sigma^2 V E|g|^2 / 2."""
    return float(point.loss + point.V * point.q_hat / (2 * alpha))


@thresholds_of(PositionalSemantic, ERM, references=("cui2024phase",))
@float64
def transition(model: PositionalSemantic, learner: ERM) -> Thresholds:
    r"""`global_transition`: the alpha above which the semantic branch has the lower risk; infinite if it is beyond 100.

    By Newton's method in alpha: the derivative of a risk over d is what one more sample costs, the minimum over its
    scores, $E[l(x) + |x - \omega|^2/(2\sigma^2 V)]$. What is compared are the fixed points, minima or saddles.
    """
    risk, alpha = sides(model, learner), 1.0
    for _ in range(_TURNS):
        semantic, positional = (branch(risk, alpha, name) for name in BRANCHES)
        if semantic.overlaps[0] < _NOTHING:
            move = 0.5
        elif positional.overlaps[1] < _NOTHING:
            move = -0.5
        else:
            ahead = float(semantic.point.energy - positional.point.energy)
            slope = _cost_of_a_sample(positional.point, alpha) - _cost_of_a_sample(semantic.point, alpha)
            move = float(np.clip(ahead / slope / alpha, -0.5, 0.5)) if slope > 0 else 0.5
            if abs(move) < _TRANSITION:
                errors = sum(_energy_error(each, risk, alpha) for each in (semantic, positional))
                error = errors / slope + _TRANSITION * abs(move) * alpha
                return Thresholds(global_transition=alpha * (1 + move), errors={"global_transition": error})
        alpha *= 1 + move
        if alpha > _FARTHEST:
            return Thresholds(global_transition=np.inf)
    raise ComputationError(
        f"where the minimum turns semantic was not found for {model}; compare the risks of start='semantic' and "
        "start='positional' over alpha."
    )
