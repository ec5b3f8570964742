"""Thresholds by name, as every solver and family returns them."""

from __future__ import annotations

import numpy as np


class Thresholds(dict[str, float]):
    """Thresholds by name, and in words which of them coincide.

    Of index models: weak_recovery, where the AMP overlap becomes positive; information_theoretic and algorithmic, the
    ends of the (last) hard phase, where Bayes-optimal learning is better than AMP; without a hard phase both equal
    weak_recovery.
    """

    @property
    def coincide(self) -> list[tuple[str, ...]]:
        """Groups of names that share a finite value: two things that never happen do not coincide."""
        groups: dict[float, list[str]] = {}
        for name, value in self.items():
            if np.isfinite(value):
                groups.setdefault(value, []).append(name)
        return [tuple(names) for names in groups.values() if len(names) > 1]

    def __str__(self) -> str:
        lines = [f"{name:24s}{value:.6g}" for name, value in self.items()]
        lines += [f"({' = '.join(names)})" for names in self.coincide]
        return "\n".join(lines)
