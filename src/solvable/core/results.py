"""What theory says (`Prediction`) and what one run gave (`Outcome`): the same metrics under the same names."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from solvable.core.status import Status


class _Metrics:
    metrics: dict[str, Any]

    def __getitem__(self, metric: str) -> Any:
        try:
            return self.metrics[metric]
        except KeyError:
            raise KeyError(f"no metric {metric!r}; there are: {', '.join(self.metrics)}") from None


@dataclasses.dataclass(frozen=True)
class Prediction(_Metrics):
    """What theory says in the limit of infinite dimension.

    Every entry has the shape of the axis given to `predict` (trailing axes for matrices). `status` holds a `Status`,
    or an integer array of them; `uncertainty` a numerical error estimate for each metric; `residual` how far the
    order parameters are from solving their equations.
    """

    metrics: dict[str, Any]
    order_parameters: dict[str, Any] = dataclasses.field(default_factory=dict)
    status: Any = Status.CONVERGED
    residual: Any = 0.0
    iterations: Any = 0
    uncertainty: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def converged(self) -> Any:
        """Whether each point succeeded; a `bool` for a single point."""
        ok = np.asarray(self.status) == Status.CONVERGED
        return bool(ok) if ok.ndim == 0 else ok

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.metrics.items())
        ended = (
            Status(int(self.status)).sentence if np.ndim(self.status) == 0 else f"{np.sum(self.converged)} converged"
        )
        return f"Prediction({inside}; {ended})"


@dataclasses.dataclass(frozen=True)
class Outcome(_Metrics):
    """What one run at finite size gave; `estimate` is what the algorithm returns, `converged` its own verdict."""

    metrics: dict[str, Any]
    estimate: Any = None
    converged: bool = True
    seconds: float = float("nan")
    details: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.metrics.items())
        return f"Outcome({inside}; {'converged' if self.converged else 'NOT converged'}, {self.seconds:.2g} s)"


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.6g}" if array.ndim == 0 else f"<{'x'.join(map(str, array.shape))} array>"
