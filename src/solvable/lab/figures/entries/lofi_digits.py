"""Layers of selected features on digits, against layers of random ones and against descent.

All ridge regressions choose their penalty by cross-validation on the training set, and all random layers have 1000
neurons. Descent starts from small weights of the second layer, and its first layer alone is trained.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes
from solvable.lab.figures.digits import digits, kernel_features, random_layers, ridge_error, split
from solvable.lab.figures.drawing import draw_points, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

TASK, WIDTH, KEPT = "odd or even", 1000, 20
METHODS = {
    "linear": "linear",
    "one random": "one random layer",
    "two random": "two random layers",
    "kernel": "kernel of infinitely many",
    "one selected": "one selecting layer",
    "two selected": "two selecting layers",
    "kernel selected": "two, infinitely many neurons",
}
MOST = 1000
"""The number of samples of the claims."""
LIMIT = 300
"""That of the comparison of widths."""


def errors(n: int, seed: int) -> list[float]:
    """The test errors of all methods on one split."""
    import solvable as sv
    from solvable.numerics.blas import single_thread

    with single_thread():
        X, y = digits(TASK)
        train, test = split(len(y), n, seed)
        A, b, B = X[train], y[train], X[test]
        rng = np.random.default_rng([seed, n, 1])
        pairs: list[tuple[np.ndarray, np.ndarray]] = [(A, B)]
        for widths in ([WIDTH], [WIDTH, WIDTH]):
            layers = random_layers(widths, A, rng)
            pairs.append((layers(A), layers(B)))
        pairs.append(kernel_features(A, B))
        for layers in (1, 2):
            model = sv.estimators.NeuralLoFi(KEPT, layers, WIDTH, random_state=seed)
            pairs.append((model.fit_transform(A, b), model.transform(B)))
        model = sv.estimators.NeuralLoFi(KEPT, 2, "kernel")
        pairs.append(kernel_features(model.fit_transform(A, b), model.transform(B)))
        return [ridge_error(features, b, others, y[test]) for features, others in pairs]


def share_of_limit(width: int, seed: int) -> float:
    """How much of what infinitely many neurons select is in the span of what these do, on the training set."""
    import solvable as sv

    X, y = digits(TASK)
    train, _ = split(len(y), LIMIT, seed)
    spans = [
        np.linalg.qr(
            sv.estimators.NeuralLoFi(KEPT, 1, one, final=False, random_state=seed).fit_transform(X[train], y[train])
        )[0]
        for one in (width, "kernel")
    ]
    return float(np.sum((spans[0].T @ spans[1]) ** 2)) / KEPT


def descent(seed: int, steps: list[int], neurons: int = 400, n: int = 1200, kept: int = 8) -> np.ndarray:
    """At each of so many steps: the training error, and what of the change of the weights lies in the span of the
    leading directions of (1/n) sum y x x^T, and of the leading principal components."""
    from solvable.engine.lofi.layers import largest
    from solvable.numerics.blas import single_thread

    with single_thread():
        X, y = digits(TASK)
        train, _ = split(len(y), n, seed)
        X, y = X[train], y[train] - y[train].mean()
        rng = np.random.default_rng([seed, 2])
        W, a = rng.standard_normal((X.shape[1], neurons)), 0.03 * rng.choice([-1.0, 1.0], neurons)
        start, rate = W.copy(), 1.0 / float(np.sum(a**2) * np.linalg.eigvalsh(X.T @ X / n)[-1])
        spans = [largest((X * y[:, None]).T @ X / n, kept)[1], largest(X.T @ X / n, kept)[1]]
        first = np.maximum(X @ W, 0.0) @ a
        found = []
        for step in range(1, steps[-1] + 1):
            h = X @ W
            # The network is counted from where it starts, so that its first residual is the label.
            residual = np.maximum(h, 0.0) @ a - first - y
            W -= rate * (X.T @ (residual[:, None] * (h > 0) * a)) / n
            if step in steps:
                left = np.linalg.svd(W - start, full_matrices=False)[0][:, :kept]
                error = float(np.mean((np.maximum(X @ W, 0.0) @ a - first - y) ** 2))
                found.append([error / float(np.mean(y**2)), *(np.sum((left.T @ span) ** 2) / kept for span in spans)])
        return np.array(found)


def gather(effort: Effort) -> Material:
    sizes = effort.pick((100, MOST), (100, 200, 400, MOST))
    splits = effort.pick(2, 6)
    found = in_processes(errors, [(n, seed) for n in sizes for seed in range(splits)], effort)
    widths = effort.pick((100, 1000), (30, 100, 300, 1000, 3000))
    seeds = effort.pick(2, 4)
    shares = in_processes(share_of_limit, [(width, seed) for width in widths for seed in range(seeds)], effort)
    steps = effort.pick([1, 10, 100], [1, 3, 10, 30, 100, 300])
    trained = in_processes(descent, [(seed, steps) for seed in range(seeds)], effort)
    values: dict[str, Any] = {
        "n": np.array(sizes),
        "errors": np.array(found).reshape(len(sizes), splits, -1),
        "widths": np.array(widths),
        "shares": np.array(shares).reshape(len(widths), -1),
        "steps": np.array(steps),
        "descent": np.array(trained),
    }
    return Material(values)


def draw(found: Material, verdicts):
    import matplotlib

    values = found.values
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.9, 1.1)
        left, middle, right = figure.subplots(1, 3)
        for number, name in enumerate(METHODS.values()):
            _points(left, values["n"], values["errors"][:, :, number], number, name)
        left.set(xscale="log", yscale="log", xlabel="training samples $n$", ylabel="mean squared test error")
        left.set_xticks(values["n"], [str(n) for n in values["n"]])
        left.set_yticks([0.1, 0.2, 0.4], ["0.1", "0.2", "0.4"])
        left.minorticks_off()
        left.set_title(f"digits, {TASK}")
        left.legend(fontsize=5.5)
        _points(middle, values["widths"], 1 - values["shares"], 0, None)
        middle.plot(
            values["widths"],
            (1 - values["shares"].mean(axis=1))[-1] * values["widths"][-1] / values["widths"],
            color="0.5",
            ls="--",
            lw=0.8,
            label="$1/P$",
        )
        middle.set(xscale="log", yscale="log", xlabel="neurons $P$", ylabel="share missed of what the kernel selects")
        middle.set_title(f"one layer, {KEPT} features, $n = {LIMIT}$")
        middle.legend(fontsize=6)
        names = ("directions that labels pick", "principal components")
        for number, name in enumerate(names):
            _points(right, values["steps"], values["descent"][:, :, 1 + number].T, number, name)
        _points(right, values["steps"], values["descent"][:, :, 0].T, 2, "training error")
        right.axhline(8 / 64, color="0.6", ls=":", lw=0.8, label="chance")
        right.set(xscale="log", xlabel="steps of descent", ylabel="share of the change of weights", ylim=(0, 1.05))
        right.set_title("eight directions of a trained layer")
        right.legend(fontsize=6)
    return figure


def _points(ax, x, values, number, label) -> None:
    scatter = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    draw_points(ax, x, values.mean(axis=1), scatter, number, label, ls="-", lw=0.8)


def _error(name: str):
    """The mean error of a method at the largest n."""

    def estimate(found: Material) -> Estimate:
        points = found.values["errors"][-1][:, list(METHODS).index(name)]
        return Estimate(float(points.mean()), float(points.std(ddof=1) / np.sqrt(len(points))), len(points) - 1)

    return estimate


def _ratio(found: Material) -> Estimate:
    """The error of two selecting layers over that of one random layer, split by split."""
    names = list(METHODS)
    last = found.values["errors"][-1]
    ratio = last[:, names.index("two selected")] / last[:, names.index("one random")]
    return Estimate(float(ratio.mean()), float(ratio.std(ddof=1) / np.sqrt(len(ratio))), len(ratio) - 1)


def _share(number: int, step: int):
    """At a measured step, what lies in the span of the directions that labels pick, or of the others."""

    def estimate(found: Material) -> Estimate:
        points = found.values["descent"][:, step, number]
        return Estimate(float(points.mean()), float(points.std(ddof=1) / np.sqrt(len(points))), len(points) - 1)

    return estimate


ENTRY = Entry(
    id="lofi-digits",
    title="Selected features on digits",
    sources=(sources.DANDI_LOFI,),
    shows="Odd against even digits of 8 x 8 pixels: layers of 1000 random neurons of which the labels pick 20 "
    "directions, against layers that nothing selects; how finitely many neurons approach the kernel of infinitely "
    "many; and the first layer of a network under descent, whose change starts in the directions that labels pick and "
    "moves away.",
    claims=(
        *(Claim(f"error at n = {MOST}, {name}", None, None, None, _error(key)) for key, name in METHODS.items()),
        Claim("error of two selecting layers over that of one random layer", None, None, None, _ratio),
        Claim("descent, first step: share in what labels pick", None, None, None, _share(1, 0)),
        Claim("descent, first step: share in principal components", None, None, None, _share(2, 0)),
        Claim("descent, last step: share in what labels pick", None, None, None, _share(1, -1)),
    ),
    gather=gather,
    draw=draw,
)
