r"""The two sides of a step: what labels say of projections, and what is known of the weights behind them.

Bayes-optimal learning and empirical risk minimisation are one iteration with different denoisers. With r projections
z of an input on the teacher, and an estimate of the weights, the order parameters are r x r matrices,

    m = W*^T W_hat / d,    q = W_hat^T W_hat / d,    V = the mean response of a row of weights to its field,

and half a step turns them into the law of the field that a row of weights sees, and back:

    Output:  (m, q, V) -> (m_hat, q_hat, V_hat),  for each sample         posterior mean, or proximal step of a loss
    Signal:  (m_hat, q_hat, V_hat) -> (m, q, V),  times samples per unknown    posterior mean, shrinkage of any kind

For posterior means under the true law m = q = I - V and m_hat = q_hat = V_hat (Nishimori). Each side has two faces. On
averages it is half a step of state evolution (`average`); on data it is a denoiser of message passing (`denoiser`). A
model is an output, a signal and an operator between them; a new one is usually a new side, not a new solver.
[donoho2009message, bayati2011dynamics, zdeborova2016statistical]
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import equinox as eqx
import numpy as np

from solvable.core.errors import NotSolvable


class Overlap(NamedTuple):
    """What an estimate knows of the truth: m, q and V, each (..., r, r)."""

    m: Any
    q: Any
    V: Any

    @classmethod
    def bayes(cls, V: Any) -> Overlap:
        """The overlaps of a posterior mean that leaves the covariance V: m = q = I - V."""
        known = np.eye(np.shape(V)[-1]) - V
        return cls(known, known, V)


class Field(NamedTuple):
    """The law of the field of a row of weights: mean m_hat w*, covariance q_hat, precision V_hat, each (..., r, r)."""

    m_hat: Any
    q_hat: Any
    V_hat: Any

    @classmethod
    def bayes(cls, precision: Any) -> Field:
        """The field of posterior means, whose three parts are one."""
        return cls(precision, precision, precision)

    def times(self, gain: Any) -> Field:
        """The field of `gain` samples for each unknown, from that of one."""
        return Field(gain * self.m_hat, gain * self.q_hat, gain * self.V_hat)


class OutputStep(NamedTuple):
    r"""What the labels of one data set say: `g` (n, p), and `minus_derivative` (p, p), the mean of $-dg_i/d\Omega_i$.

    `variance` (p, p) is the V that the labels themselves show, where the output measures it; None where V is said by
    the signal. `log_Z()` gives the log evidence $\log Z_{out}(y_i, \Omega_i, V)$ of each label, (n,), and
    `derivatives()` the $dg_i/d\Omega_i$, (n, p, p); None where there is none. They are functions because only the last
    step's are needed. `strength` (p, p) is the precision of the signal's field, for one sample each unknown, that the
    norms of the estimates lead to, where the derivative does not tell it: then it is what a run is judged by.
    `bethe(estimate, response)` is the part of the Bethe free entropy beside that of the signal, where labels have no
    evidence each.
    """

    g: np.ndarray
    minus_derivative: np.ndarray
    variance: np.ndarray | None = None
    log_Z: Callable[[], np.ndarray] | None = None
    derivatives: Callable[[], np.ndarray] | None = None
    strength: np.ndarray | None = None
    bethe: Callable[[np.ndarray, np.ndarray], float | None] | None = None


class SignalStep(NamedTuple):
    r"""What the signal side makes of its field B: `estimate` (d, p); `response` R (p, p), the mean Jacobian of the
    estimate in B; `precision` A (p, p), that of B.

    `variance` (p, p) is the V that the next step shall use, where the signal says it; None for that of a posterior
    mean, I - W^T W / d. `log_partition()` gives the sum over rows of $\log\int dP(w)\, e^{B_k w - w A w/2}$; None where
    there is none.
    """

    estimate: np.ndarray
    response: np.ndarray
    precision: np.ndarray
    variance: np.ndarray | None = None
    log_partition: Callable[[], float] | None = None


class OutputDenoiser(Protocol):
    """Maps (Omega (n, p), V (p, p)) to an `OutputStep`; holds the labels."""

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep: ...


class SignalDenoiser(Protocol):
    """Maps the field B (d, p), and the precision (p, p) that the derivatives of the output show, to a `SignalStep`.

    Under the true law the precision can be read off the norm of B instead, with less noise (`amp.precision_from_norm`).
    """

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep: ...


class Output(abc.ABC):
    """What labels say of r projections."""

    @property
    @abc.abstractmethod
    def projections(self) -> int:
        """The number r of projections."""

    @abc.abstractmethod
    def average(self, state: Overlap) -> Field:
        """Half a step of state evolution: the field of one sample for each unknown, at overlaps (..., r, r)."""

    @abc.abstractmethod
    def denoiser(self, y: np.ndarray) -> OutputDenoiser:
        """The denoiser of these labels (n,)."""

    def likelihood(self) -> Any:
        """P(y|z) of one projection, a `Likelihood`, which learners that minimise a loss need."""
        raise NotSolvable(f"empirical risk minimisation is not known for labels of {self!r}.")

    def with_loss(self, loss: Any) -> Output:
        """The same labels seen by a learner that minimises a loss."""
        return self.likelihood().with_loss(loss)


class Signal(abc.ABC):
    """What is known of the weights, and what a learner makes of a noisy sight of them."""

    @abc.abstractmethod
    def average(self, field: Field) -> Overlap:
        """Half a step of state evolution: the overlaps that fields (..., r, r) lead to."""

    @abc.abstractmethod
    def denoiser(self, operator: Any) -> SignalDenoiser:
        """The denoiser of signals that this operator measures."""

    def with_penalty(self, penalty: Any) -> Any:
        """The same weights sought by a learner with a penalty, a `PenalisedSignal`."""
        raise NotSolvable(
            f"empirical risk minimisation with the penalty {penalty} is not known for weights of {self!r}."
        )


class BayesOutput(Output):
    """Labels read by their posterior under the true law, whose three averages are one."""

    monotone: bool = False
    """Whether the fixed point is known to be unique for every signal it is used with, so that a bracket holds it."""

    def average(self, state: Overlap) -> Field:
        return Field.bayes(self.information(state.V))

    @abc.abstractmethod
    def information(self, V: Any) -> Any:
        r"""$E[g g^T]$ at covariances V (..., r, r), with $g = \nabla_\omega \log Z$."""

    def information_error(self, V: Any) -> Any:
        """The estimated relative error of the information of one projection, elementwise."""
        return np.zeros(np.shape(V))


class BayesSignal(Signal):
    r"""Weights found by their posterior mean under the true law, in one direction or several alike.

    For one direction $B = \hat q w^* + \sqrt{\hat q}\, x$ of precision $\hat q$, weights of unit variance, and

        mmse(qhat) = E[(w* - E[w|B])^2],    overlap = 1 - mmse,    potential' = overlap / 2,   mmse ~ dimension / qhat.
    """

    entropy: float = float("nan")
    """The Shannon entropy of discrete weights: potential - qhat overlap / 2 tends to minus this."""

    def average(self, field: Field) -> Overlap:
        """The overlaps of one direction, from `mmse`."""
        return Overlap.bayes(self.mmse(np.asarray(field.V_hat, float)))

    @property
    @abc.abstractmethod
    def dimension(self) -> float:
        """The information dimension of a weight: mmse ~ dimension / qhat as qhat grows."""

    @abc.abstractmethod
    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        """The error of the posterior mean, elementwise, small values to relative precision."""

    def measured(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """mmse at an array (k,) of qhat from 0 to infinity, and its numerical error."""
        return self.mmse(qhat), np.zeros(np.shape(qhat))

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        """1 - mmse, elementwise, small values to relative precision."""
        return 1 - self.mmse(qhat)

    def moments(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """overlap and mmse, elementwise; at once where that is cheaper."""
        return self.overlap(qhat), self.mmse(qhat)

    @abc.abstractmethod
    def potential(self, qhat: np.ndarray) -> np.ndarray:
        """E log of the evidence of B relative to pure noise, elementwise: half the integral of the overlap."""

    def information(self, qhat: np.ndarray) -> np.ndarray:
        """The mutual information of a weight and its field, qhat / 2 - potential: half the integral of mmse."""
        return np.asarray(qhat, float) / 2 - self.potential(qhat)


OutputT = TypeVar("OutputT", bound=Output)
SignalT = TypeVar("SignalT", bound=Signal)


class Evolution(eqx.Module, Generic[OutputT, SignalT]):
    """The iteration of an output and a signal, as message passing follows it step by step when d is large.

    `solvers` find its fixed points; no solver is needed to run it. JAX sees the numbers of sides that are its modules.
    """

    output: OutputT
    signal: SignalT

    def step(self, state: Overlap, gain: Any) -> Overlap:
        """One step from the overlaps (..., r, r), with `gain` samples for each unknown."""
        return self.signal.average(self.output.average(state).times(gain))

    def path(self, state: Overlap, gain: Any, steps: int) -> list[Overlap]:
        """The overlaps before the first step and after each."""
        states = [state]
        for _ in range(steps):
            states.append(self.step(states[-1], gain))
        return states
