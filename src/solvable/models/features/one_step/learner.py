"""The learner that takes one giant gradient step on the first layer, then trains the second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.models.features.two_layer.model import positive_or_infinite

Atoms = tuple[tuple[float, float], ...]
_TAKES = (
    "'ones', 'gaussian:ORDER', or values with fractions that add up to 1, such as {1: 0.5, -1: 0.5} or '1:0.5 -1:0.5'"
)


def as_atoms(value: Any) -> Atoms:
    """Pairs (value, fraction) of a second layer, sorted; equal values are taken together."""
    pairs = _pairs(value)
    try:
        pairs = [(float(u), float(share)) for u, share in pairs]
    except (TypeError, ValueError):
        raise bad_parameter("second_layer", value, _TAKES) from None
    total = sum(share for _, share in pairs)
    if not (pairs and np.all(np.isfinite(pairs)) and all(share > 0 for _, share in pairs) and abs(total - 1) < 1e-9):
        raise bad_parameter("second_layer", value, _TAKES)
    merged: dict[float, float] = {}
    for u, share in sorted(pairs):
        merged[u] = merged.get(u, 0.0) + share / total
    return tuple(merged.items())


def _pairs(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, str):
        return list(value) if isinstance(value, (list, tuple)) else []
    text = value.strip()
    if text == "ones":
        return [(1.0, 1.0)]
    if text.partition(":")[0] == "gaussian":
        return gaussian_atoms(text.partition(":")[2] or "8", value)
    return [part.split(":") for part in text.replace(";", " ").split()]


def gaussian_atoms(order: str, value: Any) -> list[tuple[float, float]]:
    """The values and fractions that stand for independent N(0, 1) entries: the Gauss-Hermite rule of that order."""
    if not (order.isdigit() and 2 <= int(order) <= 32):
        raise bad_parameter("second_layer", value, "'gaussian:ORDER' with an order from 2 to 32")
    nodes, weights = np.polynomial.hermite_e.hermegauss(int(order))
    return list(zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True))


class OneStep(Learner):
    r"""One giant gradient step of the first layer on a batch, then the second layer trained on fresh samples.

    The step is $w_k \leftarrow w_k + \eta u_k \frac{1}{n_B}\sum_i (y_i - f_0(x_i))\,\sigma'(w_k\cdot x_i)\, x_i$ from
    rows on the unit sphere, $f_0(x) = \frac1p\sum_k u_k\sigma(w_k\cdot x)$, with $\eta$ = `step` of order one. In the
    usual units, $f = a\cdot\sigma/\sqrt p$ and a learning rate $\eta_{raw}$ on the mean of $(y-f)^2/2$, it is
    $\eta u_k = \eta_{raw} a_k/\sqrt p$. The second layer is then that of `RandomFeatures`.

    - `penalty`, `loss`: of the second layer, as those of `RandomFeatures`; the penalty is positive.
    - `step`: eta, zero or positive. `batch`: $n_B/d$, samples of the step per dimension; `inf` for the population.
    - `second_layer`: the values $u_k$ during the step: `"ones"`, a few values with fractions as
      `{1: 0.5, -1: 0.5}`, pairs, or text `"1:0.5 -1:0.5"`; `"gaussian:8"` for those of a Gauss-Hermite rule.
    - `bulk`: what theory takes the rows to be beside their spike: `"exact"`, or `"isotropic"` as in the publications,
      which is right for large batches only. With several values of the second layer there is the isotropic one only.
    - `units`: a finite number p of units, at whose cost the means of the features are fitted; it is needed with several
      values and for small steps, and what it leaves out is of order 1/p. None for the limit, in which they are free.
    """

    by_default: ClassVar[bool] = False

    penalty: float
    step: float
    batch: float
    second_layer: Atoms = eqx.field(default="ones", converter=as_atoms, static=True)
    bulk: str = eqx.field(default="exact", static=True)
    loss: str = eqx.field(default="square", static=True)
    units: int | None = eqx.field(default=None, static=True)

    def __check_init__(self):
        real_number("penalty", self.penalty, "a positive number", lambda x: x > 0)
        real_number("step", self.step, "a finite number, zero or positive", lambda x: x >= 0)
        positive_or_infinite("batch", self.batch, "samples of the step per dimension")
        if self.bulk not in ("exact", "isotropic"):
            raise bad_parameter("bulk", self.bulk, "'exact' or 'isotropic'")
        if self.loss not in ("square", "logistic"):
            raise bad_parameter("loss", self.loss, "'square' or 'logistic'")
        if self.units is not None:
            check_count("units", self.units, least=1)
