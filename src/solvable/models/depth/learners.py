"""Networks of several layers: trained one layer after the other, or all at once."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.engine.kernel import MOST_DEGREE, checked_share

SPECTRAL, GRADIENT = "spectral", "gradient"


class Layerwise(Learner):
    r"""A network trained layer by layer: one hidden layer of learned features and a read-out, or two.

    With `training="spectral"` each step is what descent from a small start amounts to, done by linear algebra:

    1. The first layer finds the subspace of the m r eigenvectors of largest $|\lambda|$ of
       $\frac1n\sum_\mu y_\mu (x_\mu x_\mu^T - I)$, m r the number of directions that the target has.
    2. With `layers=1` the read-out is a ridge regression on the Hermite polynomials of degree at most `degree` of the
       inputs in that subspace. With `layers=2` that regression, on one half of the samples, is a step of the second
       layer along its preconditioned gradient: what it predicts is the one hidden feature that is learned, and
    3. the read-out is a ridge regression on ReLU neurons of that feature, on the other half.

    With `training="gradient"` neurons $\mathrm{relu}(w_j\cdot x + b_j)$, `width` of them, take steps along the gradient
    of the correlation loss, the layers above frozen, and are normalised. With `layers=2` a second layer is trained by
    `steps` of Adam on the square loss of half of the samples, at the rate `learning_rate` over the root of the width
    and with the layer above frozen; it is kept as it was where its error on samples set aside was least. The read-out
    is a ridge regression on the last layer's neurons; `degree` plays no part.

    Penalties are those of least error on the share `validation` of the samples, after which all are trained on.
    """

    layers: int = eqx.field(static=True)
    degree: int
    training: str = eqx.field(static=True)
    width: int
    steps: int
    learning_rate: float
    validation: float

    def __init__(
        self,
        layers: int = 2,
        degree: int = 3,
        training: str = SPECTRAL,
        width: int = 500,
        steps: int = 300,
        learning_rate: float = 0.1,
        validation: float = 0.2,
    ):
        self.layers = check_count("layers", layers, least=1, most=2)
        self.degree = check_count("degree", degree, least=1, most=MOST_DEGREE)
        if training not in (SPECTRAL, GRADIENT):
            raise bad_parameter("training", training, f"'{SPECTRAL}' or '{GRADIENT}'")
        self.training = training
        self.width = check_count("width", width, least=1)
        self.steps = check_count("steps", steps, least=1)
        self.learning_rate = real_number("learning_rate", learning_rate, "a positive number", lambda x: x > 0)
        self.validation = checked_share("validation", validation)


class JointTraining(Learner):
    """A fully connected ReLU network whose layers are trained all at once, by Adam with weight decay.

    - `layers`: 3 for two hidden layers of `width` and `second_width` neurons, 2 for one of `width` neurons.
    - `width`: a number, or None for that of 100 and 400 whose error on samples set aside is least.
    - `epochs` of steps on the square loss of batches of `batch` samples, at the rate `learning_rate`; `decay` times the
      weights is added to their gradient.
    - `validation`: the share of the samples that is set aside; the network of the epoch at which the error on them was
      least is kept.
    """

    by_default: ClassVar[bool] = False

    layers: int = eqx.field(static=True)
    width: int | None
    second_width: int
    epochs: int
    batch: int
    learning_rate: float
    decay: float
    validation: float

    def __init__(
        self,
        layers: int = 3,
        width: int | None = 400,
        second_width: int = 100,
        epochs: int = 60,
        batch: int = 128,
        learning_rate: float = 1e-3,
        decay: float = 1e-3,
        validation: float = 0.2,
    ):
        self.layers = check_count("layers", layers, least=2, most=3)
        self.width = None if width is None else check_count("width", width, least=1)
        self.second_width = check_count("second_width", second_width, least=1)
        self.epochs = check_count("epochs", epochs, least=1)
        self.batch = check_count("batch", batch, least=1)
        self.learning_rate = real_number("learning_rate", learning_rate, "a positive number", lambda x: x > 0)
        self.decay = real_number("decay", decay, "zero or positive", lambda x: x >= 0)
        self.validation = checked_share("validation", validation)
