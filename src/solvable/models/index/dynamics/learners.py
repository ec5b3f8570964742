r"""Networks trained by gradient descent: one pass over fresh samples, samples seen twice, and whole batches.

The student is $f(x) = \sum_i a_i \sigma(w_i\cdot x)$, $x\sim N(0, I_d)$, its second layer fixed. Steps are
`learning_rate`/d times minus the gradient on one sample, so that a number of samples of order d moves the overlaps
$M_{ik} = w_i\cdot w^*_k$ and $Q_{ij} = w_i\cdot w_j$ by something of order one.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import Matrix, as_matrix, check_count, is_array, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.engine.dynamics.student import Student, as_activation
from solvable.targets.target import Target

RANDOM = "random"


def _as_start(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() == RANDOM:
        return RANDOM
    if isinstance(value, str) or is_array(value):
        return as_matrix("start", value)
    takes = "'random', a number between -1 and 1, or an array of numbers"
    return real_number("start", value, takes, lambda m: -1 <= m <= 1)


def _as_layer(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    rows = as_matrix("second_layer", value if is_array(value) or isinstance(value, str) else [value])
    if len(rows) > 1 and len(rows[0]) > 1:
        raise bad_parameter("second_layer", value, "a list of numbers, one for each neuron")
    return rows[0] if len(rows) == 1 else tuple(row[0] for row in rows)


def _as_self_overlap(value: Any) -> Matrix | None:
    return None if value is None else as_matrix("self_overlap", value)


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise bad_parameter(name, value, "True or False")


class Descent(Learner):
    """What all networks trained by descent have in common: the student and where it starts.

    - `learning_rate`: a step is this over d, times minus the gradient on a sample.
    - `activation`: of the neurons: a formula in z as targets are typed, a name (`"relu"`, `"erf"` for erf(z/sqrt(2))),
      or a function written with `jax.numpy`.
    - `width`: the number p of neurons. `second_layer`: their weights in the output; 1 for one neuron unless told,
      1/sqrt(p) with alternating signs for several.
    - `loss`: `"square"`, or `"correlation"`, -y f, for which the output does not enter the gradient.
    - `start`: the overlaps M (p x r) of the neurons with the target's directions: a number for one neuron (its overlap
      with each direction), an array, or `"random"`: independent directions at size d, which in the limit is M = 0.
    - `self_overlap`: Q (p x p) at the start; unless told neurons have norm one, and share nothing but M M^T.
    """

    by_default: ClassVar[bool] = False

    learning_rate: float
    activation: Target = eqx.field(default="relu", converter=as_activation, static=True)
    width: int = 1
    second_layer: tuple[float, ...] | None = eqx.field(default=None, converter=_as_layer)
    loss: str = eqx.field(default="square", static=True)
    start: Any = eqx.field(default=RANDOM, converter=_as_start)
    self_overlap: Matrix | None = eqx.field(default=None, converter=_as_self_overlap)

    def __check_init__(self):
        real_number("learning_rate", self.learning_rate, "a positive number", lambda x: x > 0)
        check_count("width", self.width, least=1, most=64)
        if self.loss not in ("square", "correlation"):
            raise bad_parameter("loss", self.loss, "'square' or 'correlation'")
        if self.second_layer is not None and len(self.second_layer) != self.width:
            takes = f"{self.width} numbers, one for each neuron" if self.width > 1 else "one number, or width more"
            raise bad_parameter("second_layer", self.second_layer, takes)
        if self.self_overlap is not None and {len(self.self_overlap), *map(len, self.self_overlap)} != {self.width}:
            takes = f"a matrix of {self.width} x {self.width} numbers"
            raise bad_parameter("self_overlap", self.self_overlap, takes)
        if isinstance(self.start, float) and self.width > 1:
            takes = f"'random', or an array with a row for each of the {self.width} neurons"
            raise bad_parameter("start", self.start, takes)

    @property
    def student(self) -> Student:
        """The network."""
        p = int(self.width)
        default = (1.0,) if p == 1 else tuple((-1.0) ** i / math.sqrt(p) for i in range(p))
        return Student(self.activation, self.second_layer or default, self.loss == "square")

    @property
    def on_sphere(self) -> bool:
        """Whether every neuron keeps norm one."""
        return False

    def first_overlaps(self, r: int, d: int | None = None, rng: np.random.Generator | None = None) -> tuple:
        """M (p x r) and Q (p x p) at the start, in the limit, or at size d: then drawn if the start is random."""
        p = int(self.width)
        random = isinstance(self.start, str)
        M = np.zeros((p, r)) if random else self._given(r)
        Q = self._Q(M)
        left = np.linalg.eigvalsh(Q - M @ M.T)
        if left[0] < -1e-12 * max(1.0, float(np.abs(Q).max())):
            takes = f"overlaps that fit together: Q - M M^T has the eigenvalue {left[0]:.3g}, which is negative"
            raise bad_parameter("start", self.start, takes)
        if self.on_sphere and np.abs(np.diag(Q) - 1).max() > 1e-9:
            raise bad_parameter("self_overlap", self.self_overlap, "1 on its diagonal for spherical neurons")
        if random and d is not None and rng is not None:
            M, gram = _drawn(p, r, d, rng)
            if self.self_overlap is not None:  # a random frame in place of random vectors
                return np.linalg.cholesky(Q) @ np.linalg.solve(np.linalg.cholesky(gram), M), Q
            norms = np.sqrt(np.diag(gram))
            return M / norms[:, None], gram / np.outer(norms, norms)
        return M, Q

    def _given(self, r: int) -> np.ndarray:
        p = int(self.width)
        M = np.full((1, r), self.start) if isinstance(self.start, float) else np.array(self.start, float)
        M = M.reshape(p, r) if M.shape in ((1, p * r), (p * r, 1)) and 1 in (p, r) else M
        if M.shape != (p, r):
            raise bad_parameter("start", self.start, f"an array of {p} x {r} overlaps, one a neuron and direction")
        return M

    def _Q(self, M: np.ndarray) -> np.ndarray:
        if self.self_overlap is None:
            shared = M @ M.T
            return shared - np.diag(np.diag(shared)) + np.eye(len(M))
        Q = np.array(self.self_overlap, float)
        if not np.allclose(Q, Q.T, rtol=0, atol=1e-12):
            raise bad_parameter("self_overlap", self.self_overlap, "symmetric")
        return Q


def _drawn(p: int, r: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inner products of p Gaussian vectors with r orthonormal directions (p x r) and each other (p x p), at size d.

    By Bartlett's decomposition: the Gram matrix of their parts in the other d - r dimensions is L L^T, L triangular.
    """
    freedom = d - r - np.arange(p)
    if freedom[-1] < 1:
        raise bad_parameter("d", d, f"at least {r + p}, the number of directions and neurons")
    M = rng.standard_normal((p, r))
    L = np.tril(rng.standard_normal((p, p)), -1) + np.diag(np.sqrt(rng.chisquare(freedom)))
    return M, M @ M.T + L @ L.T


class OnlineSGD(Descent):
    r"""One pass of stochastic gradient descent, a fresh sample a step; alpha = samples seen / d.

    $w_i \leftarrow w_i + (\gamma/d) F_i x$, with $\gamma$ = `learning_rate` and $F_i x$ minus the gradient on the
    sample. With `spherical` the step is projected on the sphere and the neuron normalised. `reduced` runs follow the
    overlaps alone, which have the same law as those of the d-dimensional weights, at a cost that does not depend on d;
    otherwise the weights themselves are trained. See `Descent` for the student and its start.
    """

    spherical: bool = eqx.field(default=True, static=True)
    reduced: bool = eqx.field(default=True, static=True)

    def __check_init__(self):
        _check_flag("spherical", self.spherical)
        _check_flag("reduced", self.reduced)

    @property
    def on_sphere(self) -> bool:
        return self.spherical


class Extragradient(OnlineSGD):
    r"""A step with the gradient that a first step on the same sample leads to; alpha = samples seen / d.

    $\tilde w_i = w_i + (\rho_0/d) F_i(y, h)\, x$ with $\rho_0$ = `extrapolation`, then $w_i \leftarrow w_i +
    (\gamma/d) F_i(y, \tilde h)\, x$: positive looks ahead, negative is sharpness-aware minimisation. The second
    gradient may be on a near-copy of the sample, $x' = s x + \sqrt{1 - s^2}\, x''$ with its own label and s =
    `similarity`: 1 is the sample itself with its label, 0 a fresh one, for which this is plain descent. Near-copies
    have label noise of their own. [arnaboldi2024repetita]
    """

    extrapolation: float = 0.5
    similarity: float = 1.0

    def __check_init__(self):
        real_number("extrapolation", self.extrapolation, "a finite number")
        real_number("similarity", self.similarity, "between 0 and 1", lambda s: 0 <= s <= 1)


class RepeatedSGD(OnlineSGD):
    """Two plain steps on every sample, one after the other; alpha = samples seen / d, two steps each."""


class BatchGD(Descent):
    r"""Steps of gradient descent on batches of n = alpha d samples: the same batch again (`reuse`), or fresh ones.

    $w_i \leftarrow (1 - \eta\lambda) w_i + (\eta/d) \sum_\mu F_i(y_\mu, h_\mu)\, x_\mu$ for `steps` steps, with
    $\eta$ = `learning_rate` and $\lambda$ = `decay`. In steps on the mean gradient of weights of norm one this is the
    rate eta alpha. See `Descent` for the student and its start.
    """

    steps: int = 2
    reuse: bool = eqx.field(default=True, static=True)
    decay: float = 0.0

    def __init__(
        self,
        steps: int = 2,
        learning_rate: float = 1.0,
        reuse: bool = True,
        activation: Any = "relu",
        width: int = 1,
        second_layer: Any = None,
        loss: str = "square",
        start: Any = RANDOM,
        self_overlap: Any = None,
        decay: float = 0.0,
    ):
        self.steps, self.learning_rate, self.reuse, self.decay = steps, learning_rate, reuse, decay
        self.activation, self.width, self.second_layer, self.loss = activation, width, second_layer, loss
        self.start, self.self_overlap = start, self_overlap

    def __check_init__(self):
        check_count("steps", self.steps, least=0, most=1000)
        real_number("decay", self.decay, "zero or positive", lambda x: x >= 0)
        _check_flag("reuse", self.reuse)
