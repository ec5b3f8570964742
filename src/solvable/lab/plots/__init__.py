"""Figures of curves and spectra in one house style, legible at the width of a journal's column.

Theory is drawn as lines, simulation as markers with standard errors, thresholds as labelled lines. Learners differ by
colour (the Okabe-Ito palette, told apart by colour-blind readers), by line style and by marker. Nothing here opens a
window; figures are made without pyplot unless the user has already loaded it or works in a notebook, which shows them.
"""

from solvable.lab.plots.lines import draw_lines, mark_thresholds
from solvable.lab.plots.maps import draw_map
from solvable.lab.plots.panels import draw, save_figure
from solvable.lab.plots.spectra import draw_spectrum
from solvable.lab.plots.style import COLORS, DASHES, FORMATS, HEIGHT, MARKERS, PARTS, STYLE, WIDTH, write_figure

__all__ = [
    "COLORS",
    "DASHES",
    "FORMATS",
    "HEIGHT",
    "MARKERS",
    "PARTS",
    "STYLE",
    "WIDTH",
    "draw",
    "draw_lines",
    "draw_map",
    "draw_spectrum",
    "mark_thresholds",
    "save_figure",
    "write_figure",
]
