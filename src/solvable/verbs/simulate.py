"""`simulate`: one run of a learner's algorithm on a model, at finite size; `simulate_many`: one for each seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvable.core.checks import check_count, check_learner, check_model, check_path, check_point, pair_name
from solvable.core.errors import NotSimulable
from solvable.core.model import Learner, Model
from solvable.core.precision import float64
from solvable.core.programs import drop_programs
from solvable.core.registry import SimulationEntry, find_simulation
from solvable.core.results import Outcome, checked_outcome
from solvable.verbs.lookup import looked_up


def simulate(model: Model, learner: Learner, d: int | None = None, seed: int = 0, **axes: Any) -> Outcome:
    """What one run of the learner's algorithm gives at dimension `d`.

    **Arguments:** `model`, `learner`; `d`, the size of the run: a model whose size has another name takes that keyword
    instead, one without a size takes none; `seed`; the model's axes, single numbers. A pair whose algorithm follows one
    axis (see `simulation`) takes an increasing array of that axis too, and answers all of it by one run.

    **Returns:** an `Outcome`. Along an array its metrics have an entry for each value and its `path` names the axis.

    The data depends on the model, its axes (but for one that is followed), the size and `seed` only, so two learners
    given the same seed see the same data, and a run is reproducible from its arguments. `Outcome.seconds` times the
    algorithm, not the sampling. An outcome with a metric that is not finite is not marked converged.
    """
    (outcome,) = simulate_many(model, learner, d, [seed], **axes)
    return outcome


def simulate_many(model: Model, learner: Learner, d: int | None, seeds: Sequence[int], /, **axes: Any) -> list[Outcome]:
    """What `simulate` gives for each of the seeds, by one call if the algorithm makes several runs `together`.

    The `seconds` of runs that were made together are equal shares of the time they took.
    """
    check_model(model)
    check_learner(learner)
    entry = looked_up(find_simulation, model, learner)
    size, axes = _size(model, d, axes)
    seeds = [check_count("seed", seed, least=0, most=2**128 - 1) for seed in seeds]
    values, point = (None, check_point(model, axes)) if entry.path is None else check_path(model, axes, entry.path)
    drop_programs()
    draw, sizes = _sampler(entry, model), () if size is None else (size,)
    along = () if values is None else (np.array(values, ndmin=1),)
    count = None if values is None or values.ndim == 0 else len(values)
    whose = pair_name(model, learner)

    @float64
    def run(seeds: Sequence[int]) -> list[Outcome]:
        """One call of the algorithm: for all the seeds together, or for a single one."""
        drawing, running = zip(*(generators(seed, size, point) for seed in seeds), strict=True)
        data: Any = [draw(rng, *sizes, **point) for rng in drawing] if entry.data else size
        rngs: Any = list(running)
        if not entry.together:
            data, rngs = data[0] if entry.data else size, rngs[0]
        others = {} if entry.data else point
        start = time.perf_counter()
        found = entry.function(model, learner, data, *along, rngs, **others)
        seconds = (time.perf_counter() - start) / len(seeds)
        outcomes = _listed(found, len(seeds), whose) if entry.together else [found]
        return [checked_outcome(_checked(one, whose), seconds, whose, entry.path, count) for one in outcomes]

    calls = [seeds] if entry.together and seeds else [[seed] for seed in seeds]
    return [outcome for call in calls for outcome in run(call)]


def generators(seed: int, size: int | None, point: dict[str, float]) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for the data and the algorithm, from the seed, the size and the bits of the axes."""
    sizes = [] if size is None else [size]
    bits = [int(np.float64(value + 0.0).view(np.uint64)) for value in point.values()]
    streams = (np.random.SeedSequence([seed, *sizes, *bits], spawn_key=(stream,)) for stream in (0, 1))
    data_rng, algorithm_rng = (np.random.default_rng(stream) for stream in streams)
    return data_rng, algorithm_rng


def _size(model: Model, d: Any, axes: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """The size of the run, if the model has one, and what is left of the keywords."""
    kind, name = type(model).__name__, model.size
    if d is not None and name != "d":
        takes = "it has no size besides its axes" if name is None else f"its size is called {name}"
        raise ValueError(f"unexpected size d for a run of {kind}: {takes}.")
    if name is None:
        return None, axes
    given = d if name == "d" else axes.get(name)
    if given is None:
        raise ValueError(f"missing size {name}: a run of {kind} needs one, such as {name}=500.")
    return check_count(name, given, least=2), {key: value for key, value in axes.items() if key != name}


def _sampler(entry: SimulationEntry, model: Model) -> Callable[..., Any]:
    name, what = ("stream", "stream") if entry.stream else ("sample", "sampler")
    if entry.data and getattr(type(model), name) is getattr(Model, name):
        takes = ", ".join(filter(None, ("rng", model.size, "**axes")))
        raise NotSimulable(f"{type(model).__name__} has no {what}: define `{name}({takes})` on the model.")
    return getattr(model, name)


def _listed(found: Any, count: int, whose: str) -> list[Any]:
    """What an algorithm that makes several runs together returned for `count` seeds."""
    if not isinstance(found, (list, tuple)) or len(found) != count:
        got = f"{len(found)} of them" if isinstance(found, (list, tuple)) else type(found).__name__
        raise TypeError(f"the {whose} algorithm must return a list of {count} Outcomes, one a seed; got {got}.")
    return list(found)


def _checked(found: Any, whose: str) -> Outcome:
    if not isinstance(found, Outcome):
        raise TypeError(f"the {whose} algorithm must return an Outcome; got {type(found).__name__}.")
    return found
