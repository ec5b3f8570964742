"""Learning of matrices is the state evolution of two sides: the same numbers by ways that share nothing."""

from __future__ import annotations

import numpy as np
import pytest
from reference.trace_signal import TraceSignal

import solvable as sv
from solvable.channels import Linear
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import Field
from solvable.engine.signals.eigenvalues import EigenvalueSignal
from solvable.engine.signals.singular_values import SingularValueSignal
from solvable.engine.solvers import Curve
from solvable.spectra import MarchenkoPastur, as_law

ALPHA = np.array([0.05, 0.2, 0.34, 0.5, 2.0])


def explicit_curve(noise: float, signal) -> Curve:
    """The solver of index models, with their linear channel and the spectral signal in place of weights."""
    return Curve(PosteriorOutput(Linear(noise)), signal)


@pytest.mark.slow
def test_quadratic_networks_are_linear_labels_of_a_spectral_signal():
    """The bracket in D and the explicit curve agree to the error of the latter's table."""
    rho, noise = 0.5, 0.3
    curve = explicit_curve(noise / 2 / 1.0, EigenvalueSignal(MarchenkoPastur(rho)))
    expected = sv.predict(sv.QuadraticNetwork(rho, noise), sv.BayesOptimal(), alpha=ALPHA)
    found = curve.optimal(2 * ALPHA)
    assert np.allclose(found.variance[:, 0, 0], expected["estimation_error"], rtol=0, atol=1e-8)
    assert np.allclose(1 / found.field[:, 0, 0], expected.order_parameters["effective_noise"], rtol=1e-7)


@pytest.mark.slow
def test_bilinear_sequences_are_linear_labels_of_a_spectral_signal():
    found = explicit_curve(0.1, SingularValueSignal(0.5, 2.0)).uninformed(ALPHA)
    expected = sv.predict(sv.BilinearSequence(0.5, 2.0, 0.1), sv.AMP(), alpha=ALPHA)
    assert np.allclose(found.variance[:, 0, 0], expected["estimation_error"], rtol=0, atol=1e-8)


def test_perfect_recovery_counts_unknowns_as_index_models_do():
    curve = explicit_curve(0.0, EigenvalueSignal(MarchenkoPastur(0.5)))
    assert curve.gain_perfect / 2 == sv.thresholds(sv.QuadraticNetwork(0.5))["perfect_recovery"] == 0.375


@pytest.mark.slow
@pytest.mark.parametrize("law", ["marchenko-pastur:0.5", "discrete:-1,0,2"])
@pytest.mark.parametrize(
    ("width", "alpha"),
    [(None, 0.3), (None, 0.8), (0.2, 0.6)],
)
def test_nuclear_norm_learning_is_a_fixed_point_of_the_square_loss(law, width, alpha):
    """The output half, with residuals of unit variance z = Tr[G S]/sqrt(2): V_hat = 2 alpha E[h] with h = 1/(1 + V),
    q_hat = 2 alpha E[g^2]; the signal half is a shift and a cut of eigenvalues."""
    noise, penalty = 0.1, 0.2
    found = sv.predict(sv.MatrixSensing(law, noise), sv.NuclearNorm(penalty, width=width), alpha=alpha)
    D, V_hat = found.order_parameters["delta"] ** 2, 1 / (2 * found.order_parameters["epsilon"])
    signal = TraceSignal(as_law(law), penalty, 1.0 if width is None else width)
    m, q, V = (float(part) for part in signal.average(Field(V_hat, D * V_hat**2, V_hat)))
    error = q - 2 * m + float(as_law(law).second_moment)
    assert error == pytest.approx(found["estimation_error"], rel=1e-8)
    assert V_hat == pytest.approx(2 * alpha / (1 + V), rel=1e-9)
    assert D * V_hat**2 == pytest.approx(2 * alpha * (error + noise / 2) / (1 + V) ** 2, rel=1e-8)
