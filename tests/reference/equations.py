"""The state evolution's equations evaluated by SciPy from their definitions, apart from the library's own code.

I(q) = E[g^2] at V = 1 - q, and Psi(q) = E[log Z] up to a constant, for channels with a closed-form posterior; the
scalar overlap and potential of each prior. Adaptive quadrature to 1e-10 or better.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import cubature, quad
from scipy.special import log_ndtr

_LOG_2PI = np.log(2 * np.pi)
_REACH = 9.0


def gaussian_mean(function) -> float:
    """E f(x), x ~ N(0, 1), for a smooth f."""
    return quad(
        lambda x: np.exp(-(x**2) / 2 - _LOG_2PI / 2) * function(x),
        -_REACH,
        _REACH,
        points=[0.0],
        limit=400,
        epsabs=1e-13,
        epsrel=1e-12,
    )[0]


def absolute_information(q: float) -> float:
    """y = |z|, g = (y tanh(y omega / V) - omega) / V: z > 0 first, then omega | z ~ N(q z, q V)."""
    V = 1 - q

    def integrand(points):
        z, x = points[:, 0], points[:, 1]
        omega = q * z + np.sqrt(q * V) * x
        g = (z * np.tanh(z * omega / V) - omega) / V
        return 2 * np.exp(-(z**2 + x**2) / 2 - _LOG_2PI) * g**2

    found = cubature(integrand, [0.0, -_REACH], [_REACH, _REACH], rtol=1e-10, atol=1e-13)
    assert found.status == "converged"
    return float(found.estimate)


def probit_information(q: float, noise: float = 0.0) -> float:
    """y = sign(z + sqrt(D) xi): E_omega[N(omega; 0, U)^2 / (Phi(a) Phi(-a))], U = V + D, a = omega / sqrt(U)."""
    U = 1 - q + noise
    ratio = np.sqrt(U / q)

    def integrand(a):
        log_density = -((a * ratio) ** 2) / 2 - _LOG_2PI / 2 + np.log(ratio)
        return np.exp(log_density - a**2 - _LOG_2PI - log_ndtr(a) - log_ndtr(-a)) / U

    reach = min(_REACH / ratio, 12.0)
    return quad(integrand, -reach, reach, points=[0.0], limit=400, epsabs=0, epsrel=1e-12)[0]


def probit_entropy(q: float, noise: float = 0.0) -> float:
    """Psi = E_omega of the sum over y of Phi(y a) log Phi(y a)."""
    U = 1 - q + noise

    def both(x):
        a = np.sqrt(q / U) * x
        return sum(np.exp(log_ndtr(s * a)) * log_ndtr(s * a) for s in (1, -1))

    return gaussian_mean(both)


def linear_information(q: float, noise: float) -> float:
    """y = z + sqrt(D) xi: 1 / (V + D)."""
    return 1 / (1 - q + noise)


def linear_error(alpha: float, noise: float) -> float:
    """1 - q of y = z + sqrt(D) xi with Gaussian weights: the root of V^2 + (alpha + D - 1) V - D = 0."""
    b = alpha + noise - 1
    root = np.sqrt(b**2 + 4 * noise)
    return (root - b) / 2 if b < 0 else 2 * noise / (root + b) if noise else 0.0


def gaussian_overlap(qhat: float) -> float:
    """qhat / (1 + qhat)."""
    return qhat / (1 + qhat)


def rademacher_overlap(qhat: float) -> float:
    """E tanh(qhat + sqrt(qhat) x)."""
    return gaussian_mean(lambda x: np.tanh(qhat + np.sqrt(qhat) * x))


def rademacher_potential(qhat: float) -> float:
    """E log cosh(qhat + sqrt(qhat) x) - qhat / 2."""

    def log_cosh(x):
        return np.logaddexp(x, -x) - np.log(2)

    return gaussian_mean(lambda x: log_cosh(qhat + np.sqrt(qhat) * x)) - qhat / 2


def gauss_bernoulli_overlap(qhat: float, rho: float) -> float:
    """E[E[w|B]^2] over B = qhat w + sqrt(qhat) x, by the spike's and the slab's share of the law of B."""
    variance = 1 / (qhat + rho)

    def squared_mean(B):
        log_odds = np.log((1 - rho) / rho) - np.log(rho * variance) / 2 - variance * B**2 / 2
        return (variance * B / (1 + np.exp(log_odds))) ** 2

    spike, slab = np.sqrt(qhat), np.sqrt(qhat**2 / rho + qhat)
    return (1 - rho) * gaussian_mean(lambda x: squared_mean(spike * x)) + rho * gaussian_mean(
        lambda x: squared_mean(slab * x)
    )
