r"""Averages over the fields of a single neuron, by quadrature that ends its panels on every kink.

For one neuron $h = m\cdot z + s\,\xi$ with $s^2 = q - |m|^2$. The directions z run over a fixed rule whose panels end
where the target breaks; given the label, $h \sim N(m\cdot z, s^2)$ runs over panels that follow the state and end where
the force jumps: on the kinks b of the activation and, after a look ahead, where $h + \rho_0 F(y, h) = b$.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSolvable
from solvable.engine.dynamics.flow import Averages
from solvable.engine.dynamics.moves import PLAIN, TWICE, Move, Rates
from solvable.engine.dynamics.student import Student
from solvable.numerics.batches import in_batches
from solvable.numerics.gaussian import gauss_legendre, normal_density, normal_trapezoid, panels
from solvable.numerics.roots import halving
from solvable.numerics.subspaces import complement
from solvable.targets.adapted import adapted_basis
from solvable.targets.axis_breaks import axis_breaks
from solvable.targets.hermite import gauss_pieces
from solvable.targets.landscape import landscape
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

_EDGES = (-9.0, -5.5, -3.0, -1.5, 0.0, 1.5, 3.0, 5.5, 9.0)
"""Ends of panels of h, in units of s, and of z."""
_NODES = {1: 10, 2: 14, 3: 8}
"""Nodes of z: on each panel of one direction, on each piece of an axis of several."""
_INNER, _STEP, _NOISE = 10, 0.3, {1: 16, 2: 10, 3: 6}
_COARSER = {1: 0.75, 2: 0.85, 3: 0.75}
"""Of two directions the fine rule is so much better than one of 0.75 that this would say nothing of its error."""
_BLOCK = 16
"""Numbers of nodes are rounded up to this, so that targets share compiled programs."""
_REACH, _GRID = 12.0, 961
_MOST_BREAKS = 24
_BESIDE = np.array([-0.5, -0.12, -0.03, 0.0, 0.03, 0.12, 0.5])


class NeuronRule(NamedTuple):
    """Directions `z` (n, r), labels `y` (n) and their `weight`; `breaks` of h for each (n, k).

    `inner` and `inner_weight` are a rule on [0, 1] for the panels of h or, where nothing breaks, one for its normal xi.
    """

    z: Any
    y: Any
    weight: Any
    breaks: Any
    inner: Any
    inner_weight: Any


def fields(rule: NeuronRule, mean: Any, s: Any) -> tuple[Any, Any]:
    """For each label the nodes of h ~ N(mean, s^2), mean (n), and their weights, both (n, k)."""
    mean = mean[:, None]
    if not rule.breaks.shape[1]:
        return mean + s * rule.inner, jnp.broadcast_to(rule.inner_weight, (len(mean), len(rule.inner)))
    ends = mean + s * jnp.asarray(_EDGES)
    inside = jnp.clip(rule.breaks, ends[:, :1], ends[:, -1:])
    edges = jnp.sort(jnp.concatenate([ends, inside], axis=1), axis=1)
    length = jnp.diff(edges, axis=1)[..., None]
    h = (edges[:, :-1, None] + length * rule.inner).reshape(len(edges), -1)
    density = jnp.exp(-(((h - mean) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
    return h, (length * rule.inner_weight).reshape(h.shape) * density


def average(move: Move, rates: Rates, rule: NeuronRule, M: Any, Q: Any) -> Averages:
    """<F z>, <F h> and <F F> of one neuron with overlaps M (1 x r) and Q (1 x 1)."""
    m, q = M[0], Q[0, 0]
    h, weight = fields(rule, rule.z @ m, jnp.sqrt(jnp.maximum(q - m @ m, 1e-30)))
    force = move.force(rule.y[:, None], h[..., None], rates)[..., 0]
    weighted = rule.weight[:, None] * weight * force
    of_z = jnp.sum(weighted, 1)
    return Averages((of_z @ rule.z)[None], jnp.sum(weighted * h)[None, None], jnp.sum(weighted * force)[None, None])


def label_errors(student: Student, rules: list[NeuronRule], M: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """E (f - g)^2 of single neurons with overlaps M (k, 1, r) and Q (k, 1, 1) by each rule, (rules, k)."""
    return np.stack([in_batches(functools.partial(_label_errors, student, rule), M, Q) for rule in rules])


@functools.partial(jax.jit, static_argnums=0)
def _label_errors(student: Student, rule: NeuronRule, M: Any, Q: Any) -> Any:
    def one(state: Any) -> Any:
        m, q = state[0][0], state[1][0, 0]
        h, weight = fields(rule, rule.z @ m, jnp.sqrt(jnp.maximum(q - m @ m, 1e-30)))
        return jnp.sum(rule.weight * jnp.sum(weight * (student.output(h[..., None]) - rule.y[:, None]) ** 2, 1))

    return jax.lax.map(one, (M, Q))


@functools.lru_cache(maxsize=32)
def neuron_rules(target: Target, noise: float, move: Move, rates: Rates) -> list[NeuronRule]:
    """The rule for these labels and steps, and a coarser one that shows its error, in arrays of one shape."""
    fine, coarse = (_rule(target, noise, move, rates, fineness) for fineness in (1.0, _COARSER[target.projections]))
    rows = -(-max(len(fine.y), len(coarse.y)) // _BLOCK) * _BLOCK
    breaks, inner = (max(fine[k].shape[-1], coarse[k].shape[-1]) for k in (3, 4))
    return [_padded(rule, rows, breaks, inner) for rule in (fine, coarse)]


def _rule(target: Target, noise: float, move: Move, rates: Rates, fineness: float) -> NeuronRule:
    kinks = move.student.activation.breaks
    cuts = tuple(_level_cuts(target, move, rates, kinks)) if target.projections == 1 else ()
    # Labels of a look ahead enter steeply where they are large.
    z, weight, y = directions(target, fineness if move.linear or target.projections > 1 else 1.4 * fineness, cuts)
    if noise > 0:
        # A force linear in the label has no other moments of it than the first two, which +-1 has too.
        xi, share = _noise_nodes(2 if move.linear else round(_NOISE[target.projections] * fineness))
        y = (y[:, None] + math.sqrt(noise) * xi).ravel()
        weight, z = np.outer(weight, share).ravel(), np.repeat(z, len(xi), axis=0)
    breaks = np.broadcast_to(kinks, (len(y), len(kinks)))
    if not len(kinks):
        return NeuronRule(
            z, y, weight, breaks, *normal_trapezoid((_STEP if move.linear else _STEP / 2) / fineness, 9.0)
        )
    if move.kind != PLAIN:
        breaks = np.concatenate([breaks, _moved_kinks(move, rates, kinks, y)], axis=1)
    return NeuronRule(z, y, weight, breaks, *gauss_legendre(round(_INNER * fineness)))


def _padded(rule: NeuronRule, rows: int, breaks: int, inner: int) -> NeuronRule:
    """The rule with nodes of weight zero added, and breaks where nothing is."""
    more, kinds = rows - len(rule.y), breaks - rule.breaks.shape[1]
    z, y, lines = (np.concatenate([part, np.repeat(part[:1], more, 0)]) for part in (rule.z, rule.y, rule.breaks))
    lines = np.concatenate([lines, np.full((rows, kinds), -1e3)], axis=1)
    own, own_weight = (np.pad(part, (0, inner - len(part))) for part in (rule.inner, rule.inner_weight))
    return NeuronRule(*map(jnp.asarray, (z, y, np.pad(rule.weight, (0, more)), lines, own, own_weight)))


def _level_cuts(target: Target, move: Move, rates: Rates, kinks: np.ndarray) -> list[float]:
    """Where panels of one direction end besides the breaks of g.

    On the kinks b and -b and close beside: an aligned neuron, h close to z or to -z, jumps there. After a look ahead
    also where the label is such that the first step carries the fields beside one kink onto another, or leaves them
    there: F(y, b) is linear in y, so these labels are known.
    """
    cuts = list(np.ravel(np.concatenate([kinks, -kinks])[:, None] + _BESIDE))
    if move.kind == PLAIN or not len(kinks):
        return cuts
    size = float(rates.learning_rate if move.kind == TWICE else rates.extrapolation)
    levels = []
    for b, other, side in itertools.product(kinks, kinks, (-1e-9, 1e-9)):
        at_zero, at_one = (float(move.student.force(jnp.asarray(y), jnp.asarray([b + side]))[0]) for y in (0.0, 1.0))
        slope = size * (at_one - at_zero)
        if abs(slope) > 1e-12:
            levels.append((other - b - size * at_zero) / slope)
    roots, there = landscape(target).preimages(np.array(sorted({round(level, 12) for level in levels})))
    return [*cuts, *roots[there]]


def _noise_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    xi, weight = np.polynomial.hermite_e.hermegauss(count)
    return xi, weight / weight.sum()


@functools.lru_cache(maxsize=64)
def directions(
    target: Target, fineness: float, cuts: tuple[float, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z (n, r) of the standard Gaussian, their weights, and g there.

    Panels end where g breaks: on planes along its adapted axes, with one direction on every break and the `cuts`.
    """
    if target.projections == 1:
        inside = [b for b in (*target.breaks, *cuts) if abs(b) < _EDGES[-1]]
        z, weight = panels(np.unique([*_EDGES, *inside]), round(_NODES[1] * fineness), graded=False)
        z, weight = z[:, None], weight * normal_density(z)
    else:
        basis = adapted_basis(target)
        turned = target if np.array_equal(basis, np.eye(len(basis))) else rotate(target, basis)
        breaks = [*axis_breaks(turned), *([np.zeros(0)] * (len(basis) - basis.shape[1]))]
        rules = [gauss_pieces(tuple(b.tolist()), round(_NODES[len(basis)] * fineness)) for b in breaks]
        u, weight = (_outer([rule[k] for rule in rules]) for k in (0, 1))
        z, weight = u @ np.concatenate([basis, complement(basis)], axis=1).T, weight.prod(axis=1)
    with np.errstate(over="ignore"):
        y = target.numpy(z)
    keep = (weight > 1e-17) & np.isfinite(y)
    return z[keep], weight[keep], y[keep]


def _outer(columns: list[np.ndarray]) -> np.ndarray:
    return np.stack([grid.ravel() for grid in np.meshgrid(*columns, indexing="ij")], axis=-1)


def _moved_kinks(move: Move, rates: Rates, kinks: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For each label the fields h that the first step carries onto a kink, in order; far outside where none is."""
    grid = np.linspace(-_REACH, _REACH, _GRID) + 1e-3 * math.pi / 4  # off the round numbers where kinks sit
    size = float(rates.learning_rate if move.kind == TWICE else rates.extrapolation)
    moved = jax.jit(lambda y, h: h + size * move.student.force(y, h[..., None])[..., 0])
    labels, where = np.unique(y, return_inverse=True)
    values = in_batches(lambda y: moved(y[:, None], jnp.asarray(grid)), labels, batch=1024, alone=False)
    found = []
    for kink in kinks:
        above = values > kink
        row, place = np.nonzero(above[:, 1:] != above[:, :-1])
        side, label = jnp.asarray(above[row, place]), jnp.asarray(labels[row])
        ends = jnp.asarray(grid[place]), jnp.asarray(grid[place + 1])
        found.append((row, np.asarray(halving(lambda h: (moved(label, h) > kink) != side, *ends).high)))  # noqa: B023
    row, root = (np.concatenate([part[k] for part in found]) for k in (0, 1))
    order = np.lexsort((root, row))
    row, root = row[order], root[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)
    most = int(place.max(initial=-1)) + 1
    if most > _MOST_BREAKS:
        raise NotSolvable("the first step crosses kinks of the activation too often for a quadrature; take it smaller.")
    padded = np.full((len(labels), most), -1e3)
    padded[row, place] = root
    return padded[where.ravel()]
