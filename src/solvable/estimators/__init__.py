"""What the theory says to do with one's own data, as scikit-learn estimators."""

from __future__ import annotations

from solvable.estimators.amp_regressor import AMPRegressor
from solvable.estimators.convolution import ConvolutionalLoFi
from solvable.estimators.lofi import NeuralLoFi
from solvable.estimators.quadratic import QuadraticRegressor
from solvable.estimators.rbm import RBM
from solvable.estimators.spectral_index import SpectralIndex

__all__ = ["RBM", "AMPRegressor", "ConvolutionalLoFi", "NeuralLoFi", "QuadraticRegressor", "SpectralIndex"]
