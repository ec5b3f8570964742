"""Separable priors and penalties: the signal side's denoisers."""

from __future__ import annotations

from solvable.core.errors import bad_parameter
from solvable.priors.base import GaussBernoulli, Gaussian, Prior, Rademacher
from solvable.priors.penalties import Lasso, Penalty, Ridge, as_penalty

__all__ = [
    "GaussBernoulli",
    "Gaussian",
    "Lasso",
    "Penalty",
    "Prior",
    "Rademacher",
    "Ridge",
    "as_penalty",
    "as_prior",
]


def as_prior(prior: Prior | str, name: str = "prior") -> Prior:
    """A prior from an instance or from text: `gaussian`, `rademacher`, `gauss-bernoulli:0.2`."""
    takes = "a prior, 'gaussian', 'rademacher' or 'gauss-bernoulli:RHO' with RHO in (0, 1]"
    if isinstance(prior, Prior):
        return prior
    if not isinstance(prior, str):
        raise bad_parameter(name, prior, takes)
    kind, _, parameter = prior.strip().lower().replace("_", "-").partition(":")
    if kind in ("gaussian", "rademacher") and not parameter:
        return Gaussian() if kind == "gaussian" else Rademacher()
    if kind == "gauss-bernoulli":
        try:
            return GaussBernoulli(float(parameter))
        except ValueError:
            raise bad_parameter(name, prior, takes) from None
    raise bad_parameter(name, prior, takes)
