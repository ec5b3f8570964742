"""The house style: colours, sizes, fonts, the words on axes, and how a figure becomes a file."""

from __future__ import annotations

import functools
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvable.core.errors import bad_parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from solvable.lab.curve import Curve

# Okabe and Ito's palette without its yellow, which is too light for lines on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = (".png", ".pdf", ".svg")
WIDTH, HEIGHT = 3.4, 2.7
PARTS = ("theory", "simulation")
GREEK = ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "rho", "sigma", "tau")

STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.5,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "solvable",
}


class Places(NamedTuple):
    """An axis as drawn: the order of its values, their positions in that order, and their names if they are texts."""

    order: np.ndarray
    positions: np.ndarray
    names: list[str] | None


def places(curve: Curve, axis: str) -> Places:
    """Numbers in increasing order at their values, texts in the order given at 0, 1, ..."""
    values = np.asarray(curve.dataset[axis].values)
    if values.dtype.kind in "iuf":
        order = np.argsort(values)
        return Places(order, values[order], None)
    along = np.arange(values.size)
    return Places(along, along.astype(float), [escaped(value) for value in values])


def words(name: str) -> str:
    """A name as words: `weak_recovery` is "weak recovery"."""
    return name.replace("_", " ")


def escaped(text: Any) -> str:
    """A user's text, in which a dollar sign is not mathematics."""
    return str(text).replace("$", r"\$")


def symbol(name: str) -> str:
    """The letter or the words of an axis."""
    return rf"$\{name}$" if name in GREEK else words(name)


def axis_label(curve: Curve, name: str) -> str:
    """What is written along an axis."""
    if name == "d":
        return f"dimension ${curve.size_name}$" if curve.size_name == "d" else f"${curve.size_name}$"
    label = curve.axis_labels.get(name, "")
    if not label or name == label:
        return symbol(name)
    formula = any(sign in label for sign in "/^*")
    return f"{symbol(name)} = ${label}$" if formula else f"{symbol(name)}, {label}"


def value_label(name: str, value: Any) -> str:
    """A value of an axis, as in the title of a panel."""
    return f"{symbol(name)} = {escaped(value) if isinstance(value, str) else f'{value:.4g}'}"


def name_ticks(ax: Axes, which: str, place: Places) -> None:
    """The names of a text axis at its positions, slanted if they are long."""
    if place.names is None:
        return
    slanted = which == "x" and max(map(len, place.names)) * len(place.names) > 40
    look: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    getattr(ax, f"set_{which}ticks")(place.positions, place.names, **look)


def tint(color: str, share: float) -> tuple[float, float, float]:
    """A colour mixed with white, of which it keeps the given share."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - part) for part in to_rgb(color))  # type: ignore[return-value]


def new_figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """A figure that notebooks show: through pyplot inside one, or if the user has loaded it."""
    if "matplotlib.pyplot" in sys.modules or _in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained")
    return bare_figure(width, height)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows the figures of pyplot below a cell."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bare_figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """A figure that no window knows, and that shows itself as the last value of a cell."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure._repr_png_ = functools.partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def displayed(ax: Axes) -> Axes:
    """The axes of a new figure, which as the last value of a cell show it too."""
    if hasattr(ax.figure, "_repr_png_"):
        ax._repr_png_ = ax.figure._repr_png_  # type: ignore[attr-defined]
    return ax


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def check_path(path: str | Path) -> Path:
    """The path of a figure, refused if it cannot be written or has an unknown ending."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise bad_parameter("path", str(path), f"a file name that ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise bad_parameter("path", str(path), "in a folder that exists")
    return path


def write_figure(figure: Any, path: str | Path) -> Path:
    """Write a figure as PNG, PDF or SVG after the path's ending."""
    import matplotlib

    path = check_path(path)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    return path
