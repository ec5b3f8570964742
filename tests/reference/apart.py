"""Predictions of the low-rank, feature, attention and dynamics families once more, by independent equations.

Like `finer`: each function takes a model, a learner, the place on its axes and the prediction there, and gives metrics
by name. What an independent equation is missing for is evaluated with several times the points.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import mpmath as mp
import numpy as np
from reference import lowrank_equations as spikes
from reference.finer import FINER, matrix_bayes, secant
from reference.machine_equations import gaussian_ascent, maximum
from reference.matrix_tensor import iterated
from reference.wide_teacher_equations import solved
from scipy.integrate import solve_ivp

from solvable.models.attention.indexed.hardmax import sample_information
from solvable.models.attention.sequence.signless import averages

_LEAST = 1e-6
"""Overlaps below this are not compared: they are solved for by their logarithm."""

_OF_TABLES = 1e-9
"""What linear interpolation between steps of 1e-4 leaves."""


def spike(prior: list, order: int) -> Any:
    """The fixed point of a spiked matrix or tensor, by SciPy's quadrature."""

    def truth(model, learner, found) -> dict[str, float]:
        q, noise = float(found["overlap"]), getattr(model, "noise", None) or 1 / model.snr**2
        if q < _LEAST:
            return {}
        gap = lambda x: x - np.log(spikes.overlap(prior, np.exp((order - 1) * x) / noise))  # noqa: E731
        q = np.exp(secant(gap, np.log(q)))
        return {"overlap": q, "estimation_error": 1 - q}

    return truth


def covariance(prior: list, latent: list) -> Any:
    """That of a spiked covariance."""

    def truth(model, learner, alpha, found) -> dict[str, float]:
        q, snr = float(found["overlap"]), model.snr
        if q < _LEAST:
            return {}

        def gap(x: float) -> float:
            return x - np.log(spikes.overlap(prior, alpha * snr * spikes.overlap(latent, snr * np.exp(x))))

        q = np.exp(secant(gap, np.log(q)))
        of_latent = spikes.overlap(latent, snr * q)
        return {"overlap": q, "estimation_error": 1 - q, "latent_squared_overlap": of_latent}

    return truth


def principal_component(model, learner, *place) -> dict[str, float]:
    """An outlier z carries -1/(theta^2 G'(z)) of its spike, G the resolvent of the bulk, or of its samples."""
    if place[:-1]:
        gamma, theta = 1 / place[0], model.snr
        squared = (1 - gamma / theta**2) / (1 + gamma / theta) if theta**2 > gamma else 0.0
    else:
        snr = model.snr
        z = snr + 1 / snr
        squared = -1 / (snr**2 * (1 - z / np.sqrt(z * z - 4)) / 2) if snr > 1 else 0.0
    return {"squared_overlap": squared, "estimation_error": 1 - squared}


def factors(on_spheres: bool) -> Any:
    """A matrix and a tensor, by the plain iteration from where the prediction is."""

    def truth(model, learner, found) -> dict[str, float]:
        q = np.array([float(found[f"squared_overlap_{k}"]) for k in "uvxy"])
        exact = iterated(model.matrix_noise, model.tensor_noise, model.ratios, q, on_spheres, 1e-20, 1e-15)
        return {f"squared_overlap_{k}": value for k, value in zip("uvxy", exact, strict=True)}

    return truth


def one_by_one(model, learner, found) -> dict[str, float]:
    """The matrix alone, then the tensor with the u that it gave."""
    a = np.array(model.ratios) / model.ratios[0]
    Dm, Dt = model.matrix_noise, model.tensor_noise
    u, v, x, y = (float(found[f"squared_overlap_{k}"]) for k in "uvxy")
    for _ in range(5000):
        u, v = (part / (1 + part) for part in (a[1] * v / Dm, u / Dm))
    for _ in range(5000):
        x, y = (part / (1 + part) for part in (a[3] * u * y / Dt, a[2] * u * x / Dt))
    return {f"squared_overlap_{k}": value for k, value in zip("uvxy", (u, v, x, y), strict=True)}


def machine(model, learner, alpha, found) -> dict[str, float]:
    """One binary unit, by the trapezoidal rule and Powell's method."""
    mixture = model.latent.mixture()
    start = [float(found.order_parameters[name]) for name in ("m", "q", "V")]
    _, q, _, squared, replicon, likelihood = maximum(alpha, model.snr, start, mixture)
    return {"squared_norm": q, "squared_overlap": squared, "replicon": replicon, "log_likelihood": likelihood}


def ascent(model, learner, alpha, found) -> dict[str, float]:
    """A Gaussian unit, by the spectral measures of X^T X."""
    M, Q = gaussian_ascent(alpha, model.snr, learner.learning_rate, learner.steps, learner.start, learner.self_overlap)
    return {"cosine": M[-1] / np.sqrt(Q[-1]), "squared_norm": Q[-1]}


def wide_teacher(name: str) -> Any:
    """Features one after the other, by a table and linear interpolation: those errors that are stated above its own."""

    def truth(model, learner, alpha, found) -> dict[str, float]:
        limit = getattr(learner, "width", np.inf)
        exact = solved(name, model.exponent, model.width, model.noise, alpha, limit=limit)
        return {key: value for key, value in exact.items() if found.uncertainty[key] > _OF_TABLES * abs(value)}

    return truth


def kernel(moments: tuple[float, float, float]) -> Any:
    """Ridge regression in exact arithmetic, from mean, linear coefficient and variance of the target."""

    def truth(model, learner, alpha, found) -> dict[str, float]:
        with mp.workdps(50):
            mean, linear, variance = map(mp.mpf, moments)
            rest = variance - linear**2 + mp.mpf(model.noise)
            curved = sum(1 / mp.factorial(q) for q in range(2, int(learner.degree) + 1))
            best = max(curved, rest / linear**2)
            strength = best if learner.penalty is None else mp.mpf(learner.penalty) + curved
            S, D = _ridge(linear**2, rest, strength, mp.mpf(alpha))
            alpha = mp.mpf(alpha)
            error = variance - linear**2 + linear**2 * (1 - S) ** 2 + S**2 * D
            train = ((strength - curved) / strength) ** 2 * D * (alpha - S) ** 2 / alpha
            cosine = linear / mp.sqrt((linear**2 + D) * model.projections)
            return {name: float(value) for name, value in zip(_KERNEL, (error, train, cosine), strict=True)}

    return truth


_KERNEL = ("generalization_error", "training_error", "cosine")


def lazy(model, learner, alpha, found) -> dict[str, float]:
    """Ridge regression of a vector from 2 alpha samples for each unknown, in exact arithmetic."""
    with mp.workdps(60):
        Q, noise, penalty = (mp.mpf(float(part)) for part in (model.law.second_moment, model.noise, learner.penalty))
        samples = 2 * mp.mpf(alpha)
        k, D = _ridge(Q, noise / 2, penalty, samples)
        mse, fit = Q * (1 - k) ** 2 + k**2 * D, D * (samples - k) ** 2
        exact = {
            "cosine": mp.sqrt(Q / (Q + D)),
            "estimation_error": mse,
            "training_error": fit / mp.mpf(alpha),
            "training_loss": fit + penalty * k**2 * (Q + D),
        }
        return {name: float(value) for name, value in exact.items()}


def _ridge(power: Any, noise: Any, strength: Any, alpha: Any) -> tuple[Any, Any]:
    """S, the smaller root of strength S = (alpha - S)(1 - S), and D that solves alpha D = noise + error."""
    half = (1 + alpha + strength) / 2
    S = half - mp.sqrt(half**2 - alpha)
    return S, (power * (1 - S) ** 2 + noise) / (alpha - S**2)


def wide_network(model, learner, alpha, found) -> dict[str, float]:
    """The universal solution: that of a matrix, with its effective noise from the error."""
    D = (model.output_side().noise + float(found["estimation_error"])) / float(model.gain(alpha=alpha))
    return matrix_bayes(model, learner, alpha, dataclasses.replace(found, order_parameters={"effective_noise": D}))


def runs_of(share: Any) -> Any:
    """`share(learner)` times the Bayes-optimal error: the conjecture on averaged descent."""

    def truth(model, learner, alpha, found) -> dict[str, float]:
        return {name: share(learner) * value for name, value in matrix_bayes(model, learner, alpha, found).items()}

    return truth


def hardmax(model, learner, alpha, found) -> dict[str, float]:
    """Two tokens: the information of a label by a finer rule, without its table, and the spectrum by more nodes."""
    from solvable.spectra.convolution import NODES, free_sum
    from solvable.spectra.denoising import mmse_forms

    law, gain = model.signal_side().law, float(model.gain(alpha=alpha))
    unit = model.signal_side().variance

    def left(D: float) -> float:
        both = [float(part) for part in mmse_forms(law, free_sum(law, D, 2 * NODES))]
        return both[0 if unit > D else 1]

    def excess(x: float) -> float:
        V = left(np.exp(-x))
        return x - float(np.log(gain * sample_information((1 + model.rho - V) / V, FINER) / V))

    x = secant(excess, float(np.log(found.order_parameters["qhat"])))
    return {"estimation_error": left(np.exp(-x))}


def one_layer(model, learner, alpha, found) -> dict[str, float]:
    """One layer of tied attention without the table of its information."""
    q = float(found["overlap"])
    if not _LEAST < q < 1 - 1e-9:
        return {}

    def excess(t: float) -> float:  # log(q/V) = log(qhat)
        V = 1 / (1 + np.exp(t))
        return t - float(np.log(alpha * averages(np.exp(t), model.tokens, FINER)[0] / V))

    t = secant(excess, float(np.log(q / (1 - q))))
    return {"overlap": 1 / (1 + np.exp(-t)), "estimation_error": 1 / (1 + np.exp(t))}


def sampled_overlaps(fineness: float) -> Any:
    """The fixed point of overlaps of sequences from `fineness` times the points, by repeated steps."""

    def truth(model, learner, alpha, found) -> dict[str, Any]:
        M = np.atleast_2d(np.asarray(found.order_parameters["M" if "M" in found.order_parameters else "q"], float))
        values = np.linalg.eigvalsh(M)
        if values[0] < 1e-3 or values[-1] > 0.999:
            return {}
        one = np.eye(len(M))

        def step(M: np.ndarray) -> np.ndarray:
            information = alpha * model.channel.information((one - M)[None], fineness).information[0]
            return np.linalg.solve(one + information, information)

        # Newton's method along the line of the plain iteration, whose steps shrink by a common factor.
        first = step(M) - M
        second = step(M + first) - (M + first)
        factor = float(np.clip(np.vdot(first, second) / np.vdot(first, first), -0.9, 0.99))
        M = M + first / (1 - factor)
        M = M + (step(M) - M) / (1 - factor)
        return {"estimation_error": len(M) - np.trace(M)}

    return truth


def _rule(nodes: int, dimensions: int) -> tuple[list[np.ndarray], np.ndarray]:
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    grids = np.meshgrid(*[z] * dimensions, indexing="ij")
    weights = np.ones(1)
    for _ in range(dimensions):
        weights = np.multiply.outer(weights, w / w.sum())
    return [part.ravel() for part in grids], weights.ravel()


def descent(g: Any, sigma: Any, slope: Any, kind: str) -> Any:
    """A neuron on the sphere on labels g(z) + noise: SciPy, averages by a product rule; "once", "ahead" or "twice".

    With F = (y - sigma(h)) sigma'(h), that after a look ahead, or the sum of two steps on a sample, and rate gamma,

        dm/dalpha = gamma (E[F z] - m E[F h]) - gamma^2 m E[F^2] / 2 .
    """
    (z, x), weight = _rule(130, 2)
    label = g(z)

    def truth(model, learner, alpha, found) -> dict[str, float]:
        gamma, noise = learner.learning_rate, np.sqrt(model.noise)
        xi, of_xi = _rule(10, 1) if noise else ([np.zeros(1)], np.ones(1))
        y, w = label[:, None] + noise * xi[0], weight[:, None] * of_xi

        def force(h: np.ndarray) -> np.ndarray:
            return (y - sigma(h)) * slope(h)

        def motion(_, state: np.ndarray) -> list[float]:
            m = state[0]
            h = (m * z + np.sqrt(max(1 - m * m, 0.0)) * x)[:, None]
            F = force(h)
            if kind == "ahead":
                F = force(h + learner.extrapolation * F)
            if kind == "twice":
                F = F + force(h + gamma * F)
            pull = np.sum(w * F * z[:, None]) - m * np.sum(w * F * h)
            return [gamma * pull - gamma**2 * m * np.sum(w * F**2) / 2]

        path = solve_ivp(motion, (0, alpha), [learner.start], method="DOP853", rtol=1e-10, atol=1e-12)
        m = float(path.y[0, -1])
        h = m * z + np.sqrt(max(1 - m * m, 0.0)) * x
        return {"cosine": m, "generalization_error": float(weight @ (sigma(h) - label) ** 2)}

    return truth
