"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Target = Annotated[str, typer.Argument(metavar="TARGET", help='A function of z (or z1..z3), such as "abs(z)".')]
DiagnosedTarget = Annotated[
    str, typer.Argument(metavar="TARGET", help='A function of z (or z1..z4), such as "abs(z)".')
]
MaybeTarget = Annotated[
    str | None, typer.Argument(metavar="TARGET", help="A function of z (or z1..z3), for models that have one.")
]
Noise = Annotated[float | None, typer.Option(help="Variance of the noise added to the label.")]
Prior = Annotated[
    str | None, typer.Option(help="Prior of the weights: gaussian, rademacher, gauss-bernoulli:0.2 (its density).")
]
ModelName = Annotated[str, typer.Option("--model", help="A model that `solvable models` lists.")]
Params = Annotated[
    list[str] | None, typer.Option("--param", metavar="KEY=VALUE", help="A field or an axis; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
LEARNER_HELP = (
    "A learner that `solvable models` lists, with fields if need be: amp:damping=0.3, erm:loss=huber:0.8,penalty=0.2"
)
