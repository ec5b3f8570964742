"""The learner of hierarchical targets: features by an eigendecomposition, then a fit of their squares."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner


class LayerwiseSpectral(Learner):
    r"""Learning layer by layer: features are the leading eigenvectors of a label-weighted covariance.

    With T(y) the preprocessed label, $C = \frac1n \sum_i (T(y_i) - \bar T)\, \varphi(x_i) \varphi(x_i)^T$, whose
    eigenvectors $\hat v_j$ above the bulk are kept; then y is fitted by the squares of $\hat v_j \cdot \varphi(x)$.

    - `preprocessing`: `"tanh"` for T = tanh(y/scale) or `"clip"` for y cut at +-scale. The labels themselves have tails
      so heavy that a few samples make eigenvectors of their own.
    - `scale`: in units of the standard deviation of a noiseless label.
    """

    by_default: ClassVar[bool] = True

    preprocessing: str = eqx.field(default="tanh", static=True)
    scale: float = 1.0

    def __check_init__(self):
        if self.preprocessing not in ("tanh", "clip"):
            raise bad_parameter("preprocessing", self.preprocessing, "'tanh' or 'clip'")
        real_number("scale", self.scale, "a finite number above 0", lambda x: x > 0)

    def transformed(self, y: np.ndarray) -> np.ndarray:
        """T(y), between -1 and 1."""
        z = y / float(self.scale)
        return np.tanh(z) if self.preprocessing == "tanh" else np.clip(z, -1.0, 1.0)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Labels at which T has a kink."""
        return () if self.preprocessing == "tanh" else (-float(self.scale), float(self.scale))
