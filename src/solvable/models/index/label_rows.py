"""Rows of (z, y) for averages over a continuous label, by a nested rule that tells its own error.

The panels are cut at the edges of the target and halved until functions of the residual y - m z, steep at the scale of
the noise or a tenth of the label's, are integrated to 1e-9. The rule with every second node is the coarse one.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from solvable.channels.label_models import CurvedLabels
from solvable.channels.losses import Loss
from solvable.numerics.gaussian import nested_fejer, normal_density, normal_trapezoid, standard_edges
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

_RADIUS = 7.5
_ENOUGH = 1e-9
_MOST_PANELS = 48
_SLOPES = (0.0, 0.5, 1.0)


class Line(NamedTuple):
    """Nodes on the line with the weights of N(0, 1) by the nested rule: all nodes, and every second one."""

    z: np.ndarray
    weight: np.ndarray
    coarse: np.ndarray


def curved_labels(target: Target, parts: list[tuple[float, float, float]], loss: Loss) -> CurvedLabels:
    """Rows of z, and of the noise too for a loss that is not of the residual."""
    line = _line(target, float(min(noise for _, _, noise in parts)))
    label = target.numpy(line.z[:, None])
    rows = []
    for p, beta, noise in parts:
        if loss.residual or noise == 0:
            rows.append((p * line.weight, p * line.coarse, line.z, beta * label, np.full_like(line.z, noise)))
            continue
        xi, xi_weight = normal_trapezoid(0.5, 6.0)
        y = (beta * label[:, None] + np.sqrt(noise) * xi).ravel()
        weight, coarse = ((p * part[:, None] * xi_weight).ravel() for part in (line.weight, line.coarse))
        kept = weight > 1e-13
        rows.append(tuple(a[kept] for a in (weight, coarse, np.repeat(line.z, len(xi)), y, np.zeros(y.size))))
    weight, coarse, z, y, noise = (np.concatenate(column) for column in zip(*rows, strict=True))
    return CurvedLabels(weight / weight.sum(), coarse / coarse.sum(), z, y, noise)


@functools.lru_cache(maxsize=64)
def _line(target: Target, noise: float) -> Line:
    edges = list(standard_edges(landscape(target).edges, _RADIUS))
    panels = list(zip(edges[:-1], edges[1:], strict=True))
    z = np.linspace(-4.0, 4.0, 801)
    spread = float(np.std(target.numpy(z[:, None]) * np.sqrt(normal_density(z) / normal_density(z).mean())))
    scale = np.hypot(np.sqrt(noise), 0.1 * spread) or 1.0
    errors = [_error(target, panel, scale) for panel in panels]
    while max(errors) > _ENOUGH and len(panels) < _MOST_PANELS:
        worst = int(np.argmax(errors))
        low, high = panels.pop(worst)
        errors.pop(worst)
        for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
            panels.append(half)
            errors.append(_error(target, half, scale))
    parts = [_nodes(panel) for panel in sorted(panels)]
    z, weight, coarse = (np.concatenate(column) for column in zip(*parts, strict=True))
    kept = weight > 1e-15
    return Line(z[kept], weight[kept], coarse[kept])


def _nodes(panel: tuple[float, float]) -> Line:
    t, w, coarse = nested_fejer()
    low, width = panel[0], panel[1] - panel[0]
    z = low + width * t
    density = normal_density(z)
    return Line(z, width * w * density, width * coarse * density)


def _error(target: Target, panel: tuple[float, float], scale: float) -> float:
    """The largest difference of the two rules on one panel."""
    z, weight, coarse = _nodes(panel)
    label = target.numpy(z[:, None])
    tests = [np.tanh((label - slope * z) / scale) for slope in _SLOPES]
    return max(abs(float((weight - coarse) @ f)) for test in tests for f in (test, test**2))
