"""Curves over any axes, as sweeps lay them out, of the toy regression."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from toys import ridge as toy

import solvable as sv
from solvable.lab.grid.curves import computed
from solvable.lab.grid.request import make_plan

TARGETS = ("abs(z)", "z**2 + 1", "price in $")


class Varied(toy.Regression):
    """The regression with more to vary: each text of `TARGETS` stands for another noise, other fields for nothing."""

    target: str = eqx.field(default="", static=True)
    rho: float = 0.5
    tau: float = 1.0

    @property
    def plain(self) -> toy.Regression:
        return toy.Regression(0.1 * (1 + TARGETS.index(self.target)) if self.target else self.noise)

    def sample(self, rng, d, alpha):
        return self.plain.sample(rng, d, alpha)


@sv.theory(Varied, toy.Ridge)
def _(model, learner, alpha):
    metrics, m = toy.ridge(alpha, model.plain.noise, learner.penalty, jnp)
    return sv.Prediction(metrics, {"resolvent": m})


def sweep(learners, sizes=(), seeds=3, **grid):
    """The toy's results over a grid."""
    values = {name: list(along) for name, along in grid.items()}
    values |= {} if "alpha" in grid else {"alpha": 1.0}
    plan = make_plan(Varied(), list(learners), list(sizes) or None, seeds, False, values, lines=True)
    return computed(plan, progress=False)


def with_thresholds(curve, **thresholds):
    """The curve with threshold variables, each given as (dimensions, values)."""
    return sv.Curve(curve.dataset.assign({f"{name}_threshold": value for name, value in thresholds.items()}))
