r"""A matrix and a tensor that share a factor: two modalities of one unknown.

The tensor alone is beyond every fast algorithm at any fixed noise; the matrix is easy. What the matrix says of the
shared factor opens the tensor, and what is then known of the tensor makes the shared factor better known.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.memory import check_memory
from solvable.core.model import Learner
from solvable.core.ranges import UNIT, Range
from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.engine.erm import ERM
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import FixedPoints, Thresholds
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.lowrank.matrix_tensor.equations import FACTORS, Couplings
from solvable.models.lowrank.matrix_tensor.interaction import Factors, GaussianFactors, MatrixAndTensor
from solvable.models.lowrank.matrix_tensor.solver import FactorSolver
from solvable.priors import Gaussian

_START = 0.5
"""The norm of a start of message passing, over that of one entry of a factor."""


_DEFINITIONS = (
    {f"overlap_{k}": f"of a posterior mean {k}_hat.{k}*/N = |{k}_hat|^2/N, up to signs that stay open" for k in FACTORS}
    | {f"squared_overlap_{k}": f"square of the cosine of {k}_hat and {k}*" for k in FACTORS}
    | {
        "cosine": "that of all four estimates as one vector with the truth, up to the signs that the data leave open",
        "squared_overlap": "square of the cosine; of a posterior mean the mean of the four overlaps, by size",
        "estimation_error": "squared distance of the estimates from the truth over the number of unknowns",
    }
)


class MatrixTensorData(NamedTuple):
    """The `matrix` (N1 x N2), the `tensor` (N1 x N3 x N4), and the factors `truth`, for scoring."""

    matrix: np.ndarray
    tensor: np.ndarray
    truth: Factors


class MatrixTensor(TwoSided):
    r"""A matrix $u v^T/\sqrt{N_1} + \sqrt{\Delta_m}\, Z$ and a tensor $u\otimes x\otimes y/N_1 + \sqrt{\Delta_t}\, Z$.

    Z has independent N(0, 1) entries. The factors have N_k = `ratios`[k] d Gaussian entries, and $|w|^2 = N_k$ each.

    - `matrix_noise`, `tensor_noise`: $\Delta_m$ and $\Delta_t$, from 0 to infinity; a part with infinite noise is not
      seen (all zeros in a data set).
    - `ratios`: the sizes of u, v, x and y over d; theory depends on their quotients only.
    """

    axes = ()
    scaling: ClassVar[str] = "a matrix of d^2 and a tensor of d^3 entries, up to ratios"
    without = (ERM,)
    references = ("tabanelli2025computational", "barbier2017layered")
    definitions: ClassVar[dict[str, str]] = _DEFINITIONS

    matrix_noise: float
    tensor_noise: float
    ratios: tuple[float, float, float, float]

    def __init__(self, matrix_noise: float, tensor_noise: float, ratios: Any = (1.0, 1.0, 1.0, 1.0)):
        self.matrix_noise = _variance("matrix_noise", matrix_noise)
        self.tensor_noise = _variance("tensor_noise", tensor_noise)
        self.ratios = _as_ratios(ratios)

    def output_side(self) -> Couplings:
        return Couplings.of(float(self.matrix_noise), float(self.tensor_noise), self.ratios)

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(Gaussian(), directions=4)

    def solver(self) -> FactorSolver:
        return FactorSolver(self.output_side())

    def gain(self, **axes: Any) -> np.ndarray:
        """One data set."""
        return np.ones(1)

    def instance(self, data: MatrixTensorData) -> Instance:
        operator = MatrixAndTensor(data.matrix, data.tensor, self.output_side())
        blocks = operator.blocks

        def start(rng: np.random.Generator) -> np.ndarray:
            size = _START / math.sqrt(blocks.dimension)
            return blocks.estimate(tuple(size * rng.standard_normal(n) for n in blocks.sizes))

        # As one direction: a run that has stopped did so at the fixed point of its instance, whatever its start.
        denoisers = self.output_side().denoiser(operator), GaussianFactors(blocks)
        return Instance(operator, *denoisers, directions=1, start=start, estimate=blocks.factors)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> MatrixTensorData:
        """Four factors with |w|^2 = N each, and their matrix and tensor."""
        sizes = [max(1, round(float(ratio) * d)) for ratio in self.ratios]
        numbers = float(sizes[0]) * (sizes[1] + 2.0 * sizes[2] * sizes[3])
        check_memory(8.0 * numbers, f"the tensor, {sizes[0]} x {sizes[2]} x {sizes[3]} numbers,", "d", d)
        u, v, x, y = (_on_sphere(rng.standard_normal(size)) for size in sizes)
        matrix = _noisy(rng, u[:, None], v / math.sqrt(len(u)), float(self.matrix_noise))
        tensor = _noisy(rng, u[:, None], np.outer(x, y).ravel() / len(u), float(self.tensor_noise))
        return MatrixTensorData(matrix, tensor.reshape(sizes[0], sizes[2], sizes[3]), Factors(u, v, x, y))

    def prediction(self, points: FixedPoints) -> Prediction:
        q = np.diagonal(points.overlap[0])
        return self.predicted(
            q,
            np.full(4, points.uncertainty[0]),
            posterior=True,
            order_parameters={
                "qhat": np.diagonal(points.field[0]),
                "mutual_information": float(self.output_side().mutual_information(q)),
                "free_entropy": points.free_entropy[0],
            },
            status=Status(int(points.status[0])),
            residual=points.residual[0],
        )

    def predicted(self, squared: np.ndarray, error: np.ndarray, *, posterior: bool, **rest: Any) -> Prediction:
        """The metrics at squared cosines (4,) known up to `error`: of posterior means, or of estimates on spheres."""
        found, *ends = (
            self.metrics(q if posterior else np.sqrt(q), q if posterior else np.ones(4), self.ratios, posterior)
            for q in (squared, np.clip(squared - error, 0.0, 1.0), np.clip(squared + error, 0.0, 1.0))
        )
        off = {name: max(abs(end[name] - value) for end in ends) for name, value in found.items()}
        return Prediction(metrics=found, uncertainty=off, **rest)

    @staticmethod
    def metrics(m: Any, q: Any, sizes: Any, posterior: bool) -> dict[str, float]:
        """All metrics, from w_hat.w*/N and |w_hat|^2/N of the four factors."""
        m, q, share = (np.asarray(part, float) for part in (m, q, sizes))
        share = share / share.sum()
        each = cosines(m, q, np.ones(4))["squared_overlap"]
        found = {f"overlap_{k}": float(value) for k, value in zip(FACTORS, m, strict=True)} if posterior else {}
        found |= {f"squared_overlap_{k}": float(value) for k, value in zip(FACTORS, each, strict=True)}
        found |= {name: float(value) for name, value in cosines(share @ m, share @ q, 1.0).items()}
        return found | {"estimation_error": float(share @ (1 - 2 * m + q))}

    def ranges(self, learner: Learner) -> dict[str, Range]:
        most = 1.0 if learner.posterior_mean else 4.0
        each = {f"{name}_{k}": UNIT for name in ("overlap", "squared_overlap") for k in FACTORS}
        return each | {"estimation_error": Range(0.0, most)}

    def scores(self, estimate: Factors, data: MatrixTensorData, rng: np.random.Generator) -> dict[str, float]:
        return self.scored(estimate, data, posterior=True)

    def scored(self, estimate: Factors, data: MatrixTensorData, *, posterior: bool) -> dict[str, float]:
        """The metrics of a run: neither the matrix nor the tensor changes with u, v, y or x, y."""
        m = np.array([a @ b / len(b) for a, b in zip(estimate, data.truth, strict=True)])
        q = np.array([a @ a / len(a) for a in estimate])
        sizes = np.array([len(part) for part in data.truth])
        signs = np.array([(s, s, t, s * t) for s in (1, -1) for t in (1, -1)])
        return self.metrics(signs[np.argmax(signs @ (sizes * m))] * m, q, sizes, posterior)


@theory(MatrixTensor, BayesOptimal, references=("tabanelli2025computational", "barbier2017layered"))
def bayes_optimal(model: MatrixTensor, learner: BayesOptimal) -> Prediction:
    """The fixed point of smallest mutual information: the exact posterior means."""
    return model.prediction(model.solver().optimal(model.gain()))


@theory(MatrixTensor, AMP, references=("tabanelli2025computational",))
def message_passing(model: MatrixTensor, learner: AMP) -> Prediction:
    """The fixed point that the iteration reaches from an uninformed start."""
    return model.prediction(model.solver().uninformed(model.gain()))


@thresholds_of(MatrixTensor, references=("tabanelli2025computational",))
def thresholds(model: MatrixTensor) -> Thresholds:
    """Noises of the matrix at the model's noise of the tensor, below which something changes (0: none, inf: any).

    matrix_step and tensor_step: message passing finds u and v, and x and y. algorithmic: the second step ends in a
    jump; information_theoretic: Bayes-optimal learning finds x and y; spinodal: the fixed point of both appears.
    """
    return model.solver().thresholds()


def _variance(name: str, value: Any) -> Any:
    if isinstance(value, float) and value == math.inf:
        return math.inf
    return real_number(name, value, "a variance: a number, zero or positive, or infinite", lambda x: x >= 0)


def _as_ratios(value: Any) -> tuple[float, float, float, float]:
    """Four positive numbers, also as a text with commas."""
    takes = "four positive numbers, the sizes of u, v, x and y over d"
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple, np.ndarray)) or np.ndim(parts) != 1 or len(parts) != 4:
        raise bad_parameter("ratios", value, takes)
    try:
        numbers = [float(part) if isinstance(value, str) else part for part in parts]
    except ValueError:
        raise bad_parameter("ratios", value, takes) from None
    u, v, x, y = (real_number("ratios", number, takes, lambda r: r > 0) for number in numbers)
    return u, v, x, y


def _on_sphere(vector: np.ndarray) -> np.ndarray:
    return vector * (math.sqrt(len(vector)) / np.linalg.norm(vector))


def _noisy(rng: np.random.Generator, left: np.ndarray, right: np.ndarray, noise: float) -> np.ndarray:
    """A product with noise on each entry; nothing at all where the noise is infinite."""
    if math.isinf(noise):
        return np.zeros((len(left), len(right)))
    seen = rng.standard_normal((len(left), len(right)))
    seen *= math.sqrt(noise)
    seen += left * right
    return seen
