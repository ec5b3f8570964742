"""Spectra: the histogram of simulated eigenvalues against a density, and eigenvalues that stand alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.lab.plots.style import COLORS, STYLE, displayed, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 40
EDGE = 3.0
"""The largest eigenvalue of a bulk of N strays from its edge by about N^(-2/3) of its width, and hardly ever by more
than so many times that."""
EMPTY = 1e-9
"""A density below this share of its maximum is zero."""


def draw_spectrum(
    eigenvalues: Any,
    density: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
    outliers: Mapping[str, float] | Sequence[float] = (),
    atoms: Mapping[float, float] | None = None,
    label: str = "simulation",
    color: str = COLORS[0],
) -> Axes:
    """Simulated eigenvalues against what theory says of them.

    **Arguments:** `eigenvalues`, an array whose last axis runs over the spectrum of one matrix (earlier axes: seeds,
    drawn together); `density`, a pair of arrays (x, rho(x)) of the bulk, fine enough to show its edges; `outliers`,
    where theory puts isolated eigenvalues, with or without names; `atoms`, the places where theory puts a positive
    share of the eigenvalues, with that share (such as {0.0: 0.3}); `label`, the runs in the legend.

    The histogram holds the eigenvalues of the bulk, and its area is their share of all. With a density, the bulk is its
    support up to fluctuations of the edges; what lies outside is marked one by one, what lies on an atom is left out.
    """
    import matplotlib

    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)):
        raise bad_parameter("eigenvalues", eigenvalues, "a non-empty array of finite numbers")
    curve = None if density is None else _checked_density(density)
    atoms = {} if atoms is None else dict(atoms)
    bulk, alone = _split(values, curve, atoms)
    with matplotlib.rc_context(STYLE):
        if ax is None:
            ax = displayed(new_figure().add_subplot())
        if bulk.size:
            edges = _bins(bulk, curve)
            heights = np.histogram(bulk, edges)[0] / (values.size * np.diff(edges))
            ax.stairs(heights, edges, fill=True, color=color, alpha=0.3, linewidth=0, label=label)
        if curve is not None:
            ax.plot(*curve, color=color, label="theory")
        ax.set_ylim(bottom=0)
        _mark_atoms(ax, atoms, {place: float(np.mean(_near(values, place))) for place in atoms}, color)
        _mark_outliers(ax, outliers)
        if alone.size:
            look: dict[str, Any] = {"color": COLORS[1], "mfc": "white", "mew": 0.9, "clip_on": False, "zorder": 3}
            name = "isolated, simulation"
            ax.plot(alone, np.zeros(alone.size), "o", label=name, **look)
        ax.set_xlabel(r"eigenvalue $\lambda$")
        ax.set_ylabel(r"density $\rho(\lambda)$")
        ax.legend()
    return ax


def _checked_density(density: Any) -> tuple[np.ndarray, np.ndarray]:
    takes = "a pair (x, rho) of arrays of one length, x increasing and rho finite and not negative"
    try:
        x, rho = (np.asarray(part, dtype=np.float64) for part in density)
    except (TypeError, ValueError):
        raise bad_parameter("density", density, takes) from None
    good = x.ndim == 1 and x.shape == rho.shape and x.size > 1 and np.all(np.diff(x) > 0)
    if not (good and np.all(np.isfinite(rho)) and np.all(rho >= 0) and np.any(rho > 0)):
        raise bad_parameter("density", density, takes)
    return x, rho


def _split(
    values: np.ndarray, curve: tuple[np.ndarray, np.ndarray] | None, atoms: Mapping[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of the bulk, and those that stand alone."""
    flat = values[~np.any([np.zeros(values.shape, dtype=bool), *(_near(values, place) for place in atoms)], axis=0)]
    if curve is None:
        return flat, np.array([])
    x, rho = curve
    support = x[rho > EMPTY * rho.max()]
    margin = EDGE * (support[-1] - support[0]) * values.shape[-1] ** (-2 / 3)
    after = np.clip(np.searchsorted(support, flat), 1, support.size - 1)
    distance = np.minimum(np.abs(flat - support[after - 1]), np.abs(flat - support[after]))
    step = np.max(np.diff(x))  # inside the support no point is farther than this from a point of the grid
    inside = distance <= max(margin, step)
    return flat[inside], flat[~inside]


def _near(values: np.ndarray, place: float) -> np.ndarray:
    """Which eigenvalues lie on an atom, up to rounding."""
    return np.abs(values - place) <= 1e-8 * max(1.0, np.max(np.abs(values)))


def _bins(bulk: np.ndarray, curve: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Bins that begin and end at the edges of the density, and go on as far as eigenvalues do."""
    count = int(np.clip(2 * bulk.size ** (1 / 3), 8, BINS))
    if curve is None:
        return np.histogram_bin_edges(bulk, count)
    x, rho = curve
    support = x[rho > EMPTY * rho.max()]
    width = (support[-1] - support[0]) / count
    below = max(0, int(np.ceil((support[0] - bulk.min()) / width)))
    above = max(0, int(np.ceil((bulk.max() - support[-1]) / width)))
    return support[0] + width * np.arange(-below, count + above + 1)


def _mark_atoms(ax: Axes, atoms: Mapping[float, float], shares: Mapping[float, float], color: str) -> None:
    """An upright line at each atom; the legend compares its share of the eigenvalues with that of the runs."""
    for place, share in atoms.items():
        text = f"mass at {place:g}: theory {share:.3g}, simulation {shares[place]:.3g}"
        ax.axvline(place, color=color, linewidth=2.0, label=text)


def _mark_outliers(ax: Axes, outliers: Mapping[str, float] | Sequence[float]) -> None:
    """A dashed line where theory puts an isolated eigenvalue."""
    named = outliers.items() if isinstance(outliers, Mapping) else [("", value) for value in outliers]
    for k, (name, place) in enumerate(named):
        ax.axvline(place, color=COLORS[1], linewidth=1.0, linestyle="--", label=None if k else "isolated, theory")
        if name:
            ax.annotate(
                name,
                (place, 0.94),
                xycoords=("data", "axes fraction"),
                xytext=(2, 0),
                textcoords="offset points",
                rotation=90,
                va="top",
                fontsize=6,
                color="0.35",
            )
