"""Every number that a user can give is refused, by its name, where it is none."""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest

import solvable as sv
from solvable.core.checks import check_count, real_array, real_number
from solvable.core.learners import Learner
from solvable.core.model import Model

BAD = {
    "huge": 10**400,
    "unprintable": 10**5000,
    "fraction": Fraction(10**400, 3),
    "bytes": b"1",
    "masked": np.ma.array(1.0, mask=True),
    "mask": np.ma.array([1.0, 2.0], mask=[True, False]),
    "true": True,
    "numpy true": np.bool_(True),
    "complex": 1.0 + 1.0j,
    "text": "abc",
    "nan": float("nan"),
    "array nan": np.float64("nan"),
    "list": [[1.0], [1.0, 2.0]],
    "object": object(),
}
EXAMPLES = {
    sv.MultiIndex: {"target": "abs(z)", "noise": 0.1},
    sv.QuadraticNetwork: {"rho": 0.5, "noise": 0.1},
    sv.MatrixSensing: {"spectrum": "semicircle", "noise": 0.1},
    sv.BilinearSequence: {"rho": 0.5, "beta": 1.0, "noise": 0.1},
    sv.Contamination: {"fraction": 0.1, "slope": -1.0, "noise": 0.2},
    sv.AMP: {},
    sv.BayesOptimal: {},
    sv.SpikedMatrix: {"snr": 1.2},
    sv.SpikedTensor: {"order": 3, "noise": 0.2},
    sv.SpikedCovariance: {"snr": 1.5},
    sv.AttentionIndexed: {"rho": 0.5, "tokens": 2},
    sv.DeepAttention: {"layers": 1, "tokens": 2},
    sv.DeepAttentionIndexed: {"rho": 0.5, "layers": 2, "tokens": 2},
    sv.SequenceSingleIndex: {"target": "softmax", "tokens": 2},
    sv.PositionalSemantic: {"positional": 0.3},
    sv.SequenceSGD: {"learning_rate": 0.1, "start": 0.2},
    sv.SequenceIndex: {"target": "z1[1]*z1[2]", "tokens": 2, "noise": 0.1},
    sv.MatrixTensor: {"matrix_noise": 0.5, "tensor_noise": 0.1},
    sv.MaximumLikelihood: {},
    sv.RBM: {},
    sv.RBMAscent: {},
    sv.WideTeacher: {"exponent": 1.0, "width": 20, "activation": "he3(z)", "noise": 0.1},
    sv.WideNetwork: {"rho": 0.5, "activation": "relu", "noise": 0.1},
    sv.BayesStudent: {"width": 10},
    sv.AdamStudent: {"width": 10},
    sv.TwoLayer: {"target": "z", "activation": "tanh", "width": 0.8},
    sv.RandomFeatures: {"penalty": 0.1},
    sv.OneStep: {"penalty": 0.1, "step": 1.0, "batch": 2.0},
    sv.TwoSteps: {"first": 0.3, "second": 0.4},
    sv.PowerLawFeatures: {"capacity": 1.5, "source": 0.5, "noise": 0.1, "terms": 10},
    sv.HierarchicalTarget: {"decay": 1.0, "degree": 2, "features": 8, "noise": 0.1},
    sv.LayerwiseSpectral: {"scale": 1.0},
    sv.TreeTarget: {"branches": 1, "exponent": 0.5, "noise": 0.1},
    sv.NeuralLoFi: {"features": 5, "layers": 1, "width": 100, "penalty": 0.1},
    sv.Kernel: {"degree": 2, "penalty": 0.1},
    sv.Layerwise: {},
    sv.JointTraining: {},
    sv.LinearRidge: {"penalty": 0.1},
    sv.KernelRidge: {"penalty": 0.1, "scale": 2.0, "p": 10.0},
    sv.Spectral: {},
    sv.ERM: {"penalty": 0.1},
    sv.NuclearNorm: {"width": 0.5},
    sv.Lazy: {},
    sv.GradientDescent: {},
    sv.OnlineSGD: {"learning_rate": 0.1, "start": 0.2},
    sv.Extragradient: {"learning_rate": 0.1},
    sv.RepeatedSGD: {"learning_rate": 0.1},
    sv.BatchGD: {},
    sv.Ridge: {},
    sv.Lasso: {},
    sv.losses.Huber: {},
    sv.losses.Tukey: {},
    sv.losses.Cosine: {},
    sv.priors.GaussBernoulli: {"rho": 0.2},
    sv.channels.Probit: {"noise": 0.1},
    sv.channels.Logit: {},
    sv.channels.Linear: {"noise": 0.1},
    sv.spectra.MarchenkoPastur: {"rho": 0.5},
    sv.spectra.Semicircle: {"scale": 1.0, "centre": 0.0},
    sv.spectra.PowerLaw: {"gamma": 1.0, "size": 10},
    sv.spectra.ProductWishart: {"rho": 0.5, "beta": 1.5},
    sv.spectra.Density: {"function": lambda x: 1.0 + 0 * x, "low": 0.0, "high": 1.0},
    sv.Axis: {"name": "alpha", "least": 0.0, "most": 2.0},
}


def numbers_of(kind):
    """The parameters of a class that hold numbers: in the example, or as their default."""
    given = {name: p.default for name, p in inspect.signature(kind).parameters.items()} | EXAMPLES[kind]
    return [name for name, value in given.items() if isinstance(value, (int, float)) and not isinstance(value, bool)]


FIELDS = [(kind, name) for kind in EXAMPLES for name in numbers_of(kind)]


def test_the_list_is_complete():
    """Every model, learner, loss, penalty, prior and law that is public, and each of their numbers."""
    public = [getattr(sv, name) for name in sv.__all__]
    for module in (sv.priors, sv.losses, sv.spectra):
        public += [getattr(module, name) for name in module.__all__]
    ours = (Model, Learner, sv.losses.Loss, sv.priors.Prior, sv.priors.Penalty, sv.spectra.Law)
    kinds = [k for k in public if isinstance(k, type) and issubclass(k, ours) and not inspect.isabstract(k)]
    annotated = {
        kind
        for kind in kinds
        if any(p.annotation in ("float", "int", float, int) for p in inspect.signature(kind).parameters.values())
    }
    assert annotated - {Model, Learner} <= set(EXAMPLES) and len(FIELDS) >= 35


@pytest.mark.filterwarnings("ignore:A JAX array is being set as static")
@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_field_refuses_what_is_no_number(kind, name):
    kind(**EXAMPLES[kind])
    for what, value in BAD.items():
        with pytest.raises(ValueError, match=rf"\b{name}\b.* is not allowed|\b{name} = "):
            found = kind(**(EXAMPLES[kind] | {name: value}))
            pytest.fail(f"{what} was taken: {found}")


MODEL, LEARNER = sv.MultiIndex("z", noise=0.1), sv.AMP()
VERBS = {
    "predict alpha": ("alpha", lambda x: sv.predict(MODEL, LEARNER, alpha=x)),
    "simulate alpha": ("alpha", lambda x: sv.simulate(MODEL, LEARNER, alpha=x, d=10)),
    "simulate d": ("d", lambda x: sv.simulate(MODEL, LEARNER, alpha=1.0, d=x)),
    "simulate seed": ("seed", lambda x: sv.simulate(MODEL, LEARNER, alpha=1.0, d=10, seed=x)),
    "curve d": ("d", lambda x: sv.learning_curve(MODEL, LEARNER, alpha=[1.0], d=x)),
    "curve grid": ("alpha", lambda x: sv.learning_curve(MODEL, LEARNER, alpha=[1.0, x])),
    "sweep workers": ("workers", lambda x: sv.sweep(MODEL, LEARNER, store="never", alpha=[1.0], workers=x)),
    "optimize alpha": ("alpha", lambda x: sv.optimize(MODEL, sv.ERM(), over="penalty", alpha=x)),
    "diagnose noise": ("noise", lambda x: sv.diagnose("abs(z)", noise=x)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_refuses_what_is_no_number(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, call = VERBS[verb]
    for what, value in (BAD | {"none": None}).items():
        if verb in ("curve d", "predict alpha", "curve grid") and what in ("none", "list"):
            continue  # no runs; and lists are grids
        with pytest.raises(ValueError, match=rf"\b{name}\b|exactly one axis must be a grid"):
            call(value)
            pytest.fail(f"{what} was taken")


def test_the_checkers_take_what_is_a_number():
    assert real_number("x", Fraction(1, 2), "") == 0.5 == real_number("x", np.float32(0.5), "")
    assert check_count("n", np.int64(3), 1) == 3 and real_array("x", [1, 2.5]).tolist() == [1.0, 2.5]
    for bad in (np.ma.array([1.0, 2.0]), [True, 2.0], [np.ma.masked, 1.0], ["1"], [None], [1j], [10**400]):
        with pytest.raises(ValueError, match="x = "):
            real_array("x", bad)
