"""Samples that do not fit into memory are refused before they are made."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import solvable as sv
from solvable.core import memory

LARGE = {
    "one projection": (sv.MultiIndex("abs(z)", noise=0.1), sv.AMP(), {"alpha": 10.0, "d": 10**7}),
    "two projections": (sv.MultiIndex("sign(z1*z2)"), sv.AMP(), {"alpha": 10.0, "d": 10**7}),
    "erm": (sv.MultiIndex("z"), sv.ERM(), {"alpha": 10.0, "d": 10**7}),
    "infinitely many": (sv.MultiIndex("z"), sv.ERM(), {"alpha": 1e308, "d": 10**7}),
    "network": (sv.QuadraticNetwork(0.5), sv.AMP(), {"alpha": 0.5, "d": 10**5}),
    "gaussian features": (sv.QuadraticNetwork(0.5, features="gaussian"), sv.AMP(), {"alpha": 0.5, "d": 10**6}),
    "matrix": (sv.MatrixSensing("semicircle"), sv.NuclearNorm(), {"alpha": 1e-9, "d": 10**7}),
    "sequence": (sv.BilinearSequence(0.5), sv.AMP(), {"alpha": 0.5, "d": 10**4}),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_sampler_says_how_many_bytes_it_would_need_and_allocates_none(case):
    model, learner, size = LARGE[case]
    tracemalloc.start()
    try:
        message = rf"d = {size['d']} is not allowed: d must be smaller: .* would take .*bytes.* there are .* GB here"
        with pytest.raises(ValueError, match=message):
            sv.simulate(model, learner, **size)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


def test_a_stream_is_refused_where_one_block_or_what_is_asked_of_it_does_not_fit():
    model, rng = sv.MultiIndex("z"), np.random.default_rng(0)
    with pytest.raises(ValueError, match="d must be smaller: 256 inputs of 10000000000 numbers would take"):
        model.stream(rng, 10**10)
    stream = model.stream(rng, 10)
    assert stream.draw(300).X.shape == (300, 10)
    with pytest.raises(ValueError, match=r"n must be smaller: 10+ samples would take"):
        stream.draw(10**13)
    assert len(stream.draw(0).y) == 0


def test_what_fits_is_made(monkeypatch):
    monkeypatch.setattr(memory, "memory", lambda: 8 * 200.0)
    assert sv.MultiIndex("z").sample(np.random.default_rng(0), 10, alpha=2.0).X.shape == (20, 10)
    with pytest.raises(ValueError, match=r"1680 bytes \(1.68e-06 GB\), and there are 1.6e-06 GB here"):
        sv.MultiIndex("z").sample(np.random.default_rng(0), 10, alpha=2.1)
