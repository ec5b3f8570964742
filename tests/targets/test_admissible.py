"""Targets of several projections that are refused, and heavy ones that are not."""

from __future__ import annotations

import pytest

from solvable.core.errors import TargetError
from solvable.targets.admissible import check_admissible
from solvable.targets.target import Target

FINE = [
    "exp(z1) + z2",
    "z1**3*z2",
    "z1**6*z2**6",
    "log(abs(z1))*z2",
    "log(z1**2 + z2**2)",
    "abs(z1)**(-0.4) + z2",
    "exp(z1*z2/3)",
    "sign(z1*z2)",
    "1/sqrt(z1**2 + z2**2 + z3**2)",
    "z1/(0.001 + z2**2)",
    "he4(z1) + sign(z1*z2*z3)",
    "100000 + sign(z1*z2)",
    "exp(z1 + z2 + z3 + z4)",
]
POLES = [
    "1/z1 + z2",
    "z1 + 1e-6/z2",
    "1/(z1 + z2)",
    "1/(z1*z2 - 1)",
    "tan(z1)*z2",
    "abs(z1)**(-0.5) + z2",
    "1/(z1**2 + z2**2)",
    "1/sqrt(z1**2 + z2**2) + z3",
    "1/(z1**2 + z2**2 + z3**2)",
]
QUICK = ["1/z1 + z2", "1/(z1*z2 - 1)", "abs(z1)**(-0.5) + z2", "1/(z1**2 + z2**2 + z3**2)"]
GROWTH = ["exp(z1**2)*z2", "exp(z1*z2)", "exp(z1**2/4) + z2", "exp(5*z1) + z2"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", FINE)
def test_heavy_targets_pass(text):
    check_admissible(Target(text))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text", [text if text in QUICK else pytest.param(text, marks=pytest.mark.slow) for text in POLES]
)
def test_poles(text):
    typed = Target(text)
    for target in (typed, Target(lambda z: typed(z), typed.projections)):
        with pytest.raises(TargetError, match="has infinite variance: it diverges too fast near z = "):
            check_admissible(target)


@pytest.mark.parametrize("text", GROWTH)
def test_growth(text):
    with pytest.raises(TargetError, match="grows too fast: its variance is infinite, or comes from"):
        check_admissible(Target(text))


@pytest.mark.parametrize("text", ["0*z1 + 0*z2", "sign(z1)**2 + 0*z2", "max(z1, z2) - z1 - relu(z2 - z1)"])
def test_constants(text):
    with pytest.raises(TargetError, match="is constant: there is nothing to learn"):
        check_admissible(Target(text))


def test_undefined_and_infinite():
    with pytest.raises(TargetError, match=r"is undefined \(NaN\) on a set of positive probability \(near z = \("):
        check_admissible(Target("log(z1 + 5) + z2"))
    with pytest.raises(TargetError, match="is infinite on a set of positive probability"):
        check_admissible(Target("where(z1*z2 > 3, 1/(0*z1), z2)"))
