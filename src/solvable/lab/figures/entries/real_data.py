"""What the estimators for one's own data find: a known subspace, digits seen along the directions found, and scores.

Scores are squared errors on the quarter of the rows that nothing was fitted to, over the variance of the labels. Every
hyper-parameter is chosen by cross-validation on the other three quarters: penalties, widths of kernels, numbers of
directions. Inputs are standardised there as well. Directions are read out by kernel ridge regression on projections.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.core.bibliography import BIBLIOGRAPHY
from solvable.lab import plots
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

PARITY = "sign(z1*z2)"
ALPHA = (3.5, 5.0, 7.0, 10.0)
AT = 5.0
DATA = {"diabetes": "diabetes", "breast_cancer": "breast cancer", "digits": "odd digits"}
MOST_ROWS = 400
"""Rows of a data set, drawn anew for each split: kernel methods take their third power."""
METHODS = {
    "ridge": "ridge",
    "pls": "partial least squares",
    "kernel": "kernel ridge",
    "inverse": "inverse regression + kernel",
    "index": "SpectralIndex + kernel",
    "amp": "AMPRegressor",
    "quadratic": "QuadraticRegressor",
}
OURS = ("index", "amp", "quadratic")


class InverseRegression:
    """Sliced inverse regression as it is taught: whitened inputs, and the leading directions of the slices' means."""

    def __init__(self, n_components: int = 1, slices: int = 10):
        self.n_components, self.slices = n_components, slices

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"n_components": self.n_components, "slices": self.slices}

    def set_params(self, **parameters: Any) -> InverseRegression:
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def fit(self, X: np.ndarray, y: np.ndarray) -> InverseRegression:
        self.mean_ = X.mean(axis=0)
        Z = X - self.mean_
        values, vectors = np.linalg.eigh(Z.T @ Z / len(Z) + 1e-6 * np.eye(Z.shape[1]))
        root = vectors / np.sqrt(values)
        slices = np.array_split(np.argsort(y, kind="stable"), self.slices)
        means = np.stack([np.sqrt(len(rows) / len(Z)) * Z[rows].mean(axis=0) for rows in slices]) @ root
        self.directions_ = root @ np.linalg.svd(means, full_matrices=False)[2][: self.n_components].T
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) @ self.directions_

    def fit_transform(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.fit(X, y).transform(X)


def share_found(alpha: float, d: int, seed: int) -> tuple[float, float]:
    """The share of the subspace of a parity found by who is told the link, and by `SpectralIndex`."""
    import warnings

    import solvable as sv
    from solvable.models.index.spectral.run import spectral_estimate
    from solvable.numerics.blas import single_thread

    model = sv.MultiIndex(PARITY)
    rng = np.random.default_rng([seed, d])
    with single_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = model.sample(rng, d, alpha=alpha)
        known = spectral_estimate(model, "symmetric", data, rng).direction
        index = sv.estimators.SpectralIndex(2).fit(np.sqrt(d) * data.X, data.y)
    truth = np.linalg.qr(data.truth)[0]
    shares = [float(np.sum((np.linalg.qr(part)[0].T @ truth) ** 2) / 2) for part in (known, index.components_.T)]
    return shares[0], shares[1]


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs without constant columns and labels of variance one."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    X, y = np.asarray(found.data, dtype=float), np.asarray(found.target, dtype=float)
    X, y = X[:, np.ptp(X, axis=0) > 0], y % 2 if name == "digits" else y
    return X, (y - y.mean()) / y.std()


def method(name: str) -> Any:
    """A method with the search for its hyper-parameters."""
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import solvable as sv

    kernel = {"kernelridge__alpha": [0.03, 0.3, 3.0]}
    few = kernel | {"kernelridge__gamma": [0.03, 0.3, 1.0]}
    scaler, read_out = StandardScaler(), KernelRidge(kernel="rbf")
    if name == "ridge":
        return make_pipeline(scaler, RidgeCV(np.geomspace(1e-2, 1e4, 19)))
    if name == "pls":
        return GridSearchCV(make_pipeline(scaler, PLSRegression()), {"plsregression__n_components": [1, 2, 4, 8]}, cv=3)
    if name == "kernel":
        wide = kernel | {"kernelridge__gamma": [0.001, 0.004, 0.016, 0.064]}
        return GridSearchCV(make_pipeline(scaler, read_out), wide, cv=3)
    if name == "inverse":
        counts = {"inverseregression__n_components": [1, 2, 4]}
        return GridSearchCV(make_pipeline(scaler, InverseRegression(), read_out), few | counts, cv=3)
    if name == "index":
        # The directions do not depend on the kernel: they are found once, on the training rows.
        index = sv.estimators.SpectralIndex(permutations=4)
        return make_pipeline(scaler, index, GridSearchCV(make_pipeline(read_out), few, cv=3))
    return make_pipeline(
        scaler, {"amp": sv.estimators.AMPRegressor, "quadratic": sv.estimators.QuadraticRegressor}[name]()
    )


def errors_of_split(name: str, seed: int) -> list[float]:
    """The squared error of each method on the rows left out."""
    import warnings

    from sklearn.model_selection import train_test_split

    from solvable.numerics.blas import single_thread

    X, y = data_of(name)
    rows = np.random.default_rng([seed, 3]).permutation(len(y))[:MOST_ROWS]
    train, test, label, truth = train_test_split(X[rows], y[rows], test_size=0.25, random_state=seed)
    found = []
    with warnings.catch_warnings(), single_thread():
        warnings.simplefilter("ignore")
        for each in METHODS:
            predicted = np.ravel(method(each).fit(train, label).predict(test))
            found.append(float(np.mean((predicted - truth) ** 2)))
    return found


def projections_of_digits() -> dict[str, np.ndarray]:
    """Digits of ten classes along the two leading directions of one half, seen on the other; with the classes."""
    import warnings

    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    import solvable as sv

    X, y = load_digits(return_X_y=True)
    train, test, label, digit = (np.asarray(part) for part in train_test_split(X, y, test_size=0.5, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = sv.estimators.SpectralIndex(permutations=4).fit(train, label)
    return {"z": index.transform(test)[:, :2], "digit": digit, "count": np.array(index.n_directions_)}


def gather(effort: Effort) -> Material:
    import solvable as sv

    alpha, d, seeds = effort.pick(ALPHA[1:3], ALPHA), effort.pick(100, 400), effort.pick(3, 16)
    theory = np.linspace(2.0, 10.0, effort.pick(9, 33))
    predicted = sv.predict(sv.MultiIndex(PARITY), sv.Spectral(), alpha=theory)["squared_overlap"]
    at = float(sv.predict(sv.MultiIndex(PARITY), sv.Spectral(), alpha=AT)["squared_overlap"])
    tasks = [(a, d, seed) for a in alpha for seed in range(seeds)]
    shares = np.reshape(in_processes(share_found, tasks, effort), (len(alpha), seeds, 2))
    names = list(DATA)[: effort.pick(1, 3)]
    splits = effort.pick(2, 6)
    found = in_processes(errors_of_split, [(name, seed) for name in names for seed in range(splits)], effort)
    scores = dict(zip(names, np.reshape(found, (len(names), splits, len(METHODS))), strict=True))
    values = {"alpha": np.array(alpha), "shares": shares, "theory": (theory, predicted), "at": at, "scores": scores}
    sizes = {"parity": {"d": [d], "seeds": [seeds]}}
    return Material(values | {"digits": projections_of_digits()}, sizes=sizes)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.3, 2.1)
        grid = figure.add_gridspec(2, 6)
        known, digits = figure.add_subplot(grid[0, :3]), figure.add_subplot(grid[0, 3:])
        theory, predicted = found.values["theory"]
        draw_theory(known, theory, predicted, 0, "theory, link known")
        shares = found.values["shares"]
        draw_runs(known, found.values["alpha"] - 0.06, shares[..., 0], 0, "runs, link known", ls="none")
        draw_runs(known, found.values["alpha"] + 0.06, shares[..., 1], 1, "SpectralIndex, link not known", ls="none")
        known.set(xlabel=r"$\alpha = n/d$", ylabel="share of the subspace found", ylim=(0, 1))
        known.set_title(f"sign(z1 z2), $d = {found.sizes['parity']['d'][0]}$", fontsize=7)
        known.legend(fontsize=6)
        part = found.values["digits"]
        for k in range(10):
            chosen = part["z"][part["digit"] == k]
            colour = matplotlib.colormaps["tab10"](k)
            digits.plot(chosen[:, 0], chosen[:, 1], ".", ms=1.5, color=colour, alpha=0.5)
            x, y = np.median(chosen, axis=0)
            digits.text(x, y, str(k), color=colour, weight="bold", fontsize=9, ha="center")
        digits.set(xlabel="first direction", ylabel="second direction")
        digits.set_title(f"digits left out, two of {int(part['count'])} directions found", fontsize=7)
        places = [grid[1, 2 * k : 2 * k + 2] for k in range(3)]
        for k, (name, errors) in enumerate(found.values["scores"].items()):
            ax = figure.add_subplot(places[k])
            rows = np.arange(len(METHODS))[::-1]
            spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
            for number, group in ((0, False), (1, True)):
                chosen = np.array([(each in OURS) == group for each in METHODS])
                look = {"fmt": plots.MARKERS[number], "color": plots.COLORS[number], "mfc": "white", "mew": 0.9}
                ax.errorbar(errors.mean(axis=0)[chosen], rows[chosen], xerr=spread[chosen], elinewidth=0.9, **look)
            ax.set_yticks(rows, list(METHODS.values()) if k == 0 else [""] * len(rows))
            ax.set(xlabel="error / variance", ylim=(-0.5, len(rows) - 0.5))
            ax.set_title(DATA[name], fontsize=7)
            ax.grid(axis="y", lw=0.3)
    return figure


def share_at(found: Material, which: int) -> Estimate:
    """The mean share at alpha = 5 of the runs with the link known (0) or not (1)."""
    (place,) = np.flatnonzero(found.values["alpha"] == AT)
    return mean(found.values["shares"][place, :, which], found.sizes["parity"]["d"][0])


def relative(found: Material, name: str, ours: str, theirs: str) -> Estimate:
    """The mean ratio of two errors over splits, with its standard error as if splits did not share rows."""
    errors = found.values["scores"].get(name)
    if errors is None:
        return Estimate(np.nan, np.nan)
    order = list(METHODS)
    ratio = errors[:, order.index(ours)] / errors[:, order.index(theirs)]
    return Estimate(float(ratio.mean()), float(ratio.std(ddof=1) / np.sqrt(len(ratio))), len(ratio) - 1)


def _claims() -> list[Claim]:
    found = [
        Claim(
            f"{PARITY} at alpha = 5: share of the subspace, {what}",
            None,
            None,
            lambda found: found.values["at"],
            lambda found, which=which: share_at(found, which),
        )
        for which, what in enumerate(("link known", "link not known"))
    ]
    for name, title in DATA.items():
        for ours, theirs in (("index", "inverse"), ("amp", "ridge"), ("quadratic", "kernel")):
            title_of = f"{title}: error of {METHODS[ours]} over that of {METHODS[theirs]}"
            found.append(
                Claim(title_of, None, None, None, lambda found, key=(name, ours, theirs): relative(found, *key))
            )
    return found


ENTRY = Entry(
    id="estimators",
    title="What the estimators find on data of one's own",
    sources=(BIBLIOGRAPHY["defilippis2025optimal"],),
    shows="The share of the subspace of a parity that SpectralIndex finds without being told the link; digits that "
    "were left out, along two of the directions that it finds from the others; and the squared errors of regressions "
    "on data shipped with scikit-learn, over the variance of the labels, with every choice made by cross-validation on "
    "the training rows. Circles are methods of scikit-learn and inverse regression, squares are ours; bars are "
    "standard errors over splits, which share rows.",
    claims=tuple(_claims()),
    gather=gather,
    draw=draw,
)
