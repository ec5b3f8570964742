"""The registry: what a base can do its subclasses can, and what is listed is what works."""

from __future__ import annotations

import abc

import numpy as np
import pytest

import solvable as sv
from solvable.core import registry
from solvable.core.registry import find_simulation, find_theory, has_theory, matrix, references_of


class Sided(sv.Model):
    """An abstract base, as of all models that are two sides."""

    @abc.abstractmethod
    def side(self) -> float: ...

    def sample(self, rng, d, alpha):
        return self.side()


class Left(Sided):
    def side(self):
        return 1.0


class Right(Sided):
    without = (sv.Spectral,)

    def side(self):
        return 2.0


class FarRight(Right):
    """Goes without, as its parent does, but for what is its own."""


class Middle(Sided):
    """Still abstract."""


class _Hidden(Left):
    pass


class Own(sv.AMP):
    """A learner made from another."""


@sv.theory(Sided, sv.AMP, references="barbier2019optimal")
@sv.theory(Sided, sv.Spectral)
def _(model, learner, alpha):
    assert alpha.ndim == 1 and alpha.dtype == np.float64
    return sv.Prediction({"overlap": model.side() * alpha})


@sv.simulation(Sided, sv.AMP, references=("barbier2019optimal", "rangan2011generalized"))
def _(model, learner, data, rng):
    return sv.Outcome({"overlap": data})


@sv.theory(Left, sv.AMP)
def _(model, learner, alpha):
    return sv.Prediction({"overlap": -alpha})


@sv.thresholds_of(Sided)
def _(model):
    return {"side": model.side()}


OURS = (Sided, Left, Right, FarRight, Middle, _Hidden)


def test_concrete_models_are_listed_with_what_their_base_can_do():
    listed = {(m.__name__, learner.__name__): filled for (m, learner), filled in matrix().items() if m in OURS}
    assert listed == {
        ("FarRight", "AMP"): (True, True),
        ("Left", "AMP"): (True, True),
        ("Left", "Spectral"): (True, False),
        ("Right", "AMP"): (True, True),
    }


def test_a_closer_registration_wins():
    assert sv.predict(Left(), sv.AMP(), alpha=2.0)["overlap"] == -2.0
    assert sv.predict(_Hidden(), Own(), alpha=2.0)["overlap"] == -2.0
    assert sv.predict(Right(), sv.AMP(), alpha=[[2.0], [3.0]])["overlap"].tolist() == [[4.0], [6.0]]
    assert sv.simulate(Left(), sv.AMP(), d=2, alpha=1.0)["overlap"] == 1.0
    assert sv.thresholds(FarRight()) == {"side": 2.0}


def test_what_a_model_goes_without():
    for model in (Right(), FarRight()):
        assert not has_theory(model, sv.Spectral())
        with pytest.raises(sv.NotSolvable, match=rf"Spectral on {type(model).__name__}; .* on this model: AMP\.$"):
            find_theory(model, sv.Spectral())
    assert has_theory(Left(), sv.Spectral())


def test_going_without_ends_where_a_subclass_has_its_own(monkeypatch):
    monkeypatch.setattr(registry, "_theories", dict(registry._theories))
    sv.theory(FarRight, sv.Spectral)(lambda model, learner, alpha: sv.Prediction({"overlap": alpha}))
    assert has_theory(FarRight(), sv.Spectral()) and not has_theory(Right(), sv.Spectral())


def test_models_that_have_thresholds_are_named_by_their_concrete_classes():
    class Without(sv.Model):
        pass

    with pytest.raises(sv.NotSolvable) as caught:
        sv.thresholds(Without())
    assert "Left" in str(caught.value) and "Sided" not in str(caught.value)


def test_references():
    assert references_of(Right, sv.AMP) == ("barbier2019optimal", "rangan2011generalized")
    assert references_of(Left, sv.AMP) == ("barbier2019optimal", "rangan2011generalized")  # those of its algorithm
    assert find_simulation(Right(), Own()).references == ("barbier2019optimal", "rangan2011generalized")
    for register in (sv.theory, sv.simulation, sv.thresholds_of):
        with pytest.raises(ValueError, match="references = 'nobody1900' is not allowed: references must be a key of"):
            register(Left, Own, references=("nobody1900",))(lambda: None)


def test_a_path_must_be_an_axis():
    with pytest.raises(ValueError, match="path = 't' is not allowed: path must be an axis of Left: alpha"):
        sv.simulation(Left, Own, path="t")


def test_a_stream_is_data():
    with pytest.raises(ValueError, match="stream=True and data=False exclude each other"):
        sv.simulation(Left, Own, path="alpha", stream=True, data=False)


def test_what_an_algorithm_asks_for_is_off_unless_told():
    entry = find_simulation(Left(), sv.AMP())
    assert (entry.path, entry.stream, entry.data, entry.together) == (None, False, True, False)
