"""Wide teachers: hierarchical features that are learned one by one, and extensive networks with a quadratic part."""

from __future__ import annotations

from solvable.models.lowrank.wide_teacher.adam import AdamStudent
from solvable.models.lowrank.wide_teacher.bayes import BayesStudent
from solvable.models.lowrank.wide_teacher.model import WideTeacher
from solvable.models.lowrank.wide_teacher.network import WideNetwork
from solvable.models.lowrank.wide_teacher.specialised import specialization

__all__ = ["AdamStudent", "BayesStudent", "WideNetwork", "WideTeacher", "specialization"]
