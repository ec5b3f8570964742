"""A curve of any number of axes and sizes, laid out as sweeps lay it out, of the toy regression."""

from __future__ import annotations

import itertools
import json

import numpy as np
import xarray as xr
from toys import ridge as toy

import solvable as sv
from solvable.core.plain import to_json
from solvable.lab.assemble import Columns, explain, labels, titles

TARGETS = ("abs(z)", "z**2 + 1", "price in $")


def sweep(learners, sizes=(), seeds=3, **grid):
    """The toy's results over a grid; `alpha` and `noise` are its own, other axes change nothing but `target`.

    The regression has no target: each text of `TARGETS` stands for another noise.
    """
    learners = list(learners)
    dims = ("learner", *grid)
    shape = (len(learners), *(len(values) for values in grid.values()))
    theory, runs = Columns(dims, shape), Columns((*dims, "d", "seed"), (*shape, len(sizes), seeds))
    status = np.full(shape, -1)
    for place in itertools.product(*map(range, shape)):
        learner, chosen = learners[place[0]], {name: grid[name][i] for name, i in zip(grid, place[1:], strict=True)}
        noise = 0.1 * (1 + TARGETS.index(chosen["target"])) if "target" in chosen else chosen.get("noise", 0.25)
        model, alpha = toy.Regression(noise=noise), chosen.get("alpha", 1.0)
        if isinstance(learner, toy.Ridge):
            found = sv.predict(model, learner, alpha=alpha)
            status[place] = found.status
            for name, value in found.metrics.items():
                theory.put(f"{name}_theory", place, value, 0)
        for k, seed in itertools.product(range(len(sizes)), range(seeds)):
            for name, value in sv.simulate(model, learner, d=sizes[k], seed=seed, alpha=alpha).metrics.items():
                runs.put(f"{name}_simulation", (*place, k, seed), value, 0)
    variables = theory.arrays({}) | {"status": (dims, status)} | runs.arrays({})
    coordinates = {"learner": labels(learners), "title": ("learner", titles(learners))}
    coordinates |= {name: np.asarray(values) for name, values in grid.items()}
    if sizes:
        variables["converged_simulation"] = (runs.dims, np.ones(runs.shape, dtype=bool))
        variables["status_simulation"] = (runs.dims, np.zeros(runs.shape, dtype=int))
        coordinates |= {"d": list(sizes), "seed": np.arange(seeds)}
    attributes = {
        "schema": 1,
        "model": json.dumps(to_json(toy.Regression().describe())),
        "learners": json.dumps([to_json(learner.describe()) for learner in learners]),
        "axes": json.dumps(list(grid)),
        "model_axes": json.dumps(["alpha"]),
        "fixed": "{}",
        "definitions": "{}",
        "scaling": "n = alpha d",
        "thresholds": "{}",
        "provenance": "{}",
    }
    dataset = xr.Dataset(variables, coordinates, attributes)
    explain(dataset, {})
    if len(sizes) == 1:
        dataset = dataset.isel(d=0, drop=True).assign_attrs(d=sizes[0])
    return sv.Curve(dataset)


def with_thresholds(curve, **thresholds):
    """The curve with threshold variables, each given as (dimensions, values)."""
    return sv.Curve(curve.dataset.assign({f"{name}_threshold": value for name, value in thresholds.items()}))
