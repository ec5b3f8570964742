"""The numbers are those of `snapshot.json`: theory within its own error estimates, runs of the same seed to rounding.

A quantity that is new is allowed; one that is gone, a changed status, a NaN or an infinity that comes or goes is not.
Of points that have not been solved the status alone counts.
`pytest -k` picks cases by their id, such as `-k "predict/abs"`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from snapshot.cases import Case, cases
from snapshot.record import compute, read

import solvable as sv

RECORDED = read()
ROUNDING = 1e-8
"""Relative to the larger of one and the value: what every number may change by."""
FIELD_ROUNDING = 1e-7
"""Relative: what order parameters, which have no error estimate of their own, may change by in addition to theirs."""
FIELD_ZERO = 1e-14
"""Order parameters below this are zero up to rounding, as those of a ridgeless fit to few samples."""
SMALLEST = 1e-3
"""Metrics of runs below this are compared as if they were this large: an error of 1e-8 says that a run has stopped."""
EXACT = ("verdict", "information_exponent", "leap_exponent", "generative_exponent", "symmetries", "sample_exponents")


QUICK = """
predict/z/bayes predict/sign/bayes predict/sign-flipped/bayes predict/sign-noise/bayes predict/z-sparse/bayes
predict/parity/bayes predict/erm-square/linear predict/network-narrow/lazy-0 predict/marchenko-pastur/bayes
thresholds/sign(z) thresholds/semicircle diagnose/z1*z2
simulate/window/amp simulate/parity/bayes simulate/erm-cosine/direct simulate/erm-basis-pursuit/direct
simulate/network/semicircle-lazy
""".split()
"""Cases of the quick tests: of every verb and every family of models, and none of more than a second."""


def _parameters() -> list[Any]:
    """The ids that are recorded: the cases themselves, which take seconds to build, are built when a test runs."""
    return [pytest.param(name, id=name, marks=() if name in QUICK else pytest.mark.slow) for name in RECORDED]


def _case(name: str) -> Case:
    return next(case for case in cases() if case.id == name)


def test_every_record_has_its_case():
    assert set(RECORDED) <= {case.id for case in cases()}
    assert set(QUICK) <= set(RECORDED)


def test_every_case_is_recorded():
    missing = {case.id for case in cases()} - set(RECORDED)
    assert not missing, f"{missing} are not; with trusted code: python tests/snapshot/record.py missing"


@pytest.mark.parametrize("name", _parameters())
def test_numbers_are_those_recorded(name: str):
    case = _case(name)
    differences = compare(case, RECORDED[name], compute(case))
    assert not differences, "\n".join([f"{name} has changed:", *differences])


@pytest.mark.parametrize("verb", ["predict", "thresholds", "diagnose", "simulate", "optimize"])
def test_a_changed_number_is_found(verb: str):
    case = next(case for case in cases() if case.verb == verb and "error" not in RECORDED[case.id])
    old = RECORDED[case.id]
    assert not compare(case, old, old)
    assert compare(case, old, _shifted(old))


def compare(case: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A sentence for each quantity that differs: its name, both values and what was allowed."""
    if "error" in old or "error" in new:
        return _same("error", old.get("error"), new.get("error"))
    return COMPARISONS[case.verb](case, old, new)


def _predictions(case: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found = _same("status", old["status"], new["status"])
    old, new = _meaningful(old), _meaningful(new)
    for name, value in old["metrics"].items():
        error = _error(old, name, value) + _error(new, name, value)
        found += _close(name, value, new["metrics"].get(name), error + ROUNDING * np.maximum(1, np.abs(value)))
    share = _largest_share(old) + _largest_share(new) + FIELD_ROUNDING
    for name, value in old["order_parameters"].items():
        array = np.asarray(value, float)
        allowed = share.reshape(share.shape + (1,) * (array.ndim - share.ndim)) * _scale(array, share.ndim)
        found += _close(name, value, new["order_parameters"].get(name), allowed + FIELD_ZERO)
    return found


def _thresholds(case: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [
        line
        for name, value in old.items()
        for line in _close(name, value, new.get(name), case.tolerance * np.maximum(1, np.abs(value)))
    ]


def _diagnoses(case: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found = [line for name in EXACT for line in _same(name, old[name], new.get(name))]
    error = float(old["uncertainty"]) + float(new["uncertainty"]) + ROUNDING
    found += _close("alpha_weak", float(old["alpha_weak"]), float(new["alpha_weak"]), error)
    for name in ("staircase", "csq_staircase"):
        found += _same(f"steps of {name}", len(old[name]), len(new[name]))
        for i, (before, after) in enumerate(zip(old[name], new[name], strict=False)):
            found += _steps(f"{name}[{i}]", before, after)
    for name, value in old["hermite"].items():
        found += _close(f"hermite {name}", value, new["hermite"].get(name), ROUNDING * max(1, abs(value)))
    spectrum = np.asarray(old["label_spectrum"])
    return found + _close("label_spectrum", spectrum, new["label_spectrum"], ROUNDING * np.maximum(1, spectrum))


def _steps(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Directions are compared as subspaces."""
    before, after = (_projector(step["directions"]) for step in (old, new))
    found = _close(f"{name} directions", before, after, 1e-6)
    found += [line for key in ("kind", "leap") if key in old for line in _same(f"{name} {key}", old[key], new.get(key))]
    if "alpha" in old:
        error = float(old["error"]) + float(new["error"]) + ROUNDING
        found += _close(f"{name} alpha", float(old["alpha"]), float(new["alpha"]), error)
    return found


def _runs(case: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The metrics of a run that has not converged are not compared: they are where it happened to stop."""
    found = _same("converged", old["converged"], new["converged"])
    found += _same("missing metrics", [], sorted(set(old["metrics"]) - set(new["metrics"])))
    for name, value in old["metrics"].items() if old["converged"] and new["converged"] else ():
        found += _close(name, value, new["metrics"].get(name), case.tolerance * np.maximum(np.abs(value), SMALLEST))
    return found


def _optima(case: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """At a minimum the best value is known to the square root of the metric's own accuracy only."""
    found = [line for name in ("metric", "converged", "at_bound") for line in _same(name, old[name], new[name])]
    value = np.asarray(old["value"])
    found += _close("value", value, new["value"], np.sqrt(case.tolerance) * np.maximum(np.abs(value), SMALLEST))
    for name in ("best", "bayes_optimal"):
        if old[name] is not None:
            found += _close(name, old[name], new[name], case.tolerance * max(1, abs(old[name])))
    return found


COMPARISONS = {
    "predict": _predictions,
    "thresholds": _thresholds,
    "diagnose": _diagnoses,
    "simulate": _runs,
    "optimize": _optima,
}


def _same(name: str, old: Any, new: Any) -> list[str]:
    return [] if old == new else [f"  {name}: was {old!r}, is {new!r}; must be equal"]


def _close(name: str, old: Any, new: Any, allowed: Any) -> list[str]:
    """Whether values agree within what is allowed, infinities and NaN being equal to themselves only."""
    if new is None:
        return [f"  {name}: was {old!r}, is missing"]
    before, after = np.asarray(old, float), np.asarray(new, float)
    if before.shape != after.shape:
        return [f"  {name}: was of shape {before.shape}, is of shape {after.shape}"]
    finite = np.isfinite(before) & np.isfinite(after)
    gap = np.abs(np.where(finite, after, 0.0) - np.where(finite, before, 0.0))
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    margin = np.broadcast_to(np.where(np.isfinite(allowed), allowed, ROUNDING), before.shape)
    bad = np.where(finite, gap > margin, ~same)
    return [
        f"  {name}{_place(i)}: was {before[tuple(i)].item()!r}, is {after[tuple(i)].item()!r}; "
        f"differ by {gap[tuple(i)]:.2g}, allowed {margin[tuple(i)]:.2g}"
        for i in np.argwhere(bad)
    ]


def _place(index: np.ndarray) -> str:
    return str(index.tolist()) if index.size else ""


def _meaningful(record: dict[str, Any]) -> dict[str, Any]:
    """The record with NaN where a point has not been solved: its values are where the solver happened to stop."""
    status = np.asarray(record["status"])
    judged = (sv.Status.CONVERGED, sv.Status.UNSTABLE, sv.Status.AMBIGUOUS_BRANCH, sv.Status.IMPRECISE)
    solved = np.isin(status, judged)

    def masked(value: Any) -> np.ndarray:
        array = np.asarray(value, float)
        return np.where(solved.reshape(solved.shape + (1,) * (array.ndim - solved.ndim)), array, np.nan)

    parts = {part: {k: masked(v) for k, v in record[part].items()} for part in ("metrics", "order_parameters")}
    return record | parts


def _error(record: dict[str, Any], name: str, value: Any) -> np.ndarray:
    """The error estimate of a metric at each point; zero where there is none."""
    error = np.nan_to_num(np.asarray(record["uncertainty"].get(name, 0.0), float), nan=0.0, posinf=0.0)
    return error.reshape(error.shape + (1,) * (np.ndim(value) - error.ndim)) if error.ndim else error


def _largest_share(record: dict[str, Any]) -> np.ndarray:
    """At each point the largest error estimate of a metric relative to that metric."""
    share = np.zeros(np.shape(record["status"]))
    for name, value in record["metrics"].items():
        size = _scale(np.asarray(value, float), share.ndim)
        part = np.divide(
            _error(record, name, value), size, out=np.zeros_like(size), where=np.isfinite(size) & (size > 0)
        )
        share = np.maximum(share, part.reshape(*share.shape, -1).max(-1))
    return share


def _scale(array: np.ndarray, points: int) -> np.ndarray:
    """The size of each entry; that of the largest one for the entries of a matrix."""
    inner = tuple(range(points, array.ndim))
    size = np.abs(np.where(np.isfinite(array), array, 0.0))
    return np.broadcast_to(size.max(inner, keepdims=True), array.shape) if inner else size


def _projector(directions: Any) -> np.ndarray:
    basis = np.asarray(directions, float)
    return basis @ basis.T


def _shifted(value: Any) -> Any:
    """The same record with every number a little larger."""
    if isinstance(value, dict):
        return {k: v if k in ("uncertainty", "error") else _shifted(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_shifted(v) for v in value]
    return value + 1e-3 * max(1, abs(value)) if isinstance(value, float) else value
