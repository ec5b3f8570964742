"""One case of the snapshot, how cases are written down, and the models and functions that several of them share."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import jax.numpy as jnp

import solvable as sv


@dataclasses.dataclass(frozen=True)
class Case:
    """One call: `verb`(model, learner, **arguments).

    `tolerance` is the relative one of runs, thresholds and optima; where it is not the usual, `reason` says why.
    """

    id: str
    verb: str
    model: Any
    learner: Any = None
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    tolerance: float = 1e-8
    reason: str = ""


BAYES, AMP = sv.BayesOptimal(), sv.AMP()
SYMMETRIC, ASYMMETRIC = sv.Spectral("symmetric"), sv.Spectral("asymmetric")
LEARNERS = {"bayes": BAYES, "amp": AMP, "symmetric": SYMMETRIC, "asymmetric": ASYMMETRIC}


def sequences() -> dict[str, Any]:
    return {
        "sequence": sv.BilinearSequence(rho=0.5),
        "sequence-long": sv.BilinearSequence(rho=0.3, beta=2.0, noise=0.1),
    }


def bump(z):
    return jnp.tanh(z) ** 2 + 0.3 * z


def twisted(z):
    return jnp.tanh(z[0]) * z[1]


def log_cosh(y, z):
    return jnp.logaddexp(y - z, z - y) - jnp.log(2.0)


def predict(name: str, model: Any, learner: Any, alpha: list[float]) -> Case:
    return case("predict", name, model, learner, alpha=alpha)


def run(name: str, model: Any, learner: Any, seed: int = 0, **arguments: Any) -> Case:
    return dataclasses.replace(case("simulate", name, model, learner, seed=seed, **arguments), tolerance=1e-6)


def optimum(name: str, model: Any, learner: Any, **arguments: Any) -> Case:
    return dataclasses.replace(case("optimize", name, model, learner, **arguments), tolerance=1e-6)


def case(verb: str, name: str, model: Any, learner: Any = None, **arguments: Any) -> Case:
    text = re.sub(r"[\s,]+", "_", re.sub(r"\s*([+<>])\s*", r"\1", name))
    return Case(f"{verb}/{text}", verb, model, learner, arguments)
