"""Symmetries of a target: orthogonal S with g(S z) = g(z), which no learner can tell from the identity.

Labels g(W*^T x) are the same for W* and for W* S^T, so an estimate What is as good as What S for every S of the
group, and an overlap matrix M = W*^T What / d means the same as M S.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np

from solvable.targets.directions import close, typical_points
from solvable.targets.target import Target

_POINTS = 240


@dataclasses.dataclass(frozen=True, eq=False)
class Symmetry:
    """The symmetry group of g among signed permutations, and the blocks of coordinates that may be rotated.

    `group` is an array (m, r, r) that starts with the identity; `names` is a readable list of generators;
    `rotations` lists the index tuples (from 0) of coordinates on which g depends through their norm only.
    """

    group: np.ndarray
    names: tuple[str, ...]
    rotations: tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=64)
def symmetries(target: Target) -> Symmetry:
    """The symmetries of g, found from its values at random points."""
    r = target.projections
    z = typical_points(r, _POINTS, seed=13) / 2
    candidates = signed_permutations(r)
    same = _unchanged(target, z, np.einsum("mij,nj->mni", candidates, z))
    group = candidates[same]
    group.flags.writeable = False
    rotations = _rotation_blocks(target, z)
    return Symmetry(group, _generators(group, rotations), rotations)


def align(overlap: np.ndarray, symmetry: Symmetry) -> np.ndarray:
    """M S for the symmetry S that maximises Tr(M S); M of shape (..., r, r).

    On a block that may be rotated, with M S = U s V^T there, the best rotation is V U^T and adds the sum of s.
    """
    candidates = np.asarray(overlap, float)[..., None, :, :] @ symmetry.group
    for block in symmetry.rotations:
        rows, columns = np.ix_(block, block)
        left, _, right = np.linalg.svd(candidates[..., rows, columns])
        best = np.swapaxes(left @ right, -1, -2)
        candidates[..., :, block] = candidates[..., :, block] @ best
    trace = np.trace(candidates, axis1=-2, axis2=-1)
    # Among equals, up to rounding, the first: the identity where nothing is gained.
    chosen = np.argmax(trace >= trace.max(-1, keepdims=True) - 1e-12 * np.abs(trace).max(-1, keepdims=True), axis=-1)
    return np.take_along_axis(candidates, chosen[..., None, None, None], axis=-3)[..., 0, :, :]


@functools.cache
def signed_permutations(r: int) -> np.ndarray:
    """All r! 2^r matrices that permute the coordinates and flip signs, the identity first."""
    flips = np.array(list(itertools.product((1.0, -1.0), repeat=r)))
    permutations = np.eye(r)[np.array(list(itertools.permutations(range(r))))]
    return (flips[None, :, :, None] * permutations[:, None]).reshape(-1, r, r) + 0.0


def _unchanged(target: Target, z: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Whether g is the same at the moved points (m, n, r) as at z (n, r), for each of the m moves."""
    values = target.numpy(moved)
    return np.all(close(values, np.broadcast_to(target.numpy(z), values.shape)), axis=-1)


def _rotation_blocks(target: Target, z: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Coordinates joined by pairs (i, j) whose rotation by arbitrary angles leaves g unchanged."""
    r = target.projections
    angles = np.array([0.7390851332, 2.1213203436])
    block = list(range(r))
    for i, j in itertools.combinations(range(r), 2):
        turn = np.broadcast_to(np.eye(r), (2, r, r)).copy()
        turn[:, i, i] = turn[:, j, j] = np.cos(angles)
        turn[:, j, i], turn[:, i, j] = np.sin(angles), -np.sin(angles)
        if np.all(_unchanged(target, z, np.einsum("mij,nj->mni", turn, z))):
            block = [block[i] if b == block[j] else b for b in block]
    members = (tuple(k for k in range(r) if block[k] == b) for b in dict.fromkeys(block))
    return tuple(m for m in members if len(m) > 1)


def _generators(group: np.ndarray, rotations: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    """Names of rotations, then of the simplest elements that generate the rest of the group."""
    r = group.shape[1]
    names = [f"rotations of ({', '.join(f'z{k + 1}' for k in block)})" for block in rotations]
    # Flips and swaps inside a block generate all that is signed permutation among its rotations and reflections.
    simple = [s for s in group if len(_moved(s)) + 2 * np.any(s < 0) <= 3]
    generators = [s for s in simple if any(set(_moved(s)) <= set(block) for block in rotations)]
    reached = _generated(generators, r)
    for element in sorted(group, key=_complexity):
        if _key(element) not in reached:
            names.append(_name(element))
            generators.append(element)
            reached = _generated(generators, r)
    return tuple(names)


def _moved(s: np.ndarray) -> list[int]:
    """The coordinates that change."""
    return [k for k in range(len(s)) if s[k, k] != 1]


def _key(s: np.ndarray) -> bytes:
    return s.astype(np.int8).tobytes()


def _generated(generators: list[np.ndarray], r: int) -> set[bytes]:
    """Keys of all products of the generators."""
    reached = {_key(np.eye(r)): np.eye(r)}
    frontier = [np.eye(r)]
    while frontier:
        products = (s @ element for element in frontier for s in generators)
        new = {_key(p): p for p in products if _key(p) not in reached}
        reached |= new
        frontier = list(new.values())
    return set(reached)


def _complexity(s: np.ndarray) -> tuple:
    """Flips before permutations; few moved coordinates, no signs and low indices first."""
    moved = _moved(s)
    target = np.argmax(np.abs(s), axis=1).tolist()
    return target != sorted(target), len(moved), int((s < 0).sum()), moved, target, (-s).ravel().tolist()


def _name(s: np.ndarray) -> str:
    """What S does to z, such as 'z1 -> -z1', 'z1 <-> z2' or '(z1, z2) -> (-z2, z1)'."""
    moved = _moved(s)
    before = [f"z{k + 1}" for k in moved]
    after = [f"{'-' if s[k].sum() < 0 else ''}z{np.argmax(np.abs(s[k])) + 1}" for k in moved]
    if len(moved) == 1:
        return f"{before[0]} -> {after[0]}"
    if len(moved) == 2 and np.array_equal(s, s.T) and s[moved[0], moved[1]]:
        return f"{before[0]} <-> {after[0]}"
    return f"({', '.join(before)}) -> ({', '.join(after)})"
