"""The eigenvalues of the features of n samples, before and after one giant step of the first layer.

The bulk is that of the theory. Units that saturate along the spike vary less in all other directions: the bulk ends
earlier after the step. One eigenvalue grows as the number of samples.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_points, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

ALPHA, WIDTH, STEP, BATCH = 2.0, 0.8, 3.0, 0.5


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.TwoLayer("sin(z)", "tanh", WIDTH)
    learners = {"before": sv.RandomFeatures(1.0), "after": sv.OneStep(1.0, STEP, BATCH)}
    sizes, seeds = effort.pick(((60, 100), 4), ((100, 200, 400), 8))
    spectra = {name: sv.feature_spectrum(model, learner, ALPHA) for name, learner in learners.items()}
    runs = {
        (name, d): np.array(in_processes(eigenvalues, [(model, learner, d, seed) for seed in range(seeds)], effort))
        for name, learner in learners.items()
        for d in sizes
    }
    counts = {"d": list(sizes), "seeds": [seeds] * len(sizes)}
    return Material({"spectra": spectra, "runs": runs}, sizes={"runs": counts})


def eigenvalues(model, learner, d: int, seed: int) -> np.ndarray:
    """The eigenvalues of the features of one run, the largest first."""
    import solvable as sv
    from solvable.models.features.one_step.run import stepped_rows
    from solvable.models.features.two_layer.run import features, sphere_rows
    from solvable.numerics.blas import single_thread

    with single_thread():
        rng, truth = np.random.default_rng(seed), np.eye(d, 1)
        moved = isinstance(learner, sv.OneStep)
        W = stepped_rows(model, learner, truth, rng) if moved else sphere_rows(rng, model.units(d), d)
        Phi = features(model, W, rng.standard_normal((round(ALPHA * d), d)))
        return np.linalg.eigvalsh(Phi.T @ Phi)[::-1]


def top(found: Material, d: int) -> Estimate:
    """The largest eigenvalue after the step over n."""
    return mean(found.values["runs"]["after", d][:, 0] / round(ALPHA * d), d)


def bulk_mean(found: Material, name: str) -> Estimate:
    """The mean square of the eigenvalues of the bulk at the largest size."""
    d = max(found.sizes["runs"]["d"])
    skip = len(found.values["spectra"][name].diverging)
    return mean(np.mean(found.values["runs"][name, d][:, skip:] ** 2, axis=1), d)


def draw(found: Material, verdicts):
    import matplotlib

    sizes = found.sizes["runs"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 0.95)
        density, tails, growth = figure.subplots(1, 3)
        for number, (name, theory) in enumerate(found.values["spectra"].items()):
            bulk = found.values["runs"][name, sizes[-1]][:, len(theory.diverging) :].ravel()
            for ax in (density, tails):
                look = {"color": plots.COLORS[number], "density": True}
                ax.hist(bulk, bins=60, histtype="step", linewidth=0.7, alpha=0.7, **look)
                ax.plot(theory.x, theory.density, color=plots.COLORS[number], label=f"{name} the step")
        density.set(xlim=(0, 2.5), ylim=(0, 2.5), ylabel="density of eigenvalues", xlabel="eigenvalue")
        density.legend()
        tails.set(yscale="log", ylim=(2e-3, 20), xlabel="eigenvalue")
        tails.set_title(f"histograms: runs at $d = {sizes[-1]}$")
        theory = found.values["spectra"]["after"]
        d = np.array(sizes)
        growth.plot(d, theory.diverging[0] * ALPHA * d, "-", color=plots.COLORS[1], label=r"$n E[\mu_0^2]$")
        tops = [top(found, int(one)) for one in d]
        values, errors = [one.value for one in tops], [one.error for one in tops]
        draw_points(growth, d, np.array(values) * ALPHA * d, np.array(errors) * ALPHA * d, 1, "largest, runs")
        second = [found.values["runs"]["after", one][:, 1] for one in sizes]
        means, scatter = [part.mean() for part in second], [part.std() / np.sqrt(len(part)) for part in second]
        draw_points(growth, d, means, scatter, 0, "second, runs")
        growth.axhline(theory.edge, color="0.4", linestyle="--", label="edge of the bulk")
        growth.set(xscale="log", yscale="log", xlabel="$d$", ylabel="eigenvalue after the step")
        growth.set_xticks(sizes, [str(one) for one in sizes])
        growth.minorticks_off()
        growth.legend(fontsize=6)
    return figure


def _second_moment(found: Material, name: str) -> float:
    theory = found.values["spectra"][name]
    return float(np.trapezoid(theory.density * theory.x**2, theory.x))


ENTRY = Entry(
    id="feature-spectrum",
    title="Eigenvalues of features before and after one giant step",
    sources=(sources.DANDI_FEATURES,),
    shows="The eigenvalues of the Gram matrix of tanh features (n = 2 d samples, p = 0.8 d units) before and after one "
    "step with rate 3 on d/2 samples of y = sin(z): the bulk and its tail, and the largest two against d.",
    claims=(
        *(
            Claim(
                f"mean square of the bulk, {name} the step",
                None,
                None,
                lambda found, name=name: _second_moment(found, name),
                lambda found, name=name: bulk_mean(found, name),
            )
            for name in ("before", "after")
        ),
        Claim(
            "largest eigenvalue over n",
            None,
            None,
            lambda found: float(found.values["spectra"]["after"].diverging[0]),
            lambda found: top(found, max(found.sizes["runs"]["d"])),
        ),
        Claim("edge of the bulk before", None, None, lambda found: found.values["spectra"]["before"].edge),
        Claim("edge of the bulk after", None, None, lambda found: found.values["spectra"]["after"].edge),
    ),
    gather=gather,
    draw=draw,
)
