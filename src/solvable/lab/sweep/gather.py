"""From the files of a store to a curve: `sv.open`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from solvable.lab.curve import Curve
from solvable.lab.curve.assemble import assemble
from solvable.lab.grid.points import SCHEMA
from solvable.lab.sweep.store import FAILED, PointStore, StoreError


def open(folder: str | Path) -> Curve:
    """The results of the sweep that was started last in a store, as far as it has got.

    What is not computed yet is NaN, with its status. A damaged file is set aside, with a warning, and counts as not
    computed.
    """
    store = PointStore(folder)
    plan, states = store.latest_plan(), store.states()
    if plan.get("schema", 1) > SCHEMA:
        raise StoreError(f"{folder} was written by a newer solvable (schema {plan['schema']}); upgrade to read it.")
    made: Counter[str] = Counter()

    def found(id: str) -> dict[str, Any] | None:
        record = store.read(id, failed=states[id] == FAILED) if id in states else None
        if record is not None and "result" in record:
            made[f"solvable {record['provenance']['solvable']}"] += 1
        return record

    dataset = assemble(plan, found)
    provenance = {key: plan[key] for key in ("id", "started", "versions")} | {"computed_by": dict(made)}
    versions = {"solvable_version": plan["versions"]["solvable"]}
    return Curve(dataset.assign_attrs(versions, provenance=json.dumps(provenance, sort_keys=True)))
