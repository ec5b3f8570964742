"""Random matrices: laws of eigenvalues, sums with Gaussian noise, optimal denoising, outliers."""

from __future__ import annotations

from solvable.spectra.density import Density
from solvable.spectra.discrete import Discrete, PowerLaw
from solvable.spectra.law import Law
from solvable.spectra.named import as_law
from solvable.spectra.product import ProductWishart
from solvable.spectra.semicircle import Semicircle
from solvable.spectra.wishart import MarchenkoPastur

__all__ = ["Density", "Discrete", "Law", "MarchenkoPastur", "PowerLaw", "ProductWishart", "Semicircle", "as_law"]
