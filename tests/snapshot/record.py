"""Write down what every case gives: `python tests/snapshot/record.py`.

With parts of ids only those are renewed; the word `missing` stands for the cases that are not there yet.

The file `snapshot.json` has one line a case, sorted by id, and is written anew after each case, so that what stopped
half-way is kept. Record it with code whose numbers are trusted, and never to make a test pass.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from snapshot.cases import Case, cases  # noqa: E402

import solvable as sv  # noqa: E402

SNAPSHOT = Path(__file__).with_name("snapshot.json")


def compute(case: Case) -> dict[str, Any]:
    """What the call gives, as plain values; a refusal or a failure is the name of its exception."""
    arguments = {k: np.array(v) if isinstance(v, list) else v for k, v in case.arguments.items()}
    given = (case.model,) if case.learner is None else (case.model, case.learner)
    options = {"throw": False} if case.verb == "predict" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # points that fail are recorded by their status
        try:
            found = getattr(sv, case.verb)(*given, **options, **arguments)
            return plain(PARTS[case.verb](found))
        except sv.SolvableError as error:
            return {"error": type(error).__name__}


def _prediction(found: Any) -> dict[str, Any]:
    names = ("metrics", "order_parameters", "uncertainty", "status", "converged")
    return {name: getattr(found, name) for name in names}


def _outcome(found: Any) -> dict[str, Any]:
    simple = {k: v for k, v in found.details.items() if isinstance(v, (bool, int, float, np.number))}
    return {"metrics": found.metrics, "converged": found.converged, "details": simple}


def _optimum(found: Any) -> dict[str, Any]:
    values = {name: getattr(found, name) for name in ("value", "metric", "converged", "at_bound")}
    bound = found.bayes_optimal
    bayes = None if bound is None else bound.metrics[found.metric]
    return values | {"best": found.prediction[found.metric], "bayes_optimal": bayes}


PARTS = {
    "predict": _prediction,
    "thresholds": dict,
    "diagnose": lambda found: found.to_dict(),
    "simulate": _outcome,
    "optimize": _optimum,
}
"""What is kept of each verb's answer."""


def plain(value: Any) -> Any:
    """Values that JSON can hold: lists and Python numbers in place of arrays."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def read() -> dict[str, Any]:
    """The snapshot by id; empty if there is none."""
    return json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else {}


def write(records: dict[str, Any]) -> None:
    """One line a case, sorted by id."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name], sort_keys=True)}" for name in sorted(records)]
    SNAPSHOT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def points(case: Case) -> int:
    """How many points a case has: those of its axis, or one."""
    return math.prod(len(v) for v in case.arguments.values() if isinstance(v, list))


def main(*parts: str) -> None:
    """Compute and write all cases, or those with one of `parts` in their id; print the CPU seconds of each."""
    listed = cases()
    known = {case.id for case in listed}
    records = {name: value for name, value in read().items() if name in known}
    begin = time.process_time()
    chosen = [case for case in listed if not parts or any(part in case.id for part in parts)]
    if parts == ("missing",):
        chosen = [case for case in listed if case.id not in records]
    for case in chosen:
        start = time.process_time()
        records[case.id] = compute(case)
        write(records)
        print(f"{time.process_time() - start:8.2f} s  {case.id}", flush=True)
    print(f"{len(chosen)} cases, {sum(map(points, chosen))} points, {time.process_time() - begin:.0f} s of CPU time")


if __name__ == "__main__":
    main(*sys.argv[1:])
