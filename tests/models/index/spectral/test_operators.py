"""The spectral operators of one block: their eigenvectors, small and large, and the fields without a sample."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.models.index.multi_index import orthonormal_teacher
from solvable.models.index.spectral.operators import asymmetric, preprocessed, symmetric


def matrices(seed: int, n: int, s: int) -> np.ndarray:
    """G of n labels, with second moments I + G that are positive and not close to zero."""
    A = np.random.default_rng(seed).standard_normal((n, s, s))
    return A @ np.swapaxes(A, 1, 2) / s - 0.8 * np.eye(s)


def inputs(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(d)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_symmetric_eigenvectors(s):
    X, G = inputs(0, 60, 20), matrices(1, 60, s)
    T = G @ np.linalg.inv(np.eye(s) + G)
    found = symmetric(X, G, 4, 0.5 * np.eye(s), np.random.default_rng(2))
    assert found.count == 4 and np.all(np.diff(found.values) < 0)
    for value, B, fields in zip(*found, strict=True):
        seen = X @ B
        image = X.T @ np.einsum("nst,nt->ns", T, seen)
        np.testing.assert_allclose(image, value * B, atol=1e-9 * np.abs(T).max())
        assert np.sum(B**2) == pytest.approx(20)
        np.testing.assert_allclose(fields, seen - 0.5 * np.einsum("nst,nt->ns", T, seen), atol=1e-9)
    full = np.einsum("ni,nj,nab->aibj", X, X, T).reshape(20 * s, 20 * s)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(full)[::-1][:4], atol=1e-9)


def test_lanczos_agrees_with_the_dense_reduction(monkeypatch):
    """Without eigenvalues of T below the cut both solve the same problem."""
    X, G = inputs(0, 500, 100), matrices(1, 500, 2)
    G = np.linalg.inv(np.eye(2) - preprocessed(G, cut=-10.0)) - np.eye(2)
    dense = symmetric(X, G, 3, 0.5 * np.eye(2), np.random.default_rng(2))
    monkeypatch.setattr("solvable.models.index.spectral.operators._DENSE_UP_TO", 10)
    lanczos = symmetric(X, G, 3, 0.5 * np.eye(2), np.random.default_rng(2))
    np.testing.assert_allclose(lanczos.values, dense.values, rtol=1e-6)
    for a, b in zip(dense.B, lanczos.B, strict=True):
        assert abs(np.sum(a * b)) == pytest.approx(100, rel=1e-5)


def test_the_cut_of_lanczos_hardly_matters():
    """The likely labels of z1^2 + z2^2 make T = 1 - 2/y unbounded below; cut at -20 the outlier moves by little."""
    rng = np.random.default_rng(0)
    W = orthonormal_teacher(rng, 150, 2)
    X = inputs(1, 600, 150)
    G = (np.sum((X @ W) ** 2, 1) / 2 - 1)[:, None, None]
    cut = np.maximum(preprocessed(G), -20.0)
    whole, part = (symmetric(X, 1 / (1 - T) - 1, 2, np.eye(1), rng) for T in (preprocessed(G), cut))
    np.testing.assert_allclose(part.values, whole.values, atol=0.02)
    overlaps = [np.sum((W.T @ B / 150) ** 2) for found in (whole, part) for B in found.B]
    np.testing.assert_allclose(overlaps[:2], overlaps[2:], atol=0.02)


@pytest.mark.parametrize("n, d", [(25, 4), (120, 20)])
def test_asymmetric_eigenvectors(n, d):
    """With labels that tell z z^T, which gives a real outlier; small problems are solved densely."""
    X = inputs(0, n, d)
    z = X @ orthonormal_teacher(np.random.default_rng(1), d, 2)
    G = z[:, :, None] * z[:, None, :] - np.eye(2)
    operator = np.einsum("ij,jab->iajb", X @ X.T - np.eye(n), G).reshape(2 * n, 2 * n)
    values, vectors = np.linalg.eig(operator)
    first = np.argmax(values.real)
    found = asymmetric(X, G, 2, np.random.default_rng(2))
    assert found.values[0] == pytest.approx(values.real[first], rel=1e-7)
    assert abs(values.imag[first]) < 1e-9
    Omega = vectors[:, first].real.reshape(n, 2)
    B = X.T @ np.einsum("nst,nt->ns", G, Omega)
    scale = np.sqrt(d) / np.linalg.norm(B)
    assert abs(np.sum(B * found.B[0]) * scale) == pytest.approx(d, rel=1e-6)
    # The field is what B sees of a sample less what the sample itself put there.
    own = np.einsum("nst,nt->ns", G, found.fields[0]) / found.values[0]
    np.testing.assert_allclose(X @ found.B[0] - own, found.fields[0], atol=1e-6)


def test_nothing_is_found_where_labels_or_inputs_are_not_finite():
    X, G = inputs(0, 30, 10), matrices(1, 30, 2)
    X[3, 3] = np.nan
    assert symmetric(X, G, 2, np.eye(2), np.random.default_rng(0)).count == 0
    assert asymmetric(X, G, 2, np.random.default_rng(0)).count == 0
    assert asymmetric(inputs(0, 30, 10), 0 * G, 2, np.random.default_rng(0)).count == 0


def test_asymmetric_direction_without_its_fields():
    """Eliminating Omega: X^T diag(G / (gamma + G)) X has the estimate as eigenvector, with eigenvalue 1."""
    rng = np.random.default_rng(0)
    data = sv.MultiIndex("abs(z)").sample(rng, 60, alpha=2.0)
    G = data.y**2 - 1
    found = asymmetric(data.X, G[:, None, None], 2, rng)
    values = np.linalg.eigvals((data.X @ data.X.T - np.eye(120)) * G)
    assert found.values[0] == pytest.approx(values.real.max(), rel=1e-6)
    S = data.X.T @ ((G / (found.values[0] + G))[:, None] * data.X)
    np.testing.assert_allclose(S @ found.B[0], found.B[0], atol=1e-4)
