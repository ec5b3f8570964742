"""y = |Tr[G A*]| for n = alpha d^2 Gaussian matrices G, A* of known eigenvalues, symmetric about 0: two sides that no
family puts together, with which come theory, thresholds and message passing."""

import numpy as np

import solvable as sv
from solvable.core.model import Data
from solvable.engine.operators import GaussianFeatures, PackedFeatures
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.signals.eigenvalues import EigenvalueSignal
from solvable.engine.two_sided import Instance, TwoSided


class AbsoluteMatrix(TwoSided):
    axes, scaling = (sv.Axis("alpha", "n/d^2"),), "n = alpha d^2"
    spectrum: sv.spectra.Law

    def output_side(self):
        return PosteriorOutput(sv.channels.Absolute())

    def signal_side(self):
        return EigenvalueSignal(self.spectrum)

    def gain(self, **axes):
        return 2 * axes["alpha"]  # samples for each of the d^2/2 entries

    def hides_sign(self):
        return True

    def sample(self, rng, d, **axes):
        operator = PackedFeatures(GaussianFeatures.draw(rng, round(axes["alpha"] * d**2), d))
        w = operator.vector(sv.MatrixSensing(self.spectrum).teacher(rng, d)[0])
        w *= np.sqrt(len(w)) / np.linalg.norm(w)  # the entries of A*, of unit variance
        return Data(operator, np.abs(operator.forward(w)[:, 0]), w)

    def instance(self, data):
        return Instance(data.X, self.output_side().denoiser(data.y), self.signal_side().denoiser(data.X))
