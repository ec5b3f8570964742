"""Predictions and outcomes as mappings from the names of metrics to their values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import solvable as sv

METRICS = {"cosine": 0.5, "squared_overlap": 0.25}


@pytest.mark.parametrize("result", [sv.Prediction(METRICS), sv.Outcome(METRICS)], ids=["prediction", "outcome"])
def test_a_result_is_a_mapping_of_its_metrics(result):
    assert isinstance(result, Mapping) and dict(result) == METRICS and {**result} == METRICS
    assert list(result) == list(result.keys()) == ["cosine", "squared_overlap"] and len(result) == 2
    assert dict(result.items()) == METRICS and list(result.values()) == [0.5, 0.25]
    assert "cosine" in result and "overlap" not in result and result.get("overlap") is None
    with pytest.raises(KeyError, match="no metric 'overlap'; there are: cosine, squared_overlap"):
        result["overlap"]
