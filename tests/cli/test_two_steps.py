"""Two giant steps on the command line."""

from __future__ import annotations

import json

from solvable.cli.app import run


def test_two_steps_are_predicted(capsys):
    model = ["tanh(z)", "--model", "two-layer", "--param", "activation=tanh(z + 0.7)", "--param", "width=1"]
    learner = ["--learner", "two-steps:first=0.3,second=0.45,reuse=false", "--alpha", "3", "--json"]
    assert run(["predict", *model, *learner]) == 0
    found = json.loads(capsys.readouterr().out)["metrics"]
    assert found["directions"] == 2 and abs(found["alignment_0"] - 0.858048) < 1e-5
