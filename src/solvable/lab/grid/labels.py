"""What the learners of a grid are called: a label each that no other has, and a title for figures."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter

from solvable.core.model import Learner
from solvable.core.plain import to_json


def labels(learners: list[Learner]) -> list[str]:
    """A unique label for each learner: its name, its distinguishing fields if names repeat, a number if all repeats."""
    return _unique([learner.name() for learner in learners], learners)


def titles(learners: list[Learner]) -> list[str]:
    """The labels as a figure shows them: `BayesOptimal` is "Bayes optimal", `AMP` stays."""
    return _unique([_words(type(learner).__name__) for learner in learners], learners)


def _unique(names: list[str], learners: list[Learner]) -> list[str]:
    repeated = {name for name, count in Counter(names).items() if count > 1}
    found = []
    for name, learner in zip(names, learners, strict=True):
        peers = [other for peer, other in zip(names, learners, strict=True) if peer == name]
        found.append(f"{name}({', '.join(_differences(learner, peers))})" if name in repeated else name)
    seen: Counter[str] = Counter()
    for i, name in enumerate(found):
        seen[name] += 1
        if seen[name] > 1:
            found[i] = f"{name} #{seen[name]}"
    return [name.replace("()", "") for name in found]


def _differences(learner: Learner, peers: list[Learner]) -> list[str]:
    described = [peer.describe() for peer in peers]
    fields = [f.name for f in dataclasses.fields(learner)]
    mine = learner.describe()
    return [f"{f}={mine[f]}" for f in fields if len({json.dumps(to_json(peer.get(f))) for peer in described}) > 1]


def _words(name: str) -> str:
    first, *rest = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).split()
    return " ".join([first, *(word if word.isupper() else word.lower() for word in rest)])
