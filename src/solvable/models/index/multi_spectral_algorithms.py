r"""The two spectral methods of a multi-index model, on one instance.

Each block of the labels' second moments (`label_blocks`) has operators of its own. Above the block's threshold the
theory says which of its leading eigenvectors carry it: one for each copy, after the `larger` ones, which belong to
other directions. At finite size a block's operator is split off exactly, so eigenvectors of different blocks never mix,
although all blocks of the symmetric operator have the same outlier.

An eigenvector has no length: its estimate is scaled to the predicted overlap matrix, $\hat W^T \hat W/d = Q$, which
makes it a posterior mean at large d. Nor does it tell a sign, or a rotation among copies of a block: of these the one
is taken under which the labels are most likely.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm

from solvable.channels.base import Channel
from solvable.core.learners import Spectral
from solvable.core.model import Data
from solvable.core.results import Outcome
from solvable.engine.amp import uninformed_start
from solvable.models.index.block_spectrum import BlockSpectrum
from solvable.models.index.label_blocks import Block
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.multi_scores import scores
from solvable.models.index.multi_spectral_operators import Eigenvectors, asymmetric, symmetric
from solvable.models.index.multi_spectral_theory import block_spectra, law_of

_EXTRA = 2
_EVIDENCE_ROWS = 2000
_EVIDENCE_ROWS_OF_MANY = 500
_ROTATIONS = 24
_ROTATION_STEPS = 60


class SpectralEstimate(NamedTuple):
    """The estimate W (d x r) and its leave-one-out fields Omega (n x r), with the predicted overlap Q (r x r).

    `squared_overlap` is the squared cosine of the eigenvectors with the truth, averaged over blocks with weights Tr Q;
    `eigenvalues` holds the leading ones of each block, from the one that carries it.
    """

    W: np.ndarray
    Omega: np.ndarray
    Q: np.ndarray
    squared_overlap: float
    eigenvalues: list[np.ndarray]
    converged: bool


def run_multi_spectral(model: MultiIndex, learner: Spectral, data: Data, rng: np.random.Generator) -> Outcome:
    """The leading eigenvectors of `learner.kind`, scaled to their predicted overlap.

    `squared_overlap` is that of the eigenvectors themselves (of the leading ones, if theory says that nothing is
    learned); the other metrics are those of the scaled estimate.
    """
    found = spectral_estimate(model.multi_channel, learner.kind, data, rng)
    metrics = scores(model, found.W, data.truth, rng) | {"squared_overlap": found.squared_overlap}
    details = {"self_overlap": found.Q, "eigenvalues": found.eigenvalues}
    return Outcome(metrics, found.W, found.converged, details=details)


def spectral_start(model: MultiIndex, data: Data, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    r"""A start for message passing and its Onsager term: $\hat W$ (d x r), and $X \hat W - \Omega$ (n x r).

    $\hat W$ is the estimate of the symmetric method, and $\Omega = (I - V T)\, X \hat W$ with $V = I - Q$ its fields
    without the sample they belong to: an eigenvector at 1 is a fixed point of message passing for the labels'
    likelihood to second order, $\exp(z^T T z/2)$. Without anything to learn the start is noise, which needs no term.
    """
    found = spectral_estimate(model.multi_channel, "symmetric", data, rng)
    if not np.any(found.Q) or not found.converged:
        return uninformed_start(rng, *data.truth.shape), np.zeros_like(found.Omega)
    return found.W, data.X @ found.W - found.Omega


def spectral_estimate(channel: Channel, kind: str, data: Data, rng: np.random.Generator) -> SpectralEstimate:
    """The spectral method `kind` on one instance; the truth is used for `squared_overlap` only."""
    n, d = data.X.shape
    r = channel.projections
    observation = channel.observe(data.y)
    found = channel.posterior(observation, np.zeros((n, r)), np.eye(r))
    G = found.covariance + found.mean[:, :, None] * found.mean[:, None, :] - np.eye(r)
    spectra = block_spectra(law_of(channel), kind, n / d)
    learned = [pair for pair in spectra if pair[1].learned]
    W, Omega, Q = np.zeros((d, r)), np.zeros((n, r)), np.zeros((r, r))
    shares, cosines, eigenvalues, converged = [], [], [], True
    for block, spectrum in learned or [max(spectra, key=lambda pair: pair[1].bulk_edge)]:
        vectors = _eigenvectors(data.X, G, block, spectrum, kind, rng)
        converged &= vectors.count > spectrum.larger + block.copies - 1
        eigenvalues.append(vectors.values[spectrum.larger :])
        chosen = _normalised(vectors, spectrum.larger, block.copies)
        cosines.append(np.sum((data.truth.T @ chosen.B) ** 2) / (d**2 * block.copies))
        shares.append(block.copies * np.trace(spectrum.posterior_overlap) or 1.0)
        # In the scale of the theory B^T B/d has the trace of the self-overlap P.
        A = np.sqrt(np.trace(spectrum.self_overlap)) * spectrum.posterior_map
        W += np.einsum("kds,st,krt->dr", chosen.B, A, block.bases[: chosen.count])
        Omega += np.einsum("kns,st,krt->nr", chosen.fields, A, block.bases[: chosen.count])
        Q += block.lift(spectrum.posterior_overlap)
    if learned and converged:
        U = _likeliest_rotation(channel, data.y, Omega, Q, [block for block, _ in learned], rng)
        W, Omega = W @ U, Omega @ U
    squared = float(np.average(cosines, weights=shares))
    return SpectralEstimate(W, Omega, Q, squared, eigenvalues, bool(converged))


def _eigenvectors(
    X: np.ndarray, G: np.ndarray, block: Block, spectrum: BlockSpectrum, kind: str, rng: np.random.Generator
) -> Eigenvectors:
    inside = np.einsum("ais,nij,ajt->nst", block.bases, G, block.bases) / block.copies
    count = spectrum.larger + block.copies + _EXTRA
    if kind == "asymmetric":
        return asymmetric(X, inside, count, rng)
    return symmetric(X, inside, count, np.eye(block.size) - spectrum.overlap, rng)


def _normalised(vectors: Eigenvectors, first: int, copies: int) -> Eigenvectors:
    """The eigenvectors of the block's copies, made orthonormal: those of the asymmetric operator need not be."""
    values, B, fields = (part[first : first + copies] for part in vectors)
    gram = np.einsum("ids,jds->ij", B, B) / B.shape[1]
    weights, directions = np.linalg.eigh(gram)
    whiten = (directions / np.sqrt(np.maximum(weights, 1e-12))) @ directions.T
    return Eigenvectors(values, np.tensordot(whiten, B, 1), np.tensordot(whiten, fields, 1))


def _likeliest_rotation(
    channel: Channel,
    y: np.ndarray,
    Omega: np.ndarray,
    Q: np.ndarray,
    blocks: list[Block],
    rng: np.random.Generator,
) -> np.ndarray:
    """The U (r x r), a rotation of each block among its copies, under which Omega U makes the labels most likely.

    Rotations that differ by a symmetry of the target are tried once; where copies can be turned continuously and the
    target notices, the best of several random rotations is refined.
    """
    r = len(Q)
    V = np.eye(r) - Q
    # A posterior of three projections costs a hundred times that of two.
    rows = slice(_EVIDENCE_ROWS if r < 3 else _EVIDENCE_ROWS_OF_MANY)
    observation = channel.observe(y[rows])

    def evidence(U: np.ndarray) -> float:
        value = float(np.mean(channel.posterior(observation, Omega[rows] @ U, V).log_Z))
        return value if np.isfinite(value) else -np.inf

    probe = rng.standard_normal((64, r))
    candidates: list[np.ndarray] = []
    images: list[np.ndarray] = []
    for U in _rotations(blocks, r, rng):
        image = channel.target.numpy(probe @ U)
        if not any(np.allclose(image, other, rtol=1e-9, atol=1e-9) for other in images):
            candidates.append(U)
            images.append(image)
    if len(candidates) == 1:
        return candidates[0]
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
