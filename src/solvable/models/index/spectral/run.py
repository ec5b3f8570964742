r"""The two spectral methods of an index model on one instance, for any number of projections.

Each block of the labels' second moments (`blocks`) has operators of its own. Above the block's threshold the theory
says which of its leading eigenvectors carry it: one for each copy, after the `larger` ones, which belong to other
directions. At finite size a block's operator is split off exactly, so eigenvectors of different blocks never mix,
although all blocks of the symmetric operator have the same outlier.

An eigenvector has no length: its estimate is scaled to the predicted overlap matrix, $\hat W^T \hat W/d = Q$, which
makes it a posterior mean at large d. Nor does it tell a sign, or a rotation among copies of a block: of these the one
is taken under which the labels are most likely.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import expm

from solvable.channels import Channel
from solvable.core.learners import Spectral
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.amp import uninformed_start
from solvable.engine.cosines import cosines_of
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.scores import aligned, scores
from solvable.models.index.spectral.blocks import Block, label_blocks
from solvable.models.index.spectral.operators import Eigenvectors, asymmetric, symmetric
from solvable.models.index.spectral.spectrum import BlockSpectrum, block_spectrum
from solvable.models.index.spectral.theory import law_of

_EVIDENCE_ROWS = {2: 2000, 3: 500}
"""How many labels count, by the number of projections: a posterior of three costs a hundred times one of two."""
_ROTATIONS = 24
_ROTATION_STEPS = 60


class SpectralEstimate(NamedTuple):
    """The estimate W (d x r) and its leave-one-out fields Omega (n x r), with the predicted overlap Q (r x r).

    Where theory says that nothing is learned W is zero, and `direction` (d x r), otherwise W, is made of the leading
    eigenvectors. `eigenvalues` holds the leading ones of each block, from the one that carries it.
    """

    W: np.ndarray
    Omega: np.ndarray
    Q: np.ndarray
    direction: np.ndarray
    eigenvalues: list[np.ndarray]
    converged: bool


@simulation(MultiIndex, Spectral, references=("mondelli2017fundamental", "maillard2020phase", "defilippis2025optimal"))
def run_spectral(model: MultiIndex, learner: Spectral, data: Data, rng: np.random.Generator) -> Outcome:
    """The leading eigenvectors of `learner.kind`, scaled to their predicted overlap.

    `cosine` and `squared_overlap` are those of the leading eigenvectors if theory says that nothing is learned.
    """
    found = spectral_estimate(model, learner.kind, data, rng)
    metrics = scores(model, found.W, data.truth, rng)
    metrics |= cosines_of(aligned(model, found.direction, data.truth), data.truth)
    details: dict[str, Any] = {"self_overlap": found.Q, "eigenvalues": found.eigenvalues}
    if model.projections == 1:
        del metrics["overlap"]  # with one projection it is the squared overlap, and goes by that name
        first, second = (*found.eigenvalues[0], np.nan, np.nan)[:2]
        details = {"eigenvalue": float(first), "second_eigenvalue": float(second), "self_overlap": float(found.Q[0, 0])}
    return Outcome(metrics, found.W, found.converged, details=details)


def spectral_start(model: MultiIndex, data: Data, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    r"""A start for message passing and its Onsager term: $\hat W$ (d x r), and $X \hat W - \Omega$ (n x r).

    $\hat W$ is the estimate of the symmetric method, and $\Omega = (I - V T)\, X \hat W$ with $V = I - Q$ its fields
    without the sample they belong to: an eigenvector at 1 is a fixed point of message passing for the labels'
    likelihood to second order, $\exp(z^T T z/2)$ [mondelli2021approximate]. Without anything to learn the start is
    noise, which needs no term.
    """
    found = informative_start(model, data, rng)
    return found or (uninformed_start(rng, *data.truth.shape), np.zeros((len(data.y), data.truth.shape[1])))


def informative_start(model: MultiIndex, data: Data, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
    """`spectral_start` where the eigenvectors carry something, None where they do not, or the data are not numbers."""
    if not (np.isfinite(data.X).all() and np.isfinite(data.y).all()):
        return None
    law, alpha = law_of(model.channel), np.array(len(data.y) / len(data.truth))
    if not any(block_spectrum(law, block, "symmetric", alpha).learned for block in label_blocks(law)):
        return None
    found = spectral_estimate(model, "symmetric", data, rng)
    return (found.W, data.X @ found.W - found.Omega) if found.converged else None


def spectral_estimate(model: MultiIndex, kind: str, data: Data, rng: np.random.Generator) -> SpectralEstimate:
    """The spectral method `kind` on one instance; the truth is not used."""
    n, d = data.X.shape
    r = model.projections
    output = model.channel
    posterior = output.posterior(output.observe(data.y), np.zeros((n, r)), np.eye(r), evidence=False)
    G = posterior.covariance + posterior.mean[:, :, None] * posterior.mean[:, None, :] - np.eye(r)
    law = law_of(output)
    spectra = [(block, block_spectrum(law, block, kind, np.array(n / d))) for block in label_blocks(law)]
    learned = [pair for pair in spectra if pair[1].learned]
    W, Omega, Q = np.zeros((d, r)), np.zeros((n, r)), np.zeros((r, r))
    direction, eigenvalues, converged = np.zeros((d, r)), [], True
    for block, spectrum in learned or [max(spectra, key=lambda pair: pair[1].bulk_edge)]:
        larger = int(spectrum.larger)
        # One or two more than those that carry the block: where the bulk, or the next block, begins.
        vectors = _eigenvectors(data.X, G, block, spectrum, kind, larger + block.copies + min(r, 2), rng)
        size = block.size * (n if kind == "asymmetric" else d)
        converged &= vectors.count >= min(larger + block.copies + 1, size)
        eigenvalues.append(vectors.values[larger:])
        chosen = _normalised(vectors, larger, block.copies)
        # In the scale of the theory B^T B/d has the trace of the self-overlap P.
        A = np.sqrt(np.trace(spectrum.self_overlap)) * spectrum.posterior_map
        W += np.einsum("kds,st,krt->dr", chosen.B, A, block.bases[: chosen.count])
        Omega += np.einsum("kns,st,krt->nr", chosen.fields, A, block.bases[: chosen.count])
        Q += block.lift(spectrum.posterior_overlap)
        if not learned:
            direction = np.einsum("kds,krs->dr", chosen.B, block.bases[: chosen.count])
    if learned and converged:
        # A sign shows in the fields as they are; rotations are told apart by those without the sample.
        fields = data.X @ W if r == 1 else Omega
        U = _likeliest_rotation(model, data.y, fields, Q, [block for block, _ in learned], rng)
        W, Omega = W @ U, Omega @ U
    return SpectralEstimate(W, Omega, Q, W if learned else direction, eigenvalues, bool(converged))


def _eigenvectors(
    X: np.ndarray, G: np.ndarray, block: Block, spectrum: BlockSpectrum, kind: str, count: int, rng: np.random.Generator
) -> Eigenvectors:
    inside = np.einsum("ais,nij,ajt->nst", block.bases, G, block.bases) / block.copies
    if kind == "asymmetric":
        return asymmetric(X, inside, count, rng)
    # One projection is one matrix of d unknowns: at any size that can be stored it is reduced exactly.
    return symmetric(X, inside, count, np.eye(block.size) - spectrum.overlap, rng, dense=G.shape[1] == 1)


def _normalised(vectors: Eigenvectors, first: int, copies: int) -> Eigenvectors:
    """The eigenvectors of the block's copies, made orthonormal: those of the asymmetric operator need not be."""
    values, B, fields = (part[first : first + copies] for part in vectors)
    gram = np.einsum("ids,jds->ij", B, B) / B.shape[1]
    weights, directions = np.linalg.eigh(gram)
    whiten = (directions / np.sqrt(np.maximum(weights, 1e-12))) @ directions.T
    return Eigenvectors(values, np.tensordot(whiten, B, 1), np.tensordot(whiten, fields, 1))


def _likeliest_rotation(
    model: MultiIndex, y: np.ndarray, Omega: np.ndarray, Q: np.ndarray, blocks: list[Block], rng: np.random.Generator
) -> np.ndarray:
    """The U (r x r), a rotation of each block among its copies, under which Omega U makes the labels most likely.

    Rotations that differ by a symmetry of the target are tried once; where copies can be turned continuously and the
    target notices, the best of several random rotations is refined.
    """
    candidates = _distinct_rotations(model, blocks, rng)
    if len(candidates) == 1:
        return candidates[0]
    evidence = _evidence(model.channel, y, Omega, np.eye(len(Q)) - Q)
    best = max(candidates, key=evidence)
    turns = [block.lift_between(i, j) for block in blocks for i, j in itertools.combinations(range(block.copies), 2)]
    if not turns:
        return best
    generators = np.stack([turn - turn.T for turn in turns])

    def turned(angles: np.ndarray) -> np.ndarray:
        return best @ expm(np.tensordot(angles, generators, 1))

    options = {"maxfev": _ROTATION_STEPS, "initial_simplex": 0.2 * np.eye(len(turns) + 1, len(turns), k=-1)}
    from scipy.optimize import minimize  # loaded when needed: it takes long to import

    refined = minimize(
        lambda angles: -evidence(turned(angles)), np.zeros(len(turns)), method="Nelder-Mead", options=options
    )
    return turned(refined.x)


def _distinct_rotations(model: MultiIndex, blocks: list[Block], rng: np.random.Generator) -> list[np.ndarray]:
    """The rotations to try, one of all that give the same labels."""
    if model.projections == 1:
        return [np.eye(1)] if model.hides_sign() else [np.eye(1), -np.eye(1)]
    probe = rng.standard_normal((64, model.projections))
    found: list[np.ndarray] = []
    images: list[np.ndarray] = []
    for U in _rotations(blocks, model.projections, rng):
        image = model.target.numpy(probe @ U)
        if not any(np.allclose(image, other, rtol=1e-9, atol=1e-9) for other in images):
            found.append(U)
            images.append(image)
    return found


def _evidence(output: Channel, y: np.ndarray, Omega: np.ndarray, V: np.ndarray) -> Callable[[np.ndarray], float]:
    """The mean log evidence of the labels at Omega U, as a function of U."""
    rows = slice(_EVIDENCE_ROWS.get(len(V)))
    labels = output.observe(y[rows])

    def evidence(U: np.ndarray) -> float:
        value = float(np.mean(output.posterior(labels, Omega[rows] @ U, V).log_Z))
        return value if np.isfinite(value) else -np.inf

    return evidence


def _rotations(blocks: list[Block], r: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Signs of all blocks without copies, with random rotations among copies; the identity first."""
    single = [block for block in blocks if block.copies == 1]
    several = [block for block in blocks if block.copies > 1]
    found = []
    for draw in range(_ROTATIONS if several else 1):
        turn = np.eye(r)
        for block in several if draw else []:
            u = np.linalg.qr(rng.standard_normal((block.copies, block.copies)))[0]
            turn += sum((u[i, j] - (i == j)) * block.lift_between(i, j) for i, j in np.ndindex(u.shape))
        for signs in itertools.product((0, 1), repeat=len(single)):
            flipped = sum((sign * block.lift(np.eye(block.size)) for sign, block in zip(signs, single, strict=True)), 0)
            found.append(turn - 2 * flipped)
    return found
