"""Figures of the field, each a small module that computes and draws it."""

from __future__ import annotations
