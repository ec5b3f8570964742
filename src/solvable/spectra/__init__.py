"""Random matrices: laws of eigenvalues, free convolution with a semicircle, optimal denoising."""

from __future__ import annotations

from solvable.spectra.discrete import Discrete, PowerLaw
from solvable.spectra.law import Law
from solvable.spectra.semicircle import Semicircle
from solvable.spectra.wishart import MarchenkoPastur

__all__ = ["Discrete", "Law", "MarchenkoPastur", "PowerLaw", "Semicircle"]
