"""Matrix models against finite-size values that were computed from the definitions alone.

`reference/matrix_blind.json` was made by `reference/matrix_blind.py`, which knows nothing of the library: its own
solvers, samplers and denoisers. Theory is for infinite dimension, the runs have d = 12 to 600, so a deviation of a few
percent that falls like 1/d is allowed on top of four standard errors: `SHIFT`/d relative, more for quadratic features.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.spectra.denoising import mmse
from solvable.spectra.rectangular_denoising import rectangular_mmse

ENTRIES = json.loads((Path(__file__).parents[2] / "reference" / "matrix_blind.json").read_text())
SHIFT = {"goe": 2.0, "xx": 8.0}


def chosen(kind: str, quantities: tuple[str, ...]) -> list:
    found = [e for e in ENTRIES if e["id"].startswith(kind) and e["params"]["quantity"].split(".")[-1] in quantities]
    return [pytest.param(entry, id=entry["id"]) for entry in found]


def deviations(entry: dict, theory: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Relative deviations of the runs at both sizes, and what four standard errors are."""
    mean, stderr, theory = (np.array(values) for values in (entry["mean"], entry["stderr"], theory))
    return mean / theory - 1, 4 * stderr / theory


def check(entry: dict, theory: list[float], shift: float) -> None:
    gap, noise = deviations(entry, theory)
    assert np.all(np.abs(gap) < noise + shift / np.array(entry["sizes"])), (gap, noise)


def widths(entry: dict) -> list[float]:
    return [width / d for width, d in zip(entry["params"]["width"], entry["sizes"], strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", chosen("denoise.rho", ("mse",)) + chosen("denoise.signs", ("mse",)) + chosen("denoise.power", ("mse",))
)
def test_denoising(entry):
    """The oracle keeps the eigenvectors and takes the best eigenvalues: the error of the optimal denoiser."""
    params, laws = entry["params"], []
    for d in entry["sizes"]:
        if "rho" in params:
            laws.append(sv.spectra.MarchenkoPastur(params["rho"]))
        elif "exponent" in params:
            laws.append(sv.spectra.PowerLaw(params["exponent"], d))
        else:
            laws.append(sv.spectra.Discrete([-1.0, 1.0]))
    with jax.enable_x64(True):
        check(entry, [float(mmse(law, params["D"])) for law in laws], shift=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("entry", chosen("bilinear", ("mse",)))
def test_rectangular_denoising(entry):
    """The same for singular values, per entry of the matrix."""
    params = entry["params"]
    beta, kappa = float(params["beta"]), params["kappa"]
    with jax.enable_x64(True):
        laws = [sv.spectra.ProductWishart(rho, beta) for rho in widths(entry)]
        check(entry, [float(rectangular_mmse(law, beta, kappa)) for law in laws], shift=2.0)


@functools.cache
def fitted(learner: sv.Learner, rho: float, noise: float, alpha: float) -> sv.Prediction:
    return sv.predict(sv.QuadraticNetwork(rho, noise), learner, alpha=alpha)


def quantity(found: sv.Prediction, name: str, alpha: float) -> float:
    fit = alpha * found["training_error"]
    return {
        "mse": lambda: found["estimation_error"],
        "fit": lambda: fit,
        "penalty": lambda: found["training_loss"] - fit,
        "rank": lambda: found["rank"],
    }[name]()


@pytest.mark.parametrize("entry", chosen("psd", ("mse", "fit", "penalty", "rank")))
def test_weight_decay(entry):
    params = entry["params"]
    learner = sv.NuclearNorm(params["lam"])
    found = [fitted(learner, rho, params["Delta"], params["alpha"]) for rho in widths(entry)]
    theory = [quantity(point, params["quantity"], params["alpha"]) for point in found]
    check(entry, theory, SHIFT[params["features"]])


@pytest.mark.parametrize("entry", chosen("ridge", ("mse", "fit")))
def test_ridge(entry):
    params = entry["params"]
    learner = sv.Lazy(params["lam"])
    found = [fitted(learner, rho, params["Delta"], params["alpha"]) for rho in widths(entry)]
    theory = [quantity(point, params["quantity"], params["alpha"]) for point in found]
    check(entry, theory, SHIFT[params["features"]])


@pytest.mark.parametrize("entry", chosen("bayes", ("pooled", "sample")))
def test_posterior_mean(entry):
    """The mean of the posterior sampled by Hamiltonian dynamics, and half the error of a sample, at d = 12 and 20."""
    params = entry["params"]
    model = sv.QuadraticNetwork(params["rho"], params["Delta"])
    theory = sv.predict(model, sv.BayesOptimal(), alpha=params["alpha"])["estimation_error"]
    check(entry, [theory, theory], SHIFT["xx"])


@pytest.mark.parametrize("entry", chosen("descent.goe", ("single", "averaged")))
def test_gradient_descent(entry):
    """The conjecture for one run and for the average of eight, which these small runs exceed by far.

    The excess is 25 to 90 percent at d = 24 and 40. Our own runs at alpha = 0.32 have 40 percent at d = 80: it falls
    like 1/d, so that 40/d is allowed here.
    """
    params = entry["params"]
    learner = sv.GradientDescent(runs=1 if params["quantity"] == "single" else 8)
    theory = sv.predict(sv.QuadraticNetwork(params["rho"]), learner, alpha=params["alpha"])["estimation_error"]
    check(entry, [theory, theory], shift=40.0)
    excess = deviations(entry, [theory, theory])[0]
    assert excess[1] < excess[0]


@pytest.mark.slow
@pytest.mark.parametrize("entry", chosen("rank", ("mse", "fit")))
def test_narrow_students(entry):
    params = entry["params"]
    width, name = params["quantity"][1:].split(".")
    theory = []
    for size in entry["sizes"]:
        model = sv.MatrixSensing(sv.spectra.PowerLaw(params["exponent"], size), params["Delta"])
        found = sv.predict(model, sv.NuclearNorm(params["lam"], width=int(width)), alpha=params["alpha"])
        theory.append(quantity(found, name, params["alpha"]))
    check(entry, theory, SHIFT[params["features"]])
