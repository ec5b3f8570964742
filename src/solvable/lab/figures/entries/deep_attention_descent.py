"""Two layers of attention learned by message passing and by gradient descent on minibatches: runs, and no theory.

Message passing has the last layer at fewer samples than the first; descent, with many samples, after fewer batches. The
settings of descent are the published ones but for the start, N(0, 1) here and 0.9 N(0, 1) there, and for the dimension.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_runs, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import first_above, median

ALPHA = 15.0
"""Samples over d of descent."""
LEVEL = 0.5
LAYERS = {"last layer": 1, "first layer": 0}


def gather(effort: Effort) -> Material:
    d, seeds, batches = effort.pick((60, 3, 600), (150, 8, 4000))
    course = in_processes(descent, [(d, seed, batches) for seed in range(seeds)], effort)
    size, count, steps = effort.pick((40, 2, 10), (100, 3, 60))
    alpha = np.array(effort.pick((0.3, 0.6), (0.3, 0.5, 0.8, 1.2)))
    ends = in_processes(passing, [(a, size, seed, steps) for a in alpha for seed in range(count)], effort)
    values = {
        "descent": np.stack(course, axis=-1),  # (batches, layer, seed)
        "alpha": alpha,
        "amp": np.moveaxis(np.reshape(ends, (len(alpha), count, 2)), 1, 2),  # (alpha, layer, seed)
        "steps": steps,
    }
    sizes = {"descent": {"d": [d], "seeds": [seeds]}, "amp": {"d": [size], "seeds": [count]}}
    return Material(values, sizes=sizes)


def descent(d: int, seed: int, batches: int) -> np.ndarray:
    """The cosines (batches, layer) of one run, after each batch."""
    import solvable as sv
    from solvable.numerics.blas import single_thread

    learner = sv.GradientDescent(step=15.0, batch=0.4, passes=3, decay=0.07, max_steps=3 * batches)
    with single_thread():
        return sv.simulate(sv.DeepAttention(2, 2), learner, alpha=ALPHA, d=d, seed=seed).details["cosine_path"][1:]


def passing(alpha: float, d: int, seed: int, steps: int) -> list[float]:
    """The cosines of both layers at the end of a run of message passing."""
    import solvable as sv
    from solvable.numerics.blas import single_thread

    with single_thread():
        found = sv.simulate(sv.DeepAttention(2, 2), sv.AMP(max_steps=steps), alpha=alpha, d=d, seed=seed)
    return [float(found["cosine_1"]), float(found["cosine_2"])]


def reached(found: Material, layer: int) -> np.ndarray:
    """The number of batches after which each run of descent first exceeds the level; infinite if it never does."""
    path = found.values["descent"][:, layer]
    return first_above(np.arange(1, len(path) + 1), path, LEVEL)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        left, right = figure.subplots(1, 2, sharey=True)
        path = found.values["descent"]
        shown = np.unique(np.geomspace(1, len(path), 24).round().astype(int))
        look = {"linestyle": ":", "linewidth": 0.8, "markersize": 4}
        for number, (name, layer) in enumerate(LAYERS.items()):
            draw_runs(left, found.values["alpha"], found.values["amp"][:, layer], number, name, **look)
            draw_runs(right, shown, path[shown - 1, layer], number, name, **look)
        (small,), (large,) = (found.sizes[name]["d"] for name in ("amp", "descent"))
        left.set(xlabel=r"$\alpha = n/d$", ylabel="cosine", ylim=(-0.03, 1.03))
        left.set_title(f"message passing, {found.values['steps']} steps, $d = {small}$")
        right.set(xlabel="batches", xscale="log")
        right.set_title(rf"descent, $\alpha = {ALPHA:g}$, $d = {large}$")
        for ax in (left, right):
            ax.legend()
    return figure


def _end(found: Material, layer: int) -> Estimate:
    return mean(found.values["descent"][-1, layer], found.sizes["descent"]["d"][0])


def _passing(found: Material, place: int, layer: int) -> Estimate:
    return mean(found.values["amp"][place, layer], found.sizes["amp"]["d"][0])


def _claims() -> list[Claim]:
    made = []
    for name, layer in LAYERS.items():
        made += [
            Claim(
                f"descent, {name}, batches to cosine {LEVEL:g}, median",
                None,
                None,
                None,
                lambda found, layer=layer: median(reached(found, layer)),
            ),
            Claim(
                f"descent, {name}, cosine at the end", None, None, None, lambda found, layer=layer: _end(found, layer)
            ),
        ]
    made.append(
        Claim(
            "descent, batches of the first layer over those of the last, median",
            None,
            None,
            None,
            lambda found: median(reached(found, 0) / reached(found, 1)),
        )
    )
    return made + [
        Claim(
            f"message passing, {name}, cosine at the {word} alpha",
            None,
            None,
            None,
            lambda found, place=place, layer=layer: _passing(found, place, layer),
        )
        for word, place in (("smallest", 0), ("largest", -1))
        for name, layer in LAYERS.items()
    ]


ENTRY = Entry(
    id="deep-attention-descent",
    title="Two layers of attention, learned by message passing and by descent",
    sources=(sources.TROIANI_SEQUENCE,),
    shows="The cosines with the directions of two layers of two tokens: of message passing against the number of "
    "samples, and of gradient descent on minibatches of 0.4 d out of 15 d samples against the number of batches. Runs "
    "only: there is no theory of this descent.",
    claims=tuple(_claims()),
    gather=gather,
    draw=draw,
)
