"""One example of every pair of model and learner that has a theory, for what must hold for all of them."""

from __future__ import annotations

import solvable as sv
from solvable.core.registry import matrix

INDEX, SEVERAL = sv.MultiIndex("abs(z)", noise=0.1), sv.MultiIndex("sign(z1*z2)")
TANH = sv.MultiIndex("tanh(z)")
NETWORK, SENSING = sv.QuadraticNetwork(0.5, noise=0.2), sv.MatrixSensing([0.0, 1.0, 3.0], noise=0.2)
BILINEAR = sv.BilinearSequence(0.5, noise=0.2)
ATTENTION = sv.AttentionIndexed(0.5, 3)
OUTLIERS = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, 0.0, 5.0))
HUBER, LOGISTIC, LASSO = sv.ERM("huber:0.8", 0.1), sv.ERM("logistic", 0.1), sv.ERM("square", "lasso:0.3")
SYMMETRIC, ASYMMETRIC = sv.Spectral(), sv.Spectral("asymmetric")

COVARIANCE, WIDE = sv.SpikedCovariance(1.5), sv.WideTeacher(1.0, 50, "he3(z)", 0.1)
TREE = sv.TreeTarget()
TWO_LAYERS = sv.TwoLayer("sin(z)", "tanh", 0.8, noise=0.1)

PAIRS: dict[str, tuple[sv.Model, sv.Learner, tuple[float, ...]]] = {
    "one projection, Bayes": (INDEX, sv.BayesOptimal(), (0.0, 0.5, 1.3, 4.0)),
    "one projection, AMP": (INDEX, sv.AMP(), (0.0, 0.5, 1.3, 4.0)),
    "one projection, ERM": (sv.MultiIndex("sign(z)"), LOGISTIC, (0.0, 0.5, 3.0)),
    "one projection, huber": (OUTLIERS, HUBER, (0.0, 0.5, 3.0)),
    "one projection, lasso": (sv.MultiIndex("z", 0.2, "gauss-bernoulli:0.2"), LASSO, (0.0, 0.5, 3.0)),
    "one projection, symmetric": (INDEX, SYMMETRIC, (0.3, 2.0)),
    "one projection, asymmetric": (INDEX, ASYMMETRIC, (0.3, 2.0)),
    "one projection, online": (TANH, sv.OnlineSGD(0.5, "erf", start=0.05), (0.0, 1.0, 4.0)),
    "one projection, extragradient": (TANH, sv.Extragradient(0.5, "erf", start=0.05), (0.0, 1.0, 4.0)),
    "one projection, repeated": (TANH, sv.RepeatedSGD(0.5, "erf", start=0.05), (0.0, 1.0, 4.0)),
    "one projection, kernel": (INDEX, sv.Kernel(2, 0.1), (0.0, 0.5, 3.0)),
    "several projections, Bayes": (SEVERAL, sv.BayesOptimal(), (0.0, 2.0, 6.0)),
    "several projections, AMP": (SEVERAL, sv.AMP(), (0.0, 2.0, 6.0)),
    "several projections, spectral": (SEVERAL, SYMMETRIC, (2.0, 6.0)),
    "one projection, one batch": (sv.MultiIndex("tanh(z)"), sv.BatchGD(2, 0.5, activation="erf"), (0.0, 0.5, 3.0)),
    "network, Bayes": (NETWORK, sv.BayesOptimal(), (0.0, 0.1, 0.5)),
    "network, AMP": (NETWORK, sv.AMP(), (0.0, 0.1, 0.5)),
    "network, nuclear": (NETWORK, sv.NuclearNorm(0.1), (0.0, 0.1, 0.5)),
    "network, width": (NETWORK, sv.NuclearNorm(0.1, width=0.4), (0.0, 0.1, 0.5)),
    "network, lazy": (NETWORK, sv.Lazy(0.1), (0.0, 0.1, 0.5)),
    "network, descent": (sv.QuadraticNetwork(0.5), sv.GradientDescent(runs=2), (0.0, 0.1, 0.5)),
    "sensing, descent": (sv.MatrixSensing("marchenko-pastur:0.5"), sv.GradientDescent(), (0.0, 0.1, 0.5)),
    "sensing, Bayes": (SENSING, sv.BayesOptimal(), (0.0, 0.1, 0.5)),
    "sensing, AMP": (SENSING, sv.AMP(), (0.0, 0.1, 0.5)),
    "sensing, nuclear": (SENSING, sv.NuclearNorm(0.1), (0.0, 0.1, 0.5)),
    "sensing, lazy": (SENSING, sv.Lazy(0.1), (0.0, 0.1, 0.5)),
    "attention, Bayes": (ATTENTION, sv.BayesOptimal(), (0.0, 0.02, 0.05)),
    "attention, AMP": (ATTENTION, sv.AMP(), (0.0, 0.02, 0.05)),
    "attention, descent": (ATTENTION, sv.GradientDescent(runs=2), (0.0, 0.02, 0.05)),
    "hardmax, Bayes": (sv.AttentionIndexed(0.5, 2, "hardmax"), sv.BayesOptimal(), (0.0, 0.1, 0.5)),
    "deep attention, Bayes": (sv.DeepAttention(1, 3), sv.BayesOptimal(), (0.0, 0.1, 0.3)),
    "deep indexed, Bayes": (sv.DeepAttentionIndexed(0.5, 2, 2), sv.BayesOptimal(), (0.0, 0.1)),
    "deep indexed, AMP": (sv.DeepAttentionIndexed(0.5, 2, 2), sv.AMP(), (0.0, 0.1)),
    "tokens, descent": (sv.SequenceSingleIndex("z", 3), sv.SequenceSGD(0.3, "tied", start=0.2), (0.0, 1.0, 4.0)),
    "places, ERM": (sv.PositionalSemantic(0.3, 0.45, 0.25), sv.ERM(penalty=0.03, start="positional"), (0.0, 1.5)),
    "deep attention, AMP": (sv.DeepAttention(1, 3), sv.AMP(), (0.0, 0.1, 0.3)),
    "sequence, Bayes": (sv.SequenceIndex("z1[1]*z1[2]", 2, noise=0.1), sv.BayesOptimal(), (0.0, 0.1)),
    "sequence, AMP": (sv.SequenceIndex("z1[1]*z1[2]", 2, noise=0.1), sv.AMP(), (0.0, 0.1)),
    "covariance, Bayes": (COVARIANCE, sv.BayesOptimal(), (0.0, 0.3, 2.0)),
    "covariance, AMP": (COVARIANCE, sv.AMP(), (0.0, 0.3, 2.0)),
    "covariance, spectral": (COVARIANCE, sv.Spectral(), (0.3, 2.0)),
    "covariance, RBM": (COVARIANCE, sv.RBM(), (2.0, 3.0)),
    "covariance, ascent": (COVARIANCE, sv.RBMAscent(steps=2), (2.0,)),
    "wide, Bayes": (WIDE, sv.BayesOptimal(), (0.0, 10.0, 1000.0)),
    "wide network, Bayes": (sv.WideNetwork(0.5, "relu", 0.1), sv.BayesOptimal(), (0.2, 0.4)),
    "wide network, AMP": (sv.WideNetwork(0.5, "relu", 0.1), sv.AMP(), (0.2, 0.4)),
    "wide, student": (WIDE, sv.BayesStudent(10), (0.0, 10.0, 1000.0)),
    "two layers, random features": (TWO_LAYERS, sv.RandomFeatures(0.05), (0.0, 0.5, 1.4)),
    "two layers, one step": (TWO_LAYERS, sv.OneStep(0.1, 1.0, 2.0), (0.0, 0.5, 1.4)),
    "two layers, two steps": (TWO_LAYERS, sv.TwoSteps(0.3, 0.45), (0.0, 0.5, 1.4)),
    "hierarchical, kernel": (sv.HierarchicalTarget(1.0, features=8), sv.Kernel(2), (0.0, 3.0, 100.0)),
    "hierarchical, spectral": (sv.HierarchicalTarget(1.0, features=8), sv.LayerwiseSpectral(), (0.0, 3.0, 100.0)),
    "bilinear, Bayes": (BILINEAR, sv.BayesOptimal(), (0.0, 0.1, 0.5)),
    "bilinear, AMP": (BILINEAR, sv.AMP(), (0.0, 0.1, 0.5)),
}

POINTS: dict[str, tuple[sv.Model, sv.Learner, dict[str, float]]] = {
    "spiked matrix, Bayes": (sv.SpikedMatrix(1.4, "rademacher"), sv.BayesOptimal(), {}),
    "spiked matrix, AMP": (sv.SpikedMatrix(1.4, "rademacher"), sv.AMP(), {}),
    "spiked matrix, spectral": (sv.SpikedMatrix(1.4), sv.Spectral(), {}),
    "spiked tensor, Bayes": (sv.SpikedTensor(3, 0.2), sv.BayesOptimal(), {}),
    "spiked tensor, AMP": (sv.SpikedTensor(3, 0.2), sv.AMP(), {}),
    "spiked tensor, spectral": (sv.SpikedTensor(3, 0.2), sv.Spectral(), {}),
    "matrix and tensor, Bayes": (sv.MatrixTensor(0.5, 0.1), sv.BayesOptimal(), {}),
    "matrix and tensor, AMP": (sv.MatrixTensor(0.5, 0.1), sv.AMP(), {}),
    "matrix and tensor, likelihood": (sv.MatrixTensor(0.3, 0.3), sv.MaximumLikelihood(), {}),
    "matrix and tensor, curriculum": (sv.MatrixTensor(0.5, 0.1), sv.Curriculum(), {}),
    "tree, kernel": (TREE, sv.Kernel(), {"kappa": 2.6}),
    "tree, layer by layer": (TREE, sv.Layerwise(), {"kappa": 1.7}),
    "power law": (sv.PowerLawFeatures(1.5, 0.4, 0.1), sv.RandomFeatures(0.1), {"n": 100.0, "p": 150.0}),
}
"""The same for models whose axis is not alpha, or that have none: one point each."""


def missing() -> set[tuple[str, str]]:
    """The pairs of the package with a theory that have no example."""
    kinds = {(type(model), type(learner)) for model, learner, _ in [*PAIRS.values(), *POINTS.values()]}
    solved = {pair for pair, (theory, _) in matrix().items() if theory}
    return {
        (model.__name__, learner.__name__)
        for model, learner in solved - kinds
        if model.__module__.startswith("solvable.") and learner.__module__.startswith("solvable.")
    }
