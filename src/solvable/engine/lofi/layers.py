r"""Layers of random neurons of which the labels pick directions: iterative spectral selection [dandi2026deep].

A layer takes its input h (at first the data) through P random neurons, and keeps the K directions along which the
squares of their values go with the label most: with $c^2$ the mean of $|h|^2$ and W of standard normal entries,

    Z = sigma(h W / c) / sqrt(P),     C = (1/n) Z^T diag(y) Z,     h <- Z V,

V the eigenvectors of C of largest |eigenvalue|. This is what gradient descent from a small start does first. With
several columns of labels (a class against the rest, for each) each has its C, and the K largest eigenvalues of all of
them count.

As P grows Z Z^T tends to the kernel $k = |h||h'|(\sin t + (\pi - t)\cos t)/(2\pi c^2)$ of ReLU neurons, t the angle
between two inputs [cho2009kernel]. With its matrix G on the data, $G^{1/2} diag(y) G^{1/2} B = B\Lambda$ picks features
$G^{1/2} B$, on other points $k(\cdot, X) G^{-1/2} B$.

**When a feature emerges.** With $\Sigma = E[Z Z^T]$, samples add to C a random matrix whose entries between an
eigenvector v and the other directions have squares that sum to $E[y^2]\, v^T \Sigma v\, Tr\, \Sigma/n$ for a weak
feature. To second order in it

    1 - |v_hat . v|^2 = n_k/n,       n_k = E[y^2] (v . Sigma v) Tr Sigma / lambda^2,

which for $\Sigma = I$ is also where v leaves the bulk. For other $\Sigma$ the strongest directions carry more of the
noise, and n_k is the scale of what is seen, not a threshold. The noise moves an eigenvalue as well, to
$\lambda + \lambda n_k/n$, which is undone before n_k is told from it; one that noise alone can make has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from solvable.engine.lofi import KERNEL

_SMALLEST = 1e-10
"""Eigenvalues of a kernel matrix below this part of the largest are rounding."""
_TINY = float(np.finfo(float).tiny)


class Stack(NamedTuple):
    """Fitted layers, what each selected, and the `output` of the last one on the data.

    `eigenvalues` are those of the kept directions of each layer, and `emergence` the n_k of each.
    """

    layers: list[Neurons | ArcCosine]
    eigenvalues: list[np.ndarray]
    emergence: list[np.ndarray]
    output: np.ndarray

    def __call__(self, h: np.ndarray, count: int | None = None) -> np.ndarray:
        """The output of all layers, or of the first `count`, for other inputs."""
        for layer in self.layers[:count]:
            h = layer(h)
        return h


def select(
    h: np.ndarray,
    labels: np.ndarray,
    features: int,
    layers: int,
    width: int | str,
    final: bool,
    normal: np.random.Generator | np.random.RandomState,
) -> Stack:
    """Fit layers to inputs h (n x d) and centred labels (n x classes); of finitely many neurons a `final` layer may
    follow that selects nothing."""
    fitted: list[Neurons | ArcCosine] = []
    values: list[np.ndarray] = []
    emergence: list[np.ndarray] = []
    for _ in range(layers):
        layer = ArcCosine(h) if width == KERNEL else Neurons(h, int(width), normal)
        selected, spread = layer.select(labels, features)
        fitted.append(layer)
        values.append(selected)
        emergence.append(seen_from(selected, np.mean(labels**2) * spread * layer.trace / len(h)) * len(h))
        h = layer.chosen
    if final and width != KERNEL:
        last = Neurons(h, int(width), normal)
        fitted.append(last)
        h = last.values
    return Stack(fitted, values, emergence, h)


def seen_from(eigenvalues: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """n_k/n from eigenvalues as they are seen and the `noise` E[y^2] (v . Sigma v) Tr Sigma/n; infinite for noise."""
    size = np.abs(eigenvalues)
    there = size**2 > 4 * noise
    root = np.sqrt(np.where(there, size**2 - 4 * noise, 0.0))
    return np.where(there, noise / np.where(there, (size + root) / 2, 1.0) ** 2, np.inf)


class Neurons:
    """A layer of random ReLU neurons, and what is kept of it."""

    def __init__(self, h: np.ndarray, width: int, normal: np.random.Generator | np.random.RandomState):
        self.W = normal.standard_normal((h.shape[1], width)) / max(length(h), _TINY)
        self.V: np.ndarray | None = None
        self.values = self._neurons(h)

    @property
    def trace(self) -> float:
        """The trace of the second moments of Z."""
        return float(np.sum(self.values**2)) / len(self.values)

    def select(self, labels: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
        """Keep the directions that go with the labels most; their eigenvalues, and the second moments along them."""
        n = len(self.values)
        found = [largest((self.values * y[:, None]).T @ self.values / n, kept) for y in labels.T]
        values, self.V = merged(found, kept)
        return values, np.mean(self.chosen**2, axis=0)

    @property
    def chosen(self) -> np.ndarray:
        assert self.V is not None
        return self.values @ self.V

    def __call__(self, h: np.ndarray) -> np.ndarray:
        return self._neurons(h) if self.V is None else self._neurons(h) @ self.V

    def _neurons(self, h: np.ndarray) -> np.ndarray:
        values = h @ self.W
        np.maximum(values, 0.0, out=values)
        values /= np.sqrt(self.W.shape[1])
        return values


class ArcCosine:
    """The same for infinitely many neurons."""

    def __init__(self, h: np.ndarray):
        self._inputs, self._scale = h, max(length(h), _TINY)
        values, vectors = eigh(arc_cosine(h, h, self._scale))
        there = values > _SMALLEST * max(values[-1], _TINY)
        self._roots, self._vectors = np.sqrt(values[there]), vectors[:, there]
        self._B = np.zeros((int(there.sum()), 0))

    @property
    def trace(self) -> float:
        """The mean of k(x, x) over the data."""
        return float(np.sum(self._roots**2)) / len(self._inputs)

    def select(self, labels: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
        """Keep the directions that go with the labels most; their eigenvalues, and the second moments along them."""
        root = self._vectors * self._roots
        found = [largest((root * y[:, None]).T @ root / len(root), kept) for y in labels.T]
        values, self._B = merged(found, kept)
        return values, np.mean(self.chosen**2, axis=0)

    @property
    def chosen(self) -> np.ndarray:
        return (self._vectors * self._roots) @ self._B

    def __call__(self, h: np.ndarray) -> np.ndarray:
        return arc_cosine(h, self._inputs, self._scale) @ ((self._vectors / self._roots) @ self._B)


def arc_cosine(h: np.ndarray, inputs: np.ndarray, scale: float) -> np.ndarray:
    """The kernel of infinitely many ReLU neurons between two sets of points."""
    sizes = np.outer(np.linalg.norm(h, axis=1), np.linalg.norm(inputs, axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.clip(np.where(sizes > 0, h @ inputs.T / sizes, 0.0), -1, 1)
    return sizes * (np.sqrt(1 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine) / (2 * np.pi * scale**2)


def length(h: np.ndarray) -> float:
    """The root of the mean of |h|^2."""
    return float(np.sqrt(np.mean(np.sum(h**2, axis=1))))


def largest(C: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of largest size, from either end of the spectrum."""
    size = len(C)
    if 4 * kept >= size:
        values, vectors = eigh(C)
    else:
        ends = [eigh(C, subset_by_index=part) for part in ((0, kept - 1), (size - kept, size - 1))]
        values, vectors = (np.concatenate([end[k] for end in ends], axis=-1) for k in (0, 1))
    order = np.argsort(-np.abs(values), kind="stable")[:kept]
    return values[order], vectors[:, order]


def merged(found: list[tuple[np.ndarray, np.ndarray]], kept: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest of several classes, with signs that do not depend on the solver."""
    values, vectors = (np.concatenate([part[k] for part in found], axis=-1) for k in (0, 1))
    order = np.argsort(-np.abs(values), kind="stable")[:kept]
    values, vectors = values[order], vectors[:, order]
    strongest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    return values, vectors * np.where(strongest < 0, -1.0, 1.0)
