"""The commands of `solvable`. They import what they need when they run, so that `--help` is immediate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from solvable.cli.errors import guarded
from solvable.cli.find import find
from solvable.cli.forecast import forecast
from solvable.cli.options import (
    LEARNER_HELP,
    DiagnosedTarget,
    Json,
    MaybeTarget,
    ModelName,
    Noise,
    Params,
    Prior,
    Target,
)
from solvable.cli.reproduce import reproduce
from solvable.cli.sweep import gather, status, sweep

INTRO = """Exactly solvable models of learning: what can be learned, from how many samples, by which algorithm.

Example: solvable predict "abs(z)" --alpha 1.3 --learner amp

With --json, infinities and NaN are the strings "inf", "-inf" and "nan".

Bad input ends with exit code 2, a failed computation with 1, a full disk with 3, each with a line on standard error."""

app = typer.Typer(help=INTRO, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def run(arguments: list[str], compile_cache: bool = False) -> int:
    """Run the command line on these arguments and return the exit code.

    Only a process of its own may have `compile_cache`: it sets environment variables, for good.
    """
    command = typer.main.get_command(app)
    return guarded(lambda: command.main(args=arguments, prog_name="solvable", standalone_mode=False, obj=compile_cache))


def _version(wanted: bool) -> None:
    if wanted:
        from solvable.core.version import installed_version

        print(f"solvable {installed_version()}")
        raise typer.Exit()


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    no_compile_cache: Annotated[
        bool,
        typer.Option(
            "--no-compile-cache",
            help="Keep no compiled programs on disk. SOLVABLE_COMPILE_CACHE=off does the same; a path moves them.",
        ),
    ] = False,
) -> None:
    if context.obj and not no_compile_cache:
        from solvable.cli.cache import enable

        enable()


@app.command()
def models(
    references: Annotated[bool, typer.Option("--references", help="Name the publications behind each pair.")] = False,
    json: Json = False,
) -> None:
    """List which learners are solved, simulated or both, for each model.

    Example: solvable models
    """
    from solvable.cli.show import show_json, show_table, show_text
    from solvable.core.bibliography import cite
    from solvable.core.registry import matrix, references_of
    from solvable.lab.named import register_all

    register_all()
    pairs = matrix()
    rows = [(model.name(), learner.name(), *filled) for (model, learner), filled in pairs.items()]
    columns, keys = ("model", "learner", "theory", "simulation"), [references_of(*pair) for pair in pairs]
    if json:
        extra = [{"references": [cite(key) for key in found]} if references else {} for found in keys]
        show_json([dict(zip(columns, row, strict=True)) | more for row, more in zip(rows, extra, strict=True)])
        return
    marks = {True: "yes", False: "-"}
    show_table(columns, [(*names, marks[t], marks[s]) for *names, t, s in rows])
    for (model, learner, *_), found in zip(rows, keys, strict=True) if references else ():
        show_text("\n  ".join([f"{model}, {learner}", *map(cite, found)]))


@app.command()
def diagnose(
    target: DiagnosedTarget,
    noise: Noise = None,
    seconds: Annotated[float | None, typer.Option(help="Give up after so many seconds.")] = None,
    json: Json = False,
) -> None:
    """Say how hard a target is to learn, and why.

    Example: solvable diagnose "z**2 + tanh(z)" --noise 0.1
    """
    from solvable.cli.show import show_json, show_text
    from solvable.models.index.diagnosis import diagnose as verb

    found = verb(target, noise=0.0 if noise is None else noise, seconds=seconds)
    show_json(found.to_dict()) if json else show_text(str(found))


@app.command()
def thresholds(
    target: MaybeTarget = None,
    noise: Noise = None,
    prior: Prior = None,
    learner: Annotated[str | None, typer.Option(help="Those of one learner, such as erm:loss=logistic.")] = None,
    model: ModelName = "multi-index",
    param: Params = None,
    json: Json = False,
) -> None:
    """Print the sample ratios at which what can be learned changes.

    Example: solvable thresholds "abs(z)" --noise 0.01
    """
    from solvable.cli.parse import build
    from solvable.cli.show import show_json, show_table, show_text
    from solvable.core.digits import rounded
    from solvable.verbs.thresholds import thresholds as verb

    request = build(model, target, {"noise": noise, "prior": prior}, param or [], [learner] if learner else [])
    found = verb(request.model, *request.learners)
    if json:
        show_json(found)
        return
    errors = getattr(found, "errors", {})
    rows = [(name, rounded(value, errors[name]) if name in errors else value) for name, value in found.items()]
    show_table(("threshold", "value"), rows)
    for names in getattr(found, "coincide", []):
        show_text(f"{' = '.join(names)} (they coincide)")


@app.command()
def predict(
    target: MaybeTarget = None,
    alpha: Annotated[
        str | None, typer.Option(help="Samples, n = alpha d or as the model scales; also start:stop:count or a list.")
    ] = None,
    learner: Annotated[str, typer.Option(help=LEARNER_HELP)] = "bayes-optimal",
    noise: Noise = None,
    prior: Prior = None,
    model: ModelName = "multi-index",
    param: Params = None,
    json: Json = False,
) -> None:
    """Print what theory says in the limit of infinite dimension.

    Example: solvable predict "abs(z)" --alpha 1.3 --learner amp
    """
    from solvable.cli.parse import build
    from solvable.cli.show import show_json, show_table
    from solvable.cli.tables import prediction_json, prediction_rows
    from solvable.verbs.predict import predict as verb

    request = build(model, target, {"noise": noise, "prior": prior}, param or [], [learner], alpha)
    found = verb(request.model, request.learners[0], **request.axes)
    if json:
        show_json(prediction_json(request, found))
    else:
        show_table(*prediction_rows(request, found))


@app.command()
def curve(
    target: MaybeTarget = None,
    alpha: Annotated[str | None, typer.Option(help="The grid: start:stop:count or a list with commas.")] = None,
    learner: Annotated[
        list[str] | None, typer.Option(help=f"{LEARNER_HELP}. Repeatable; all of the model's unless told.")
    ] = None,
    d: Annotated[int | None, typer.Option("--d", help="Simulate too, at this dimension.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs at each point; 16 unless told.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes for the simulations.")] = 1,
    metric: Annotated[str | None, typer.Option(help="The metric to draw and to list.")] = None,
    out: Annotated[
        list[str] | None,
        typer.Option(help="To write: .png, .pdf, .svg a figure, .nc, .csv the data. Repeatable."),
    ] = None,
    noise: Noise = None,
    prior: Prior = None,
    model: ModelName = "multi-index",
    param: Params = None,
    json: Json = False,
) -> None:
    """Compute a learning curve, with simulations if a dimension is given.

    Example: solvable curve "abs(z)" --alpha 0.2:2:20 --learner amp --d 500 --out curve.png
    """
    from solvable.cli.parse import build
    from solvable.cli.show import show_json, show_table, show_text
    from solvable.cli.tables import check_outputs, curve_json, curve_rows, write_outputs
    from solvable.lab.grid.crews import pool_of
    from solvable.lab.grid.curves import learning_curve
    from solvable.lab.named import find_model, learners_of

    outputs = check_outputs(out or [])
    names = learner or [kind.name() for kind in learners_of(find_model(model), theory=d is None) if kind.by_default]
    request = build(model, target, {"noise": noise, "prior": prior}, param or [], names, alpha)
    with pool_of(workers) as pool:
        found = learning_curve(request.model, request.learners, d=d, seeds=seeds, executor=pool, **request.axes)
    shown = found.metric_or_default(metric)
    write_outputs(found, shown, outputs)
    if json:
        show_json(curve_json(found))
        return
    show_table(*curve_rows(found, shown))
    if d is not None:
        show_text(_judgement(found, shown))
    for path in outputs:
        show_text(f"written: {path}")


@app.command()
def optimize(
    target: MaybeTarget = None,
    alpha: Annotated[str | None, typer.Option(help="Samples, n = alpha d or as the model scales.")] = None,
    learner: Annotated[str, typer.Option(help=LEARNER_HELP)] = "erm",
    over: Annotated[
        list[str] | None,
        typer.Option(help="A number of the learner or the model; repeatable. The penalty unless told."),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="What is optimised; the generalization error unless told.")] = None,
    noise: Noise = None,
    prior: Prior = None,
    model: ModelName = "multi-index",
    param: Params = None,
    json: Json = False,
) -> None:
    """Find the best hyper-parameters by differentiating the theory, with the Bayes-optimal error beside them.

    Example: solvable optimize "z" --noise 0.1 --param contamination=0.3:0:5 --alpha 10 --learner erm:loss=tukey
    --over scale --over penalty
    """
    from solvable.cli.parse import build
    from solvable.cli.show import show_json, show_table
    from solvable.cli.tables import optimum_json, optimum_rows
    from solvable.verbs.optimize import optimize as verb

    request = build(model, target, {"noise": noise, "prior": prior}, param or [], [learner], alpha)
    names = over or ["penalty"]
    chosen = names[0] if len(names) == 1 else names
    found = verb(request.model, request.learners[0], over=chosen, metric=metric, **request.axes)
    if json:
        show_json(optimum_json(request, found))
    else:
        show_table(*optimum_rows(found))


@app.command()
def study(
    target: Target,
    noise: Noise = None,
    out: Annotated[str, typer.Option(help="The folder to write to.")] = "out",
    d: Annotated[int | None, typer.Option("--d", help="Dimension of the runs; 500 unless the target is slow.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs at each point; 16 or more unless the target is slow.")] = None,
    alpha: Annotated[str | None, typer.Option(help="Where to simulate: start:stop:count, or numbers, commas.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs and fewer points.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes for the simulations.")] = 2,
    json: Json = False,
) -> None:
    """Write everything about a target to a folder: figure, data, and a report.

    Example: solvable study "abs(z)" --noise 0.01 --out out
    """
    from solvable.cli.parse import number_or_grid
    from solvable.cli.show import show_json, show_text
    from solvable.lab.grid.crews import pool_of
    from solvable.lab.study import study as verb

    ratios = None if alpha is None else number_or_grid("--alpha", alpha)
    with pool_of(workers) as pool:
        found = verb(target, noise or 0.0, out, d, seeds, ratios, quick, pool, workers)
    show_json(found.to_dict()) if json else show_text(str(found))


for command in (forecast, find, sweep, status, gather, reproduce):
    app.command()(command)


def _judgement(found: Any, metric: str) -> str:
    try:
        return str(found.agreement(metric))
    except ValueError as nothing:
        return str(nothing)
