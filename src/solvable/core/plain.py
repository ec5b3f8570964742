"""Results as plain values, for JSON."""

from __future__ import annotations

import enum
import math
from typing import Any


def to_json(value: Any) -> Any:
    """Plain values for JSON, which has no infinities: they become the strings "inf", "-inf" and "nan"."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if hasattr(value, "__array__"):
        import numpy as np  # whoever has an array has loaded it already

        return to_json(np.asarray(value).tolist())
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
