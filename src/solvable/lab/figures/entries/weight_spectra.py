"""Eigenvalues of the learned matrix S = W^T W / sqrt(p d), as in the weights of trained deep networks.

From few samples they look like those of noise; from more a tail bleeds out of the bulk; from many the eigenvalues of
the target stand apart from it. The paper compares these three with the classes of Martin and Mahoney. Its parameters
are not known to us: ours show the same shapes at the same alpha. At the smallest, close to the interpolation threshold,
finite dimension shifts the share of zeros: 0.52 at d = 60, where theory has 0.50.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes
from solvable.lab.figures.drawing import new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

RHO, NOISE, PENALTY = 0.1, 2.5, 0.05
SHAPES = {0.3: "random-like", 0.55: "bleeding out", 1.0: "bulk and spikes"}


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.models.matrix.nuclear.spectrum import spectrum

    model, learner = sv.QuadraticNetwork(RHO, NOISE), sv.NuclearNorm(PENALTY)
    d, seeds = effort.pick((60, 8), (100, 6))
    spectra = {}
    for alpha in SHAPES:
        tasks = [(model, learner, alpha, d, seed) for seed in range(seeds)]
        spectra[alpha] = spectrum(model, learner, alpha), np.array(in_processes(eigenvalues_of_run, tasks, effort))
    return Material({"spectra": spectra}, sizes={"descent": {"d": [d], "seeds": [seeds]}})


def eigenvalues_of_run(model, learner, alpha: float, d: int, seed: int) -> np.ndarray:
    """The eigenvalues of the matrix that one run learned."""
    from solvable.numerics.blas import single_thread
    from solvable.verbs.simulate import simulate

    with single_thread():
        return np.linalg.eigvalsh(simulate(model, learner, alpha=alpha, d=d, seed=seed).estimate)


def share_of_zeros(eigenvalues: np.ndarray) -> float:
    """The share of the eigenvalues that are zero, over all runs."""
    return float(np.mean(np.abs(eigenvalues) < 1e-8 * np.max(eigenvalues)))


def draw(found: Material, verdicts):
    import matplotlib

    (d,) = found.sizes["descent"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 0.95)
        panels = figure.subplots(1, 3)
        for ax, (alpha, shape) in zip(panels, SHAPES.items(), strict=True):
            theory, eigenvalues = found.values["spectra"][alpha]
            density = (theory.x, theory.density)
            plots.draw_spectrum(eigenvalues, density, ax, atoms={0.0: theory.zero}, label=f"runs at $d = {d}$")
            ax.get_legend().remove()
            ax.set_title(rf"$\alpha = {alpha:g}$, {shape}")
            zeros = f"zeros: {theory.zero:.3f},\nin the runs {share_of_zeros(eigenvalues):.3f}"
            ax.text(0.96, 0.94, zeros, transform=ax.transAxes, ha="right", va="top", fontsize=7)
            ax.set_ylabel(ax.get_ylabel() if ax is panels[0] else "")
        handles, labels = panels[0].get_legend_handles_labels()
        labels = ["share of zeros" if label.startswith("mass") else label for label in labels]
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _claims(alpha: float) -> list[Claim]:
    return [
        Claim(
            f"bulks at alpha = {alpha:g}",
            None,
            None,
            lambda found: len(found.values["spectra"][alpha][0].bulks),
        ),
        Claim(
            f"share of zeros at alpha = {alpha:g}",
            None,
            None,
            lambda found: found.values["spectra"][alpha][0].zero,
        ),
    ]


ENTRY = Entry(
    id="weight-spectra",
    title="Eigenvalues of the weights of a trained quadratic network",
    sources=(sources.ERBA,),
    shows="The eigenvalues of the learned matrix for a target of d/10 units, noisy labels and a small penalty: from "
    "few samples they look random, then a tail bleeds out of the bulk, and from many samples those of the target stand "
    "apart.",
    claims=tuple(claim for alpha in SHAPES for claim in _claims(alpha)),
    gather=gather,
    draw=draw,
)
