"""Features that labels pick, layer by layer, as a learner of every model whose inputs are vectors."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx

from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.engine.kernel import checked_penalty, checked_share

KERNEL = "kernel"
"""The width of infinitely many neurons."""


class NeuralLoFi(Learner):
    r"""Layers of random neurons, of which each keeps the directions that go with the label most, and a ridge read-out.

    A layer takes its input h through P random ReLU neurons, $Z = \mathrm{relu}(h W/c)/\sqrt P$, and passes on the
    projections of Z on the eigenvectors of largest $|\lambda|$ of $\frac1n \sum_i (y_i - \bar y) Z_i Z_i^T$. The label
    is fitted by ridge regression on a last layer of neurons, which selects nothing.

    - `features`: how many directions K each layer keeps.
    - `layers`: how many layers select.
    - `width`: P, or `"kernel"` for infinitely many neurons, at a cost of the third power of the number of samples.
    - `penalty`: of the ridge regression; None for the one of least error on samples set aside.
    - `validation`: the share of the samples that is set aside to choose it, after which all are trained on.
    """

    by_default: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        return "neural-lofi"

    features: int
    layers: int = eqx.field(static=True)
    width: int | str = eqx.field(static=True)
    penalty: float | None
    validation: float

    def __init__(
        self,
        features: int = 20,
        layers: int = 2,
        width: int | str = 1000,
        penalty: float | None = None,
        validation: float = 0.2,
    ):
        self.features = check_count("features", features, least=1)
        self.layers = check_count("layers", layers, least=1)
        self.width = checked_width(width)
        self.penalty = checked_penalty(penalty)
        self.validation = checked_share("validation", validation)


def checked_width(width: int | str) -> int | str:
    """A number of neurons, or the word for infinitely many."""
    if isinstance(width, str):
        if width != KERNEL:
            raise bad_parameter("width", width, f"a number of neurons, or '{KERNEL}'")
        return width
    return check_count("width", width, least=1)
