"""What a channel says at one overlap matrix M, in place of a batch of V."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def information_at(channel, M):
    """`information` (r x r), `entropy`, `error` and `entropy_error` at M, as numbers."""
    found = channel.information((np.eye(len(M)) - M)[None])
    return SimpleNamespace(
        information=found.information[0],
        entropy=float(found.entropy[0]),
        error=float(found.error[0]),
        entropy_error=float(found.entropy_error[0]),
    )


def errors_at(channel, M):
    """The errors of predictions at M: name -> (value, error)."""
    found = channel.predictor.errors((np.eye(len(M)) - M)[None])
    return {name: (float(value[0]), float(error[0])) for name, (value, error) in found.items()}
