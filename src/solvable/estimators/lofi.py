r"""Features that labels pick, layer by layer: iterative spectral selection ("Neural LoFi") of one's own data.

The layers are those of `engine.lofi`, which says what they select. With many classes each has labels of its own, of one
against the rest, and the largest eigenvalues of all of them count. [dandi2026deep]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.core.checks import check_count
from solvable.engine.lofi import checked_width
from solvable.engine.lofi.layers import select
from solvable.estimators.labelled import LabelledTransformer, columns


class NeuralLoFi(LabelledTransformer):
    """Features of the inputs that the label picks, by random layers and spectral selection.

    - `features`: how many directions K each layer keeps; at most the width and the number of samples.
    - `layers`: how many layers select; each doubles the degree that can be reached.
    - `width`: random neurons P of a layer, or `"kernel"` for infinitely many, at the cost of the third power of n.
    - `final`: whether a last random layer of `width` neurons follows, on which a ridge regression does well; a linear
      read-out of the K features alone does not. A kernel has none: use a kernel ridge regression on its features.
    - `random_state`: of the random layers.

    Labels are numbers, or classes of any number. After `fit`, `eigenvalues_` are those of the kept features of each
    layer, and `emergence_` the numbers of samples at which they are expected to stand out.
    """

    def __init__(
        self,
        features: int = 20,
        layers: int = 2,
        width: int | str = 1000,
        final: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.features = features
        self.layers = layers
        self.width = width
        self.final = final
        self.random_state = random_state

    def transform(self, X: Any) -> np.ndarray:
        """The features of other inputs."""
        check_is_fitted(self)
        h = np.asarray(validate_data(self, X, reset=False, dtype=np.float64)) - self.mean_
        return self._stack(h)

    def _fitted(self, X: Any, y: Any) -> np.ndarray:
        layers = check_count("layers", self.layers, least=1)
        kept = check_count("features", self.features, least=1)
        width = checked_width(self.width)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        rng = check_random_state(self.random_state)
        self.mean_ = np.mean(X, axis=0)
        self._stack = select(X - self.mean_, columns(y), kept, layers, width, self.final, rng)
        self.eigenvalues_, self.emergence_ = self._stack.eigenvalues, self._stack.emergence
        self.features_out_ = self._stack.output.shape[1]
        return self._stack.output
