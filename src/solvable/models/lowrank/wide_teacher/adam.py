r"""A student network trained by Adam on the labels of a wide teacher.

The student $\hat y = \sum_{j\le p} b_j \sigma(v_j\cdot x)$ has the teacher's activation and starts from random weights
$v_j \sim N(0, I_d)$ and the teacher's amplitudes, continued where it is wider. All its numbers are trained on the
square loss of all samples at once, but for a part that is set aside: the student of the step at which the loss on that
part was least is kept. No test sample is seen. There is no theory of it; the Bayes-optimal law bounds it.
[kingma2015adam]
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Data, Learner
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.lowrank.wide_teacher.model import WideTeacher, amplitudes
from solvable.targets.target import Target

_TEST = 20_000
"""Fresh inputs on which the errors of a student are measured."""
_SETTLED = 0.02
"""A run has settled if the best loss aside fell by a smaller share than this in the last tenth of the steps."""


class AdamStudent(Learner):
    """A student network of `width` neurons, trained by Adam with early stopping.

    `steps` full-batch steps of size `learning_rate`; the share `validation` of the samples is set aside to choose the
    step that is kept.
    """

    by_default: ClassVar[bool] = False

    width: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    learning_rate: float
    validation: float

    def __init__(self, width: int, steps: int = 1500, learning_rate: float = 0.02, validation: float = 0.2):
        self.width = check_count("width", width, least=1)
        self.steps = check_count("steps", steps, least=1)
        self.learning_rate = real_number("learning_rate", learning_rate, "a positive number", lambda x: x > 0)
        takes = "a share of the samples, above 0 and below 1"
        self.validation = real_number("validation", validation, takes, lambda x: 0 < x < 1)


@simulation(WideTeacher, AdamStudent, references=("barbier2026sharp", "kingma2015adam"))
def train(model: WideTeacher, learner: AdamStudent, data: Data, rng: np.random.Generator) -> Outcome:
    """Train on the samples but for those set aside; measure on fresh ones."""
    n, d = data.X.shape
    aside = round(float(learner.validation) * n)
    if not 0 < aside < n:
        raise bad_parameter("alpha", n / d, f"large enough for samples to train on and to set aside: there are {n}")
    start = rng.standard_normal((d, learner.width)), amplitudes(float(model.exponent), learner.width)
    parts = (data.X[aside:], data.y[aside:], data.X[:aside], data.y[:aside])
    single = [jnp.asarray(part, jnp.float32) for part in (*start, *parts)]
    rate = jnp.asarray(float(learner.learning_rate), jnp.float32)
    best, losses = _trained(model.activation, learner.steps, rate, *single)
    V, b = (np.asarray(part, np.float64) for part in best)
    losses = np.asarray(losses)
    return Outcome(
        metrics=_scores(model, data, V, b, rng) | {"training_error": _error(model, V, b, *parts[:2])},
        estimate=(V, b),
        converged=_settled(losses),
        details={"iterations": int(np.argmin(losses)), "validation_loss": float(losses.min())},
    )


@functools.partial(jax.jit, static_argnums=(0, 1))
def _trained(activation: Target, steps: int, rate: Any, V: Any, b: Any, X: Any, y: Any, X_aside: Any, y_aside: Any):
    """The student of least loss on the samples set aside, and these losses before each step."""
    optimizer = optax.adam(rate)

    def loss(student: Any, X: Any, y: Any) -> Any:
        V, b = student
        return jnp.mean((y - activation((X @ V)[..., None]) @ b) ** 2)

    def step(state: Any, _: Any) -> Any:
        student, memory, best, least = state
        aside = loss(student, X_aside, y_aside)
        better = aside < least
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), student, best)
        update, memory = optimizer.update(jax.grad(loss)(student, X, y), memory)
        return (optax.apply_updates(student, update), memory, best, jnp.minimum(aside, least)), aside

    start = (V, b)
    state = (start, optimizer.init(start), start, jnp.inf)
    (_, _, best, _), losses = jax.lax.scan(step, state, length=steps)
    return best, losses


def _settled(losses: np.ndarray) -> bool:
    """Whether the least loss aside hardly fell in the last tenth of the steps."""
    before = losses[: max(1, len(losses) - len(losses) // 10)].min()
    return bool(np.isfinite(losses).all() and losses.min() >= (1 - _SETTLED) * before)


def _predicted(model: WideTeacher, X: np.ndarray, V: np.ndarray, b: np.ndarray) -> np.ndarray:
    return model.activation.numpy((X @ V)[..., None]) @ b


def _error(model: WideTeacher, V: np.ndarray, b: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((y - _predicted(model, X, V, b)) ** 2))


def _scores(model: WideTeacher, data: Data, V: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """The errors on fresh inputs against the noiseless label."""
    d = len(data.truth)
    X = rng.standard_normal((_TEST, d)) / np.sqrt(d)
    y, predicted = model.labels(X, data.truth), _predicted(model, X, V, b)
    covariance = np.cov(y, predicted)
    scale = np.sqrt(covariance[0, 0] * covariance[1, 1])
    cosine = float(covariance[0, 1] / scale) if scale > 0 else 0.0
    return {
        "generalization_error": float(np.mean((y - predicted) ** 2)),
        "cosine": cosine,
        "squared_overlap": cosine**2,
    }
