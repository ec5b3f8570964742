"""Forecasts: what more data would buy, from the data at hand."""

from __future__ import annotations

from solvable.lab.forecast.learners import KernelRidge, LinearRidge
from solvable.lab.forecast.verb import Forecast, forecast

__all__ = ["Forecast", "KernelRidge", "LinearRidge", "forecast"]
