"""Restricted Boltzmann machines as learners: the maximum of the likelihood, and gradient ascent on the way to it."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import as_matrix, check_count, is_array, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.core.status import Status
from solvable.models.lowrank.rbm.units import KINDS, MOST, Units, check_hidden

_ADVICE = {
    Status.UNSTABLE: "the replicon is above 1, or there is no replica-symmetric point, as for a binary unit near the "
    "transition of principal components or with alpha up to 1: many maxima of the likelihood compete; take more "
    "samples or a stronger spike, or RBMAscent, whose theory has no such limit",
}


class RBM(Learner):
    r"""The weights of largest likelihood of a restricted Boltzmann machine with few hidden units.

    $\hat W = \arg\max_W \sum_\mu \eta_1(W^T x_\mu/\sqrt d) - n\,\eta_2(W^T W/d)$ with
    $\eta_1(z) = \log E_h e^{z\cdot h}$ and $\eta_2(Q) = \log E_h e^{h^T Q h/2}$.

    - `hidden`: `"binary"` for units +-1, or `"gaussian"` for standard Gaussian ones, which are principal components.
    - `units`: their number; with several the span of their weights is what is compared with the spike.
    - `solver`: how runs are made: `"direct"` by a method of optimisation from small random weights (for Gaussian units
      by eigenvectors), `"amp"` by message passing with one unit, whose every step the theory describes.
    """

    hidden: str = eqx.field(default="binary", static=True)
    units: int = 1
    solver: str = eqx.field(default="direct", static=True)

    def __check_init__(self):
        check_hidden(self.hidden)
        check_count("units", self.units, least=1, most=MOST)
        if self.solver not in ("direct", "amp"):
            raise bad_parameter("solver", self.solver, "'direct' or 'amp'")
        if self.solver == "amp" and self.units != 1:
            raise bad_parameter("units", self.units, "1 for message passing")

    @property
    def layer(self) -> Units:
        """The hidden units."""
        return KINDS[self.hidden](int(self.units))

    def advice(self, status: Status) -> str | None:
        return _ADVICE.get(status)


def _as_start(value: Any) -> Any:
    if isinstance(value, str) or is_array(value):
        rows = as_matrix("start", value)
        if len(rows) > 1 and len(rows[0]) > 1:
            raise bad_parameter("start", value, "a number, or one for each unit")
        return rows[0] if len(rows) == 1 else tuple(row[0] for row in rows)
    return real_number("start", value, "a finite number, or one for each unit")


def _as_self_overlap(value: Any) -> Any:
    if isinstance(value, str) or is_array(value):
        return as_matrix("self_overlap", value)
    return real_number("self_overlap", value, "a number above 0, or a matrix", lambda q: q > 0)


class RBMAscent(Learner):
    r"""Steps of gradient ascent on the likelihood of a restricted Boltzmann machine, on one data set.

    $W \leftarrow W + \eta\,[X^T \nabla\eta_1(X W) - W \Lambda(W^T W/d)]$ with inputs X of variance 1/d, $\eta$ =
    `learning_rate` and $\Lambda(Q) = 2\alpha\,\nabla\eta_2(Q)$: the gradient of the summed log-likelihood, so that the
    rate on its mean over samples is $\eta\alpha$.

    - `hidden`, `units`: as for `RBM`. `steps`: their number.
    - `start`: M = W^T w* / d at the start, a number for every unit or one for each.
    - `self_overlap`: Q = W^T W / d at the start: a number for every unit, which then share nothing but M M^T, or a
      matrix. The start is random but for M and Q.
    """

    by_default: ClassVar[bool] = False

    hidden: str = eqx.field(default="binary", static=True)
    units: int = 1
    steps: int = 10
    learning_rate: float = 0.3
    start: Any = eqx.field(default=0.1, converter=_as_start)
    self_overlap: Any = eqx.field(default=0.5, converter=_as_self_overlap)

    def __check_init__(self):
        check_hidden(self.hidden)
        check_count("units", self.units, least=1, most=MOST)
        check_count("steps", self.steps, least=0, most=1000)
        real_number("learning_rate", self.learning_rate, "a positive number", lambda x: x > 0)
        self.first_overlaps()

    @property
    def layer(self) -> Units:
        """The hidden units."""
        return KINDS[self.hidden](int(self.units))

    def first_overlaps(self) -> tuple[np.ndarray, np.ndarray]:
        """M (units x 1) and Q (units x units) at the start; a `ValueError` if they do not fit together."""
        k = int(self.units)
        M = np.broadcast_to(np.array(self.start, float).reshape(-1, 1), (k, 1)) if self._fits(k) else None
        if M is None:
            raise bad_parameter("start", self.start, f"a number, or {k} of them, one for each unit")
        given = np.array(self.self_overlap, float)
        Q = M @ M.T - np.diag(np.diag(M @ M.T)) + float(given) * np.eye(k) if given.ndim == 0 else given
        if Q.shape != (k, k) or not np.allclose(Q, Q.T, rtol=0, atol=1e-12):
            raise bad_parameter("self_overlap", self.self_overlap, f"a number, or a symmetric {k} x {k} matrix")
        least = np.linalg.eigvalsh(Q - M @ M.T)[0]
        if least < -1e-12 * max(1.0, float(np.abs(Q).max())):
            takes = f"overlaps that fit together: Q - M M^T has the eigenvalue {least:.3g}, which is negative"
            raise bad_parameter("start", self.start, takes)
        if not np.isfinite(self.layer.cost(Q)):
            raise bad_parameter("self_overlap", self.self_overlap, "below 1 for Gaussian units, in its eigenvalues")
        return M, Q

    def _fits(self, k: int) -> bool:
        return np.size(self.start) in (1, k)

    def advice(self, status: Status) -> str | None:
        return _DIVERGED if status in (Status.NONFINITE, Status.DIVERGED) else None


_DIVERGED = "ascent ran away, or Gaussian units left the domain |Q| < 1 of their likelihood: lower learning_rate"
