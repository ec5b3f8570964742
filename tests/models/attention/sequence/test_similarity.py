"""The similarity of a layer to its end."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.models.attention.sequence.similarity import settled_at, similarity_to_end


def test_the_end_is_like_itself_whatever_the_rotation_of_rows_and_the_scale():
    rng = np.random.default_rng(0)
    end, turn = rng.standard_normal((6, 3)), np.linalg.qr(rng.standard_normal((6, 6)))[0]
    S = similarity_to_end([np.eye(6)[:, :3], 0.1 * turn @ end, end])
    np.testing.assert_allclose(S[1:], 1)
    A = end.T @ end
    assert S[0] == pytest.approx(np.trace(A) / (np.sqrt(3) * np.linalg.norm(A)))


def test_a_layer_has_settled_when_it_stays():
    assert settled_at(np.array([0.1, 0.6, 0.4, 0.7, 1.0]), 0.5) == 3 and settled_at(np.ones(3), 0.9) == 0


def test_weights_of_one_time_are_a_matrix():
    with pytest.raises(ValueError, match="weights"):
        similarity_to_end(np.ones((3, 2)))
