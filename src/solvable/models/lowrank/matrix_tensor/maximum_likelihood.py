r"""Joint maximum likelihood: the four factors on spheres that fit matrix and tensor best.

On spheres |w|^2 = N the likelihood is, but for a constant,

    u.Y v / (sqrt(N1) Dm) + T(u, x, y) / (N1 Dt),

whose stationary points are factors parallel to their fields. Message passing normalises each field, w = B sqrt(N)/|B|,
less its Onsager term; alternating maximisation does without that term, and never goes down.

A factor of which nothing is known is as long as any other. So the tensor puts noise of variance a_x a_y / Dt on u
before it says anything of it, and joint maximum likelihood needs a better matrix than one without a tensor: u is found
where

    a_v^2 / Dm^3 > a_v / Dm + a_x a_y / Dt,

which a better tensor makes harder. State evolution is that of the plain iteration. Runs renew u and x in one step and v
and y in the next: all four at once would be two interleaved chains for each pair, whose signs need not agree. A damped
iteration averages the noise of factors that still wander, and gets further than state evolution says.
[tabanelli2025computational, montanari2014statistical]
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.core.registry import simulation, theory, thresholds_of
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.engine.amp import amp
from solvable.engine.interactions import FieldDenoiser
from solvable.engine.sides import SignalStep
from solvable.engine.solvers.base import Thresholds
from solvable.models.lowrank.matrix_tensor.equations import Couplings, Spheres
from solvable.models.lowrank.matrix_tensor.interaction import Blocks, Factors, MatrixAndTensor
from solvable.models.lowrank.matrix_tensor.model import MatrixTensor, MatrixTensorData
from solvable.numerics.roots import crossing, first_beyond

_METHODS = ("amp", "alternating")


class MaximumLikelihood(Learner):
    """All factors at once by maximum likelihood on spheres: joint empirical risk minimisation, from a random start.

    - `method`: `"amp"`, message passing without damping, which state evolution follows, or `"alternating"`, each
      factor in turn at its best given the others, which has no theory.
    - `max_steps`, `tolerance`: the end of a run, in steps or sweeps, and in the relative change of each factor.

    Where a factor is not found message passing does not settle: such a run ends at `max_steps`, not converged.
    """

    method: str = eqx.field(default="amp", static=True)
    max_steps: int = eqx.field(default=300, static=True)
    tolerance: float = 1e-4

    def __check_init__(self):
        if self.method not in _METHODS:
            raise bad_parameter("method", self.method, "'amp' or 'alternating'")
        check_count("max_steps", self.max_steps, least=1)
        real_number("tolerance", self.tolerance, "a number between 0 and 1", lambda x: 0 < x < 1)

    def advice(self, status: Status) -> str | None:
        if status == Status.OUT_OF_DOMAIN:
            return "alternating maximisation can be simulated but has no theory; method='amp' has one"
        return None


@theory(MatrixTensor, MaximumLikelihood, references=("tabanelli2025computational",))
def predict_maximum_likelihood(model: MatrixTensor, learner: MaximumLikelihood) -> Prediction:
    """The fixed point of state evolution from next to nothing; where `replicon` is above 1 runs do not settle there."""
    couplings = model.output_side()
    if learner.method != "amp":
        return model.predicted(np.full(4, np.nan), np.zeros(4), posterior=False, status=Status.OUT_OF_DOMAIN)
    equation = Spheres(couplings)
    u = equation.uninformed()
    error = equation.error(u)
    squared, *ends = couplings.overlaps(np.clip([u, u - error, u + error], 0.0, 1.0))
    noise = noises(couplings)
    cosines = np.sqrt(squared)
    again = 1.0 if equation.noiseless else _ratio(means(couplings, cosines) ** 2, noise)
    residual = float(np.max(np.abs(again - squared) / np.where(squared > 0, squared, 1.0)))
    return model.predicted(
        squared,
        np.max(np.abs(ends - squared), axis=0),
        posterior=False,
        order_parameters={"replicon": replicon(couplings, squared)},
        residual=0.0 if equation.noiseless else residual,
    )


@thresholds_of(MatrixTensor, MaximumLikelihood, references=("tabanelli2025computational",))
def thresholds(model: MatrixTensor, learner: MaximumLikelihood) -> Thresholds:
    """Noises of the matrix at the model's noise of the tensor below which u and v, and x and y, are found (0: none).

    `matrix_noise` is that of u and v, `tensor_step` that of x and y.
    """
    couplings = model.output_side()
    if math.isinf(couplings.tensor):
        return Thresholds(matrix_noise=math.inf, tensor_step=math.inf)
    a_v, tensor = couplings.sizes[1], Spheres(couplings).tensor
    least = 1 / math.sqrt(a_v)
    first = crossing(lambda g: a_v * a_v * g**3 - a_v * g - tensor, least, least + (tensor / a_v**2) ** (1 / 3))

    def found(g: float) -> float:
        return Spheres(dataclasses.replace(couplings, matrix=g)).matrix_stage - couplings.onset

    bracket = (
        first_beyond(lambda g: found(g) > 0, (first * 2.0**k for k in range(200))) if couplings.onset < 1 else None
    )
    second = 0.0 if bracket is None else 1 / crossing(found, bracket.low, bracket.high)
    return Thresholds(matrix_noise=1 / first, tensor_step=second)


def noises(couplings: Couplings) -> np.ndarray:
    """The variances (4,) of the fields of factors on spheres."""
    _, a_v, a_x, a_y = couplings.sizes
    g, h = couplings.matrix, couplings.tensor
    return np.array([a_v * g + a_x * a_y * h, g, a_y * h, a_x * h])


def means(couplings: Couplings, m: np.ndarray) -> np.ndarray:
    """How much of the truth the fields hold (..., 4), at cosines m (..., 4): the G of posterior means at q = m."""
    return couplings.fields(m)


def replicon(couplings: Couplings, squared: np.ndarray) -> float:
    """By how much a small random change of the factors grows in a step of message passing: it settles below 1."""
    _, a_v, a_x, a_y = couplings.sizes
    g, h = couplings.matrix, couplings.tensor
    xy = a_x * a_y * h
    passed = np.array([[0, a_v * g, xy, xy], [g, 0, 0, 0], [a_y * h, 0, 0, a_y * h], [a_x * h, 0, a_x * h, 0]])
    noise = noises(couplings)
    if not np.all(np.isfinite(noise)):
        return 0.0
    passed *= np.divide(1 - squared, noise, out=np.zeros(4), where=noise > 0)[:, None]
    return float(np.max(np.abs(np.linalg.eigvals(passed))))


@simulation(MatrixTensor, MaximumLikelihood, references=("tabanelli2025computational",))
def run_maximum_likelihood(
    model: MatrixTensor, learner: MaximumLikelihood, data: MatrixTensorData, rng: np.random.Generator
) -> Outcome:
    """Message passing or alternating maximisation, from random factors on their spheres."""
    interaction = MatrixAndTensor(data.matrix, data.tensor, model.output_side())
    start = Factors(*(_sphere(rng.standard_normal(size)) for size in interaction.blocks.sizes))
    if learner.method == "alternating":
        estimate, iterations, converged = alternating(interaction, start, learner.max_steps, learner.tolerance)
        details: dict[str, Any] = {"iterations": iterations}
        consistent = True
    else:
        report = amp(
            interaction,
            FieldDenoiser(SphereStrength(interaction.couplings)),
            TwoColours(interaction.blocks, interaction.couplings, start),
            interaction.blocks.estimate(start),
            rng,
            damping=1.0,
            max_steps=int(learner.max_steps),
            tolerance=float(learner.tolerance),
        )
        estimate, converged, consistent = (
            interaction.blocks.factors(report.estimate),
            report.converged,
            report.consistent,
        )
        details = {"iterations": report.iterations, "status": report.status}
    details["log_likelihood"] = log_likelihood(interaction, estimate)
    metrics = model.scored(estimate, data, posterior=False)
    return Outcome(metrics, estimate, converged, details=details, consistent=consistent)


def alternating(
    interaction: MatrixAndTensor, start: Factors, max_steps: int, tolerance: float
) -> tuple[Factors, int, bool]:
    """Each factor in turn parallel to its field, until none moves: the factors, the sweeps, and whether it ended."""
    factors = start
    for sweep in range(1, max_steps + 1):
        before = factors
        for name in Factors._fields:
            factors = factors._replace(**{name: _sphere(interaction.field(name, factors))})
        moves = [np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-300) for a, b in zip(factors, before, strict=True)]
        if max(moves) < tolerance:
            return factors, sweep, True
    return factors, max_steps, False


def log_likelihood(interaction: MatrixAndTensor, factors: Factors) -> float:
    """That of factors on their spheres over the size of u, relative to that of factors of length zero but for norms."""
    fields = interaction.fields(factors)
    return float(factors.v @ fields.v + factors.y @ fields.y) / len(factors.u)


@dataclasses.dataclass(frozen=True)
class SphereStrength:
    """The mean square of the field that cosines 1 - V = m^2 lead to, S(m)^2 + n."""

    couplings: Couplings

    def strength(self, V: np.ndarray) -> np.ndarray:
        m = np.sqrt(np.clip(1 - np.diagonal(V), 0.0, 1.0))
        return np.diag(means(self.couplings, m) ** 2 + noises(self.couplings))


class TwoColours:
    """Fields on their spheres: those of u and x in one step, those of v and y in the next, the others as they were.

    V = 1 - m^2 is n over the mean square of the field, whose mean holds the rest.
    """

    def __init__(self, blocks: Blocks, couplings: Couplings, start: Factors):
        self._blocks, self._noises, self._now = blocks, noises(couplings), start
        self._renewed = np.array([True, False, True, False])

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        fields = self._blocks.unpack(B)
        square = np.array([float(field @ field) / len(field) for field in fields])
        size = np.sqrt(np.maximum(square, 1e-300))
        choice = zip(fields, size, self._now, self._renewed, strict=True)
        self._now = Factors(*(field / s if renew else old for field, s, old, renew in choice))
        response = np.where(self._renewed, 1 / size, 0.0)
        self._renewed = ~self._renewed
        variance = np.minimum(self._noises / np.maximum(square, 1e-300), 1.0)
        return SignalStep(self._blocks.estimate(self._now), np.diag(response), np.diag(square), np.diag(variance))


def _ratio(signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """S^2 / (S^2 + n), zero where there is neither."""
    total = signal + noise
    return np.divide(signal, total, out=np.zeros_like(total), where=total > 0)


def _sphere(vector: np.ndarray) -> np.ndarray:
    norm = float(np.linalg.norm(vector))
    return vector * (math.sqrt(len(vector)) / norm) if norm > 0 else vector
