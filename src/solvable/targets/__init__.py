"""Targets: text or callables to functions, and what can be said of them before any learning."""

from __future__ import annotations
