"""How features of falling weight are found one after the other, and add up to a scaling law.

Theory is exact for infinitely many polynomials that act like Gaussian variables. Runs have Gaussian features at two
sizes, which round the thresholds, and the polynomials themselves; a kernel with the best penalty learns nothing in the
limit, and little at these sizes.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

FEATURES, DRAWN = 8, 5
DECAYS = (0.8, 1.0, 1.5)
AT = 32.0
"""The ratio n/D of the claims on overlaps."""
LEAST = 8.0
"""That of the claim on the kernel, whose matrix is n x n, and the largest it is run at."""
FAR = (1e6, 1e8)
"""Between which the slope of the exact error is taken."""


def run(kind: str, d: int, alpha: float, seed: int) -> tuple[float, np.ndarray]:
    """The error and the overlaps of a run."""
    import solvable as sv
    from solvable.numerics.blas import single_thread

    inputs = "hermite" if kind == "polynomials" else "gaussian"
    learner = sv.Kernel(2) if kind == "kernel" else sv.LayerwiseSpectral()
    with single_thread():
        found = sv.simulate(
            sv.HierarchicalTarget(1.0, 2, FEATURES, inputs=inputs), learner, alpha=alpha, d=d, seed=seed
        )
    return float(found["generalization_error"]), np.asarray(found["feature_overlap"])


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.models.depth.hierarchical.theory import white_noise_error

    model, learner = sv.HierarchicalTarget(1.0, 2, FEATURES), sv.LayerwiseSpectral()
    alpha = np.geomspace(0.5, 128, effort.pick(60, 300))
    exact = sv.predict(model, learner, alpha=alpha)
    far = np.geomspace(0.5, 1e6, effort.pick(40, 200))
    laws = {}
    for decay in DECAYS:
        law = sv.HierarchicalTarget(decay)
        error = sv.predict(law, learner, alpha=far)["generalization_error"]
        ends = sv.predict(law, learner, alpha=np.array(FAR))["generalization_error"]
        laws[decay] = {
            "error": error,
            "white": white_noise_error(law, far),
            "slope": np.diff(np.log(ends))[0] / np.log(100),
        }
    places = effort.pick((8.0, 32.0), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0))
    kinds = {
        "small": ("gaussian", effort.pick(10, 14), effort.pick(4, 24), places),
        "large": ("gaussian", effort.pick(16, 36), effort.pick(4, 6), places),
        "polynomials": ("polynomials", effort.pick(16, 36), effort.pick(4, 6), [a for a in places if a <= AT]),
        "kernel": ("kernel", effort.pick(10, 20), effort.pick(3, 6), [a for a in places if a <= LEAST]),
    }
    runs = {}
    for name, (kind, d, seeds, grid) in kinds.items():
        tasks = [(kind, d, a, seed) for a in grid for seed in range(seeds)]
        found = in_processes(run, tasks, effort)
        runs[name] = {
            "alpha": np.array(grid),
            "D": model.dimension(d),
            "error": np.array([one[0] for one in found]).reshape(len(grid), seeds),
            "overlap": np.array([one[1] for one in found]).reshape(len(grid), seeds, -1),
        }
    values = {
        "alpha": alpha,
        "exact": dict(exact.metrics),
        "edges": list(sv.thresholds(model, learner).values()),
        "at": sv.predict(model, learner, alpha=AT)["feature_overlap"],
        "error_at": float(sv.predict(model, learner, alpha=AT)["generalization_error"]),
        "far": far,
        "laws": laws,
        "runs": runs,
    }
    return Material(values, sizes={"runs": {"d": [kinds["large"][1]], "seeds": [kinds["large"][2]]}})


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.9, 1.05)
        left, middle, right = figure.subplots(1, 3)
        _draw_overlaps(left, found.values)
        _draw_error(middle, found.values)
        _draw_laws(right, found.values)
    return figure


def _draw_overlaps(ax, values) -> None:
    small, large = values["runs"]["small"], values["runs"]["large"]
    for k in range(DRAWN):
        draw_theory(ax, values["alpha"], values["exact"]["feature_overlap"][:, k], k, f"feature {k + 1}", linestyle="-")
        for part, look in ((small, {"mfc": "white", "alpha": 0.6}), (large, {"mfc": plots.COLORS[k]})):
            points = part["overlap"][:, :, k]
            scatter = points.std(axis=1, ddof=1) / np.sqrt(points.shape[1])
            draw_points(ax, part["alpha"], points.mean(axis=1), scatter, k, None, ls="none", **look)
    ax.plot([], [], "o", color="0.4", mfc="white", label=f"runs, $D = {small['D']}$")
    ax.plot([], [], "o", color="0.4", label=f"runs, $D = {large['D']}$")
    ax.set(xscale="log", xlabel="$n/D$", ylabel=r"squared overlap $o_k$", ylim=(-0.03, 1.03))
    ax.set_title(r"$\gamma = 1$, eight features")
    ax.legend(fontsize=6, loc="upper left")


def _draw_error(ax, values) -> None:
    draw_theory(ax, values["alpha"], values["exact"]["generalization_error"], 0, "theory", linestyle="-")
    names = {"small": "runs", "large": "runs", "polynomials": "Hermite polynomials", "kernel": "quadratic kernel"}
    for number, (name, part) in enumerate(values["runs"].items()):
        scatter = part["error"].std(axis=1, ddof=1) / np.sqrt(part["error"].shape[1])
        label = f"{names[name]}, $D = {part['D']}$"
        draw_points(ax, part["alpha"], part["error"].mean(axis=1), scatter, number, label, ls="none")
    ax.axhline(1.0, color=plots.COLORS[3], linestyle="--", linewidth=0.9, label="kernel, theory")
    for edge in values["edges"]:
        ax.axvline(edge, color="0.7", linestyle=":", linewidth=0.7)
    ax.set(xscale="log", yscale="log", xlabel="$n/D$", ylabel="generalization error", ylim=(0.05, 1.35))
    ax.set_title("steps, rounded at finite size")
    ax.legend(fontsize=6, loc="lower left")


def _draw_laws(ax, values) -> None:
    for number, (decay, law) in enumerate(values["laws"].items()):
        draw_theory(ax, values["far"], law["error"], number, rf"$\gamma = {decay:g}$", linestyle="-")
        draw_theory(ax, values["far"], law["white"], number, None, linestyle=":")
        power = 1 / (2 * decay) - 1
        far = values["far"][values["far"] > 1e3]
        ax.plot(far, 2.5 * law["error"][-1] * (far / far[-1]) ** power, color="0.5", lw=0.7, ls="--")
    ax.plot([], [], color="0.3", ls=":", label="white noise")
    ax.plot([], [], color="0.5", lw=0.7, ls="--", label=r"$(n/D)^{-(1 - 1/2\gamma)}$")
    ax.set(xscale="log", yscale="log", xlabel="$n/D$", ylabel="generalization error")
    ax.set_title("infinitely many features")
    ax.legend(fontsize=6, loc="lower left")


def _runs_at(name: str, number: int | None, at: float = AT):
    """The mean of the runs at one n/D: of the overlap of a feature, or of the error."""

    def estimate(found: Material) -> Estimate:
        part = found.values["runs"][name]
        (row,) = np.flatnonzero(part["alpha"] == at)
        points = part["error"][row] if number is None else part["overlap"][row, :, number]
        return mean(points, part["D"])

    return estimate


ENTRY = Entry(
    id="hierarchical-scaling",
    title="Features of falling weight, found one after the other",
    sources=(sources.WORTSMAN,),
    shows="A target that is quadratic in features of degree two of its inputs, with weights that fall like a power, "
    "learned by the eigenvectors of a label-weighted covariance: overlaps with the eight features, the error with its "
    "steps at the thresholds (dotted) beside a kernel, which cannot adapt, and the scaling law of infinitely many. "
    "Runs with Gaussian features, and with Hermite polynomials of their inputs, rescaled to the norm of Gaussian ones.",
    claims=(
        *(
            Claim(
                f"power of n in the error, decay {decay:g}",
                "-(1 - 1/(2 gamma))",
                sources.WORTSMAN,
                lambda found, decay=decay: float(found.values["laws"][decay]["slope"]),
                exact=-(1 - 1 / (2 * decay)),
                tolerance=0.005,
                second_hand=True,
            )
            for decay in DECAYS
        ),
        *(
            Claim(
                f"overlap of feature {k + 1} at n/D = 32",
                None,
                None,
                lambda found, k=k: float(found.values["at"][k]),
                _runs_at("large", k),
            )
            for k in range(3)
        ),
        Claim("error at n/D = 32", None, None, lambda found: found.values["error_at"], _runs_at("large", None)),
        Claim("error at n/D = 32, Hermite polynomials", None, None, None, _runs_at("polynomials", None)),
        Claim(f"error at n/D = {LEAST:g}, quadratic kernel", None, None, None, _runs_at("kernel", None, LEAST)),
    ),
    gather=gather,
    draw=draw,
)
