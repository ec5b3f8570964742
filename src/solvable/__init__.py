"""Exactly solvable models of learning: what can be learned, from how many samples, and by which algorithm.

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable import channels as channels
    from solvable import estimators as estimators
    from solvable import priors as priors
    from solvable import spectra as spectra
    from solvable.channels import losses as losses
    from solvable.channels.contamination import Contamination as Contamination
    from solvable.core.axis import Axis as Axis
    from solvable.core.bibliography import Publication as Publication
    from solvable.core.bibliography import cite as cite
    from solvable.core.errors import ConvergenceError as ConvergenceError
    from solvable.core.errors import NotSimulable as NotSimulable
    from solvable.core.errors import NotSolvable as NotSolvable
    from solvable.core.errors import SolvableError as SolvableError
    from solvable.core.errors import TargetError as TargetError
    from solvable.core.errors import TimeLimitError as TimeLimitError
    from solvable.core.learners import AMP as AMP
    from solvable.core.learners import BayesOptimal as BayesOptimal
    from solvable.core.learners import GradientDescent as GradientDescent
    from solvable.core.learners import Spectral as Spectral
    from solvable.core.model import Data as Data
    from solvable.core.model import Learner as Learner
    from solvable.core.model import Model as Model
    from solvable.core.model import Stream as Stream
    from solvable.core.registry import simulation as simulation
    from solvable.core.registry import theory as theory
    from solvable.core.registry import thresholds_of as thresholds_of
    from solvable.core.results import Outcome as Outcome
    from solvable.core.results import Prediction as Prediction
    from solvable.core.status import Status as Status
    from solvable.engine.erm import ERM as ERM
    from solvable.engine.kernel import Kernel as Kernel
    from solvable.engine.lofi import NeuralLoFi as NeuralLoFi
    from solvable.lab.curve import Curve as Curve
    from solvable.lab.figures.run import reproduce as reproduce
    from solvable.lab.forecast import Forecast as Forecast
    from solvable.lab.forecast import KernelRidge as KernelRidge
    from solvable.lab.forecast import LinearRidge as LinearRidge
    from solvable.lab.forecast import forecast as forecast
    from solvable.lab.grid.curves import learning_curve as learning_curve
    from solvable.lab.grid.curves import phase_diagram as phase_diagram
    from solvable.lab.study.run import study as study
    from solvable.lab.sweep.gather import open as open
    from solvable.lab.sweep.verb import sweep as sweep
    from solvable.models.attention import AttentionIndexed as AttentionIndexed
    from solvable.models.attention import DeepAttention as DeepAttention
    from solvable.models.attention import DeepAttentionIndexed as DeepAttentionIndexed
    from solvable.models.attention import PositionalSemantic as PositionalSemantic
    from solvable.models.attention import SequenceIndex as SequenceIndex
    from solvable.models.attention import SequenceSGD as SequenceSGD
    from solvable.models.attention import SequenceSingleIndex as SequenceSingleIndex
    from solvable.models.attention import positional_transitions as positional_transitions
    from solvable.models.depth import HierarchicalTarget as HierarchicalTarget
    from solvable.models.depth import JointTraining as JointTraining
    from solvable.models.depth import Layerwise as Layerwise
    from solvable.models.depth import LayerwiseSpectral as LayerwiseSpectral
    from solvable.models.depth import TreeTarget as TreeTarget
    from solvable.models.features import OneStep as OneStep
    from solvable.models.features import PowerLawFeatures as PowerLawFeatures
    from solvable.models.features import RandomFeatures as RandomFeatures
    from solvable.models.features import TwoLayer as TwoLayer
    from solvable.models.features import TwoSteps as TwoSteps
    from solvable.models.features import best_step_bounds as best_step_bounds
    from solvable.models.features import feature_spectrum as feature_spectrum
    from solvable.models.features import risk_bounds as risk_bounds
    from solvable.models.features.power_law import optimal_exponents as optimal_exponents
    from solvable.models.features.power_law import scaling_exponents as scaling_exponents
    from solvable.models.index import MultiIndex as MultiIndex
    from solvable.models.index.diagnosis import diagnose as diagnose
    from solvable.models.index.dynamics import BatchGD as BatchGD
    from solvable.models.index.dynamics import Extragradient as Extragradient
    from solvable.models.index.dynamics import OnlineSGD as OnlineSGD
    from solvable.models.index.dynamics import RepeatedSGD as RepeatedSGD
    from solvable.models.lowrank import RBM as RBM
    from solvable.models.lowrank import AdamStudent as AdamStudent
    from solvable.models.lowrank import BayesStudent as BayesStudent
    from solvable.models.lowrank import Curriculum as Curriculum
    from solvable.models.lowrank import MatrixTensor as MatrixTensor
    from solvable.models.lowrank import MaximumLikelihood as MaximumLikelihood
    from solvable.models.lowrank import RBMAscent as RBMAscent
    from solvable.models.lowrank import SpikedCovariance as SpikedCovariance
    from solvable.models.lowrank import SpikedMatrix as SpikedMatrix
    from solvable.models.lowrank import SpikedTensor as SpikedTensor
    from solvable.models.lowrank import WideNetwork as WideNetwork
    from solvable.models.lowrank import WideTeacher as WideTeacher
    from solvable.models.matrix import BilinearSequence as BilinearSequence
    from solvable.models.matrix import Lazy as Lazy
    from solvable.models.matrix import MatrixSensing as MatrixSensing
    from solvable.models.matrix import NuclearNorm as NuclearNorm
    from solvable.models.matrix import QuadraticNetwork as QuadraticNetwork
    from solvable.priors.penalties import Lasso as Lasso
    from solvable.priors.penalties import Ridge as Ridge
    from solvable.targets.target import Target as Target
    from solvable.verbs.optimize import Optimum as Optimum
    from solvable.verbs.optimize import optimize as optimize
    from solvable.verbs.predict import predict as predict
    from solvable.verbs.simulate import simulate as simulate
    from solvable.verbs.thresholds import thresholds as thresholds

    __version__: str

_HOMES = {
    "solvable.channels.contamination": ("Contamination",),
    "solvable.core.axis": ("Axis",),
    "solvable.core.bibliography": ("Publication", "cite"),
    "solvable.core.errors": (
        "ConvergenceError",
        "NotSimulable",
        "NotSolvable",
        "SolvableError",
        "TargetError",
        "TimeLimitError",
    ),
    "solvable.core.learners": ("AMP", "BayesOptimal", "GradientDescent", "Spectral"),
    "solvable.core.model": ("Data", "Learner", "Model", "Stream"),
    "solvable.core.registry": ("simulation", "theory", "thresholds_of"),
    "solvable.core.results": ("Outcome", "Prediction"),
    "solvable.core.status": ("Status",),
    "solvable.engine.erm": ("ERM",),
    "solvable.engine.kernel": ("Kernel",),
    "solvable.engine.lofi": ("NeuralLoFi",),
    "solvable.lab.curve": ("Curve",),
    "solvable.lab.figures.run": ("reproduce",),
    "solvable.lab.forecast": ("Forecast", "KernelRidge", "LinearRidge", "forecast"),
    "solvable.lab.grid.curves": ("learning_curve", "phase_diagram"),
    "solvable.lab.study.run": ("study",),
    "solvable.lab.sweep.gather": ("open",),
    "solvable.lab.sweep.verb": ("sweep",),
    "solvable.models.attention": (
        "AttentionIndexed",
        "DeepAttention",
        "DeepAttentionIndexed",
        "PositionalSemantic",
        "SequenceIndex",
        "SequenceSGD",
        "SequenceSingleIndex",
        "positional_transitions",
    ),
    "solvable.models.depth": (
        "HierarchicalTarget",
        "JointTraining",
        "Layerwise",
        "LayerwiseSpectral",
        "TreeTarget",
    ),
    "solvable.models.features": (
        "OneStep",
        "PowerLawFeatures",
        "RandomFeatures",
        "TwoLayer",
        "TwoSteps",
        "best_step_bounds",
        "feature_spectrum",
        "risk_bounds",
    ),
    "solvable.models.features.power_law": ("optimal_exponents", "scaling_exponents"),
    "solvable.models.index": ("MultiIndex",),
    "solvable.models.index.diagnosis": ("diagnose",),
    "solvable.models.index.dynamics": ("BatchGD", "Extragradient", "OnlineSGD", "RepeatedSGD"),
    "solvable.models.lowrank": (
        "AdamStudent",
        "BayesStudent",
        "Curriculum",
        "MatrixTensor",
        "MaximumLikelihood",
        "RBM",
        "RBMAscent",
        "SpikedCovariance",
        "SpikedMatrix",
        "SpikedTensor",
        "WideNetwork",
        "WideTeacher",
    ),
    "solvable.models.matrix": ("BilinearSequence", "Lazy", "MatrixSensing", "NuclearNorm", "QuadraticNetwork"),
    "solvable.priors.penalties": ("Lasso", "Ridge"),
    "solvable.targets.target": ("Target",),
    "solvable.verbs.optimize": ("Optimum", "optimize"),
    "solvable.verbs.predict": ("predict",),
    "solvable.verbs.simulate": ("simulate",),
    "solvable.verbs.thresholds": ("thresholds",),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {name: f"solvable.{name}" for name in ("channels", "estimators", "priors", "spectra")} | {
    "losses": "solvable.channels.losses"
}

__all__ = [*sorted(_NAMES), *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from solvable.core.version import installed_version

        value = installed_version()
    elif name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'solvable' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
