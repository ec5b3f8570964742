"""The information of hardmax labels of three and four tokens: rows of t, J/t and its standard error.

Written by `hardmax_many.drawn_information(tokens, 1/t^2 - 1, power=11, draws=64, replica)` over eight replicas.
"""

from __future__ import annotations

TABLE: dict[int, tuple[tuple[float, float, float], ...]] = {
    3: (
        (0.1, 3.25257, 0.00953),
        (0.2, 3.21882, 0.00331),
        (0.35, 3.17332, 0.0047),
        (0.5, 3.11216, 0.00313),
        (0.65, 3.04612, 0.00339),
        (0.8, 2.97251, 0.00155),
        (0.9, 2.9118, 0.00176),
        (1.0, 2.85098, 0.00069),
    ),
    4: (
        (0.1, 5.26411, 0.01676),
        (0.2, 5.2309, 0.00474),
        (0.35, 5.18217, 0.00369),
        (0.5, 5.10009, 0.00356),
        (0.65, 5.00247, 0.00329),
        (0.8, 4.90452, 0.00335),
        (0.9, 4.83516, 0.00246),
        (1.0, 4.75565, 0.00273),
    ),
}
