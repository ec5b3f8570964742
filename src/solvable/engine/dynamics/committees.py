r"""Closed averages for committees of erf(z/sqrt(2)) and of z^2: any number of neurons and of directions, no quadrature.

Student and labels are sums of one activation s, $f = \sum_i a_i s(h_i)$ and $y = \sum_k b_k s(z_k) + \sqrt\Delta\,\xi$,
so that with all fields in one vector u = (h, z), Gaussian of covariance C = [[Q, M], [M^T, I]],

    D = y - f = v.s(u),     v = (-a, b),     F_i = a_i D s'(u_i),

and without the output in D, v = (0, b), for the correlation loss. What a flow needs are the averages
$\langle s'_i u_b D\rangle$ and $\langle s'_i s'_j D^2\rangle$ [saad1995online, goldt2019dynamics].

For s(u) = erf(u/sqrt(2)) a slope is a Gaussian weight, $s'(u) = \sqrt{2/\pi}\,e^{-u^2/2}$, under which the fields stay
Gaussian: with S the fields i, or i and j, whose slopes are in the average, their covariance becomes

    C~ = C - C_uS (I + C_SS)^-1 C_Su,     and the slopes leave the factor     (2/pi)^(|S|/2) / sqrt(det(I + C_SS)).

What remains are averages over Gaussian fields of covariance C~,

    <u_b s_c> = sqrt(2/pi) C~_bc / sqrt(1 + C~_cc)
    <s_c s_e> = (2/pi) asin( C~_ce / sqrt((1 + C~_cc)(1 + C~_ee)) ),

the integrals I3 and I4 of Saad and Solla in two lines. No argument of the arcsine comes near 1.

For s(u) = u^2, with V = diag(v) and tau = Tr VC, all follow from Wick's theorem:

    <s'_i u_b D>    = 2 [ tau C + 2 CVC ]_ib
    <s'_i s'_j D^2> = 4 [ (tau^2 + 2 Tr CVCV) C + 4 tau CVC + 8 CVCVC ]_ij.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import erf

from solvable.core.precision import float64
from solvable.engine.dynamics.flow import Averages
from solvable.engine.dynamics.moves import PLAIN, Move, Rates
from solvable.engine.dynamics.student import Student
from solvable.targets.target import Target

ERF, SQUARE = "erf", "square"
_SHARE = math.sqrt(2 / math.pi)
_CLOSE = 1e-12
"""Formulas are the same if their values differ by less than this, relatively."""
_POINTS, _SPREAD = 512, 2.0
"""Where they are compared: normal points, spread wider than the fields."""


class CommitteeRule(eqx.Module):
    r"""Labels and neurons made of one activation, s(u) = erf(u/sqrt(2)) or u^2 by its `kind`.

    The neurons have $\sigma(h) = c\, s(\kappa h) + e$, with c the `scale`, kappa the `stretch` and e the `shift`, and
    the labels are $y = \sum_k b_k c\, s(\kappa z_k)$ + `level` + noise of variance `noise`.
    """

    kind: str = eqx.field(static=True)
    b: Any
    noise: Any
    scale: Any
    stretch: Any
    shift: Any
    level: Any


def average(move: Move, rates: Rates, rule: CommitteeRule, M: Any, Q: Any) -> Averages:
    """<F z>, <F h> and <F F> of p neurons with overlaps M (p x r) and Q (p x p): closed, for `flow.follow`."""
    v, offset = _difference(move.student, rule, move.student.square)
    moments = erf_moments if rule.kind == ERF else square_moments
    p = len(Q)
    of_field, of_slope = moments(_covariance(rule, M, Q), p, v, offset, rule.noise)
    a = rule.scale * jnp.asarray(move.student.second_layer)
    Fu = a[:, None] * of_field
    return Averages(Fu[:, p:], Fu[:, :p], rule.stretch**2 * jnp.outer(a, a) * of_slope)


def label_error(student: Student, rule: CommitteeRule, M: Any, Q: Any) -> Any:
    """E (f - g)^2 without the noise of the labels: twice the risk, whatever the loss is."""
    v, offset = _difference(student, rule, True)
    C = _covariance(rule, M, Q)
    if rule.kind == ERF:
        return offset**2 + _erf_square(C, v)
    CV = C * v
    return (offset + jnp.trace(CV)) ** 2 + 2 * jnp.sum(CV * CV.T)


def erf_moments(C: Any, p: int, v: Any, offset: Any, noise: Any) -> tuple[Any, Any]:
    r"""<s'_i u_b D> (p x n) and <s'_i s'_j (D^2 + noise)> (p x p), s = erf(u/sqrt(2)), for D = v.s(u) + offset.

    C (n x n) is the covariance of all fields, of which the first p have a slope. An offset has no odd partner, so that
    it adds to the noise and does nothing else.
    """

    def with_one_slope(i: Any) -> Any:
        left = 1 + C[i, i]
        tilted = C - jnp.outer(C[i], C[i]) / left
        return _SHARE**2 / jnp.sqrt(left) * (tilted @ (v / jnp.sqrt(1 + jnp.diagonal(tilted))))

    def with_two_slopes(i: Any, j: Any) -> Any:
        one, two, shared = 1 + C[i, i], 1 + C[j, j], C[i, j]
        det = one * two - shared**2
        taken = two * jnp.outer(C[i], C[i]) + one * jnp.outer(C[j], C[j])
        cross = shared * jnp.outer(C[i], C[j])
        tilted = C - (taken - cross - cross.T) / det
        return _SHARE**2 / jnp.sqrt(det) * (_erf_square(tilted, v) + offset**2 + noise)

    i, j = np.triu_indices(p)
    pairs = jax.vmap(with_two_slopes)(i, j)
    return jax.vmap(with_one_slope)(jnp.arange(p)), jnp.zeros((p, p)).at[i, j].set(pairs).at[j, i].set(pairs)


def square_moments(C: Any, p: int, v: Any, offset: Any, noise: Any) -> tuple[Any, Any]:
    """The same for s = u^2, where the mean of D is tau = Tr VC + offset."""
    CV = C * v
    CVC = CV @ C
    tau = jnp.trace(CV) + offset
    of_field = 2 * (tau * C + 2 * CVC)
    of_slope = 4 * ((tau**2 + 2 * jnp.sum(CV * CV.T) + noise) * C + 4 * tau * CVC + 8 * CV @ CVC)
    return of_field[:p], of_slope[:p, :p]


@float64
def committee_rules(target: Target, noise: float, move: Move) -> list[CommitteeRule] | None:
    """The rule for these labels and steps, the only one since nothing is off; None where the averages are not closed.

    They are for plain steps of neurons with c erf(k h) or c h^2, up to a constant, on a target that is, up to another,
    a sum of the same function of each direction with any weights. Formulas do not matter, values do.
    """
    if move.kind != PLAIN or move.copies:
        return None
    read = _read_erf(move.student.activation) or _read_square(move.student.activation)
    if read is None:
        return None
    kind, scale, stretch, shift = read
    z = _SPREAD * np.random.default_rng(0).standard_normal((_POINTS, target.projections))
    with np.errstate(all="ignore"):
        y = target.numpy(z)
    if not np.all(np.isfinite(y)):
        return None
    columns = np.column_stack([scale * _bare(kind, stretch * z), np.ones(len(z))])
    weights = np.linalg.lstsq(columns, y)[0]
    if not _same(columns @ weights, y):
        return None
    numbers = (weights[:-1], noise, scale, stretch, shift, weights[-1])
    return [CommitteeRule(kind, *(jnp.asarray(number, float) for number in numbers))]


def _difference(student: Student, rule: CommitteeRule, output: bool) -> tuple[Any, Any]:
    """v (p + r) and the offset in D = v.s(u) + offset, with the network's output in it or without."""
    a = jnp.asarray(student.second_layer) * float(output)
    return rule.scale * jnp.concatenate([-a, rule.b]), rule.level - rule.shift * jnp.sum(a)


def _covariance(rule: CommitteeRule, M: Any, Q: Any) -> Any:
    """Of the fields kappa (h, z)."""
    return rule.stretch**2 * jnp.block([[Q, M], [M.T, jnp.eye(M.shape[1])]])


def _erf_square(C: Any, v: Any) -> Any:
    """<(v.s(u))^2>, for s = erf(u/sqrt(2)) and fields of covariance C."""
    size = jnp.sqrt(1 + jnp.diagonal(C))
    return _SHARE**2 * (v @ jnp.arcsin(C / jnp.outer(size, size)) @ v)


def _bare(kind: str, u: np.ndarray) -> np.ndarray:
    return erf(u / math.sqrt(2)) if kind == ERF else u**2


def _read_erf(activation: Target) -> tuple[str, float, float, float] | None:
    """Kind, scale c, stretch kappa and shift e if the activation is c erf(kappa z/sqrt(2)) + e.

    The slope at the origin is c kappa sqrt(2/pi), and it falls off by a factor exp(-(kappa z)^2/2): kappa is read where
    it is about 1/e of that at the origin, found from a first reading.
    """
    (shift, _), (top, _) = activation.value_and_slope(np.zeros(2))
    stretch, place = 1.0, 1.0
    for _ in range(3):
        with np.errstate(all="ignore"):
            ratio = float(activation.value_and_slope(place)[1]) / top
        if not 0 < ratio < 1:
            return None
        stretch = math.sqrt(-2 * math.log(ratio)) / place
        place = math.sqrt(2) / stretch
    return _checked(activation, (ERF, float(top / (stretch * _SHARE)), stretch, float(shift)))


def _read_square(activation: Target) -> tuple[str, float, float, float] | None:
    """The same if the activation is c z^2 + e."""
    shift, value = activation.numpy(np.array([[0.0], [1.0]]))
    return _checked(activation, (SQUARE, float(value - shift), 1.0, float(shift)))


def _checked(activation: Target, read: tuple[str, float, float, float]) -> tuple[str, float, float, float] | None:
    kind, scale, stretch, shift = read
    z = np.linspace(-8.0, 8.0, _POINTS) / min(stretch, 1.0)
    with np.errstate(all="ignore"):
        same = _same(scale * _bare(kind, stretch * z) + shift, activation.numpy(z[:, None]))
    return read if same else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.max(np.abs(one - other)) <= _CLOSE * np.max(np.abs(other)))
