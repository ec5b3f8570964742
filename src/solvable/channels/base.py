"""The output channel P(y|z) of r >= 1 projections: what a label says about the vector z, and how much on average.

Notation: omega ~ N(0, M) is what is known of z, V = I - M the covariance left, z | omega ~ N(omega, V), and

    Z(y, omega, V) = E_{z ~ N(omega, V)} P(y|z)
    g(y, omega, V) = grad_omega log Z = V^-1 (E[z | y, omega] - omega)
    information    = E[g g^T]  (r x r),        Psi = E[log Z],        dPsi/dM = E[g g^T] / 2.

Averages are asked for at V and not at M: where little is left to learn, 1 - M has lost the digits of V.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.numerics.errors import COARSER
from solvable.numerics.subspaces import tidy
from solvable.targets.target import Target

if TYPE_CHECKING:
    from solvable.channels.predictor import Predictor


_SETTLED = 1e-11
"""A variance at which nothing is left to learn: next to a jump, Psi is its limit up to the root of it."""


class Posterior(NamedTuple):
    """Log evidence (n,), mean (n, r) and covariance (n, r, r) of z given each label and its omega."""

    log_Z: Any
    mean: Any
    covariance: Any


class Information:
    """How much a label says at each of k covariances V: `information` E[g g^T] (k, r, r), `entropy` E[log Z] (k,).

    `error` (k,) estimates the absolute error of the entries of `information`, `entropy_error` (k,) that of `entropy`.
    Where they come from a coarser rule it is evaluated when one of them is first read: who does not ask does not pay.
    """

    def __init__(self, information: Any, entropy: Any, error: Any = 0.0, entropy_error: Any = 0.0):
        self.information = np.asarray(information, float)
        self.entropy = np.asarray(entropy, float)
        self._estimate: Callable[[], tuple[Any, Any]] = lambda: (error, entropy_error)

    @classmethod
    def estimated(cls, information: Any, entropy: Any, estimate: Callable[[], tuple[Any, Any]]) -> Information:
        """With `estimate` () -> (error, entropy_error) called when the errors are asked for, and only once."""
        found = cls(information, entropy)
        found._estimate = estimate
        return found

    @functools.cached_property
    def _errors(self) -> tuple[np.ndarray, np.ndarray]:
        error, entropy_error = self._estimate()
        return np.broadcast_to(error, self.entropy.shape), np.broadcast_to(entropy_error, self.entropy.shape)

    @property
    def error(self) -> np.ndarray:
        return self._errors[0]

    @property
    def entropy_error(self) -> np.ndarray:
        return self._errors[1]


class Average(NamedTuple):
    """E[g g^T] (r x r) and Psi at one V by one rule, with the errors that another fineness would not show."""

    information: np.ndarray
    entropy: float
    error: float = 0.0
    entropy_error: float = 0.0


class LabelLaw(NamedTuple):
    """The law of a label before anything is known: E f(y) = sum of weight * f, over the rows.

    `mean` (L, r) is E[z|y], which is not zero where one step of AMP learns; `G` (L, r, r) is E[z z^T|y] - I, whose
    square sets the weak-recovery threshold where the mean vanishes.
    """

    weight: np.ndarray
    mean: np.ndarray
    G: np.ndarray


class Linearisation(NamedTuple):
    """State evolution around M, in the directions `basis` (r x k, orthonormal columns, M basis = 0).

    `trivial` (k x k) is E[m m^T], m = E[basis^T z | y, omega]: directions in its range are learned at once.
    `easy` (k^2 x k^2) is E[G (x) G], G = Cov of basis^T z given (y, omega), plus m m^T, minus I: an infinitesimal
    overlap dM in these directions becomes alpha F(dM), vec F(dM) = easy vec dM, where `trivial` vanishes.
    `error` estimates the absolute error of both; `trivial_change`, where given, that of `trivial` as a matrix.
    """

    basis: np.ndarray
    trivial: np.ndarray
    easy: np.ndarray
    error: float
    trivial_change: np.ndarray | None = None

    @property
    def zero_level(self) -> float:
        """The size below which an entry cannot be told from zero."""
        return 1e-7 + 5 * self.error

    def trivial_directions(self) -> np.ndarray:
        """The directions (r x k) on which the labels have a mean: the range of `trivial`, above its error."""
        values, vectors = np.linalg.eigh(self.trivial)
        level = np.full(len(values), self.zero_level)
        if self.trivial_change is not None:
            level = 1e-7 + 5 * np.abs(np.sum(vectors * (self.trivial_change @ vectors), 0))
        return tidy(self.basis @ vectors[:, values > level], 1e-3)

    def growing_overlap(self) -> tuple[float, np.ndarray]:
        """The largest rate of growth 1/alpha_c of a small overlap, and the positive matrix (k x k) that grows so.

        It is positive since the map keeps matrices positive. Where several grow equally fast it is the sum of them that
        the iteration from the identity leads to.
        """
        k = self.basis.shape[1]
        values, vectors = np.linalg.eigh((self.easy + self.easy.T) / 2)
        top = vectors[:, values > values[-1] - max(1e-9, 3 * self.error)]
        push = (top @ (top.T @ np.eye(k).ravel())).reshape(k, k)
        return float(values[-1]), (push + push.T) / 2

    def support(self, push: np.ndarray) -> np.ndarray:
        """The directions (r x k) in which a growing overlap has any extent."""
        values, vectors = np.linalg.eigh(push)
        return tidy(self.basis @ vectors[:, values > 1e-3 * values[-1]], 1e-3)


class Channel(abc.ABC):
    """P(y|z) for r >= 1 projections.

    A channel gives what its customers need, and is refused in words where one needs what it has not:

    - state evolution: `information` (by `average`), `linearisation`, `pinned_mass`, `known`, `resolution`,
      `deterministic`, `discrete`;
    - message passing: `observe`, `posterior`, `row_resolution`;
    - spectral methods and exponents: `label_law`;
    - data: `sample`; scores: `predictor`.

    Two channels are equal if they are of one type and have the same `definition`, so equal ones share what was
    computed for either.
    """

    noise: float = 0.0
    """The variance of Gaussian noise added to the label."""

    @property
    @abc.abstractmethod
    def projections(self) -> int:
        """The number r of projections."""

    @property
    @abc.abstractmethod
    def definition(self) -> dict[str, Any]:
        """Everything that defines the channel beside its type: numbers, texts, arrays, targets, channels."""

    def describe(self) -> dict[str, Any]:
        """The type and the definition as plain numbers, texts and lists: equal for equal channels."""
        return {"channel": type(self).__name__} | {name: _plain(value) for name, value in self.definition.items()}

    @functools.cached_property
    def _key(self) -> Any:
        return type(self), _hashable(self.definition)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Channel) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def deterministic(self) -> bool:
        """Whether z fixes the label."""
        return self.noise == 0

    @property
    def discrete(self) -> bool:
        """Whether the noiseless label takes finitely many values."""
        return False

    @property
    def atoms(self) -> np.ndarray:
        """The values that the noiseless label takes with positive probability."""
        return np.zeros(0)

    @property
    def resolution(self) -> float:
        """The smallest eigenvalue of V for which `information` and `posterior` resolve the label's structure."""
        return 1e-6

    @property
    def row_resolution(self) -> float:
        """The smallest eigenvalue of V at which `posterior` is right."""
        return self.resolution

    @property
    def sharp(self) -> bool:
        """Whether I grows without bound as V -> 0, so that perfect recovery can be a fixed point."""
        return self.deterministic

    @functools.cached_property
    def settled_entropy(self) -> float:
        """Psi at V -> 0 of labels that do not pin z down: E[log P(y|z)], zero where z fixes a discrete label."""
        if self.deterministic:
            return 0.0
        return float(self.information(_SETTLED * np.eye(self.projections)[None]).entropy[0])

    @property
    def deepest(self) -> float:
        """log(q / V) of one projection to which averages are computed; beyond, log I and Psi are linear in it."""
        return 24.0

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels (n,) drawn given z (n, r)."""
        self._no_data()

    def observe(self, y: np.ndarray) -> Any:
        """What `posterior` needs of the labels, computed once: independent of omega and V."""
        self._no_data()

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        """The posterior of z at each row; Omega is (n, r), V (r, r) is shared. log_Z may be None without `evidence`."""
        self._no_data()

    def average(self, V: np.ndarray, fineness: float) -> Average:
        """E[g g^T] and Psi at one V (r x r, eigenvalues in (0, 1]) by the rule of one fineness."""
        raise NotSolvable(f"{self!r} has no averages over labels: its state evolution is not known.")

    def information(self, V: np.ndarray, fineness: float = 1.0) -> Information:
        """E[g g^T] and Psi at each V = I - M of a batch (k, r, r); fineness 1 is the rule of results."""
        V = np.asarray(V, float)
        fine = [self.average(v, fineness) for v in V]

        def estimate() -> tuple[np.ndarray, np.ndarray]:
            coarse = [self.average(v, COARSER * fineness) for v in V]
            pairs = list(zip(fine, coarse, strict=True))
            error = [np.abs(a.information - b.information).max() + a.error for a, b in pairs]
            return np.array(error), np.array([abs(a.entropy - b.entropy) + a.entropy_error for a, b in pairs])

        matrices = np.array([found.information for found in fine]).reshape(V.shape)
        return Information.estimated(matrices, [found.entropy for found in fine], estimate)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """How state evolution moves off M in the directions `basis`, in which M vanishes."""
        raise NotSolvable(f"{self!r} has no linearisation: where it begins to be learned is not known.")

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        """The law of the label with the first two conditional moments of z ~ N(0, I)."""
        raise NotSolvable(f"the law of the labels of {self!r} is not known.")

    def pinned_mass(self, directions: np.ndarray) -> float:
        """The probability that, without noise, a label depends on z near z only through directions^T z (r x k), and
        not flatly: then k such labels per unknown pin these directions down exactly."""
        return 0.0

    def known(self, directions: np.ndarray) -> Channel:
        """The channel of the remaining projections once directions^T z (r x k, orthonormal) is known exactly.

        Its label is (y, directions^T z), and its coordinates are those of `complement(directions)`.
        """
        raise NotSolvable(f"{self!r} with some directions known is not solved.")

    def most_growth(self, directions: np.ndarray) -> float | None:
        """A bound of the rate at which a small overlap of other directions grows, whatever is known of these (r x k).

        None where it is the rate that `known` finds, with these known exactly.
        """
        return None

    @property
    def predictor(self) -> Predictor:
        """The best predictions of a fresh noiseless label, and their errors."""
        raise NotSolvable(f"{self!r} has no predictions of fresh labels.")

    def _no_data(self) -> NoReturn:
        raise NotSimulable(f"{self!r} describes labels in theory only: it draws and reads none.")


class TargetChannel(Channel):
    """Labels made of a function of the projections: y = g(z) + sqrt(noise) xi, unless a member says otherwise."""

    target: Target

    @property
    def projections(self) -> int:
        return self.target.projections

    @property
    def definition(self) -> dict[str, Any]:
        return {"target": self.target, "noise": self.noise}

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels y = g(z) + sqrt(noise) xi, for z of shape (n, r)."""
        clean = self.target.numpy(np.asarray(z, float))
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape) if self.noise else clean


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _hashable(part)) for name, part in value.items())
    if isinstance(value, np.ndarray):
        return value.shape, tuple(value.ravel().tolist())
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Target):
        formula = value.text if value.text is not None else value.name
        whole = value.expression is not None and value.projections == value.expression.projections
        return formula if whole else {"formula": formula, "projections": value.projections}
    if isinstance(value, Channel):
        return value.describe()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
