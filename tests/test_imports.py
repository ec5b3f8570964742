"""The house keeps its order: nothing imports upwards, no family imports another, and importing costs nothing."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import solvable as sv

SOURCE = Path(sv.__file__).parent
HEAVY = ("jax", "equinox", "xarray", "matplotlib", "scipy", "pandas")
LAYERS = {
    "solvable.core": 0,
    "solvable.numerics": 1,
    "solvable.targets": 2,
    "solvable.priors": 3,
    "solvable.channels": 3,
    "solvable.spectra": 3,
    "solvable.engine": 4,
    "solvable.models": 5,
    "solvable.verbs": 6,
    "solvable.estimators": 7,
    "solvable.lab": 8,
    "solvable.cli": 9,
}
PUBLIC = [
    "MultiIndex",
    "BayesOptimal",
    "AMP",
    "Spectral",
    "Target",
    "diagnose",
    "predict",
    "simulate",
    "thresholds",
    "learning_curve",
    "phase_diagram",
    "optimize",
    "reproduce",
    "study",
    "Curve",
    "Model",
    "Learner",
    "Prediction",
    "Outcome",
    "Status",
    "theory",
    "simulation",
    "thresholds_of",
    "NotSolvable",
    "NotSimulable",
    "TargetError",
    "channels",
    "priors",
]


def home(module: str) -> str | None:
    """The entry of LAYERS a module belongs to: the longest one it starts with."""
    parts = module.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in LAYERS), None)


@functools.cache
def imports(path: Path, module: str) -> set[str]:
    """Every module of the package that a file imports, anywhere in it, relative imports resolved."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] == "solvable"}


def modules() -> list[tuple[Path, str]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found.append((path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)))
    return found


def trespasses(path: Path, module: str) -> list[str]:
    mine = home(module)
    assert mine is not None, f"{module} has no layer"
    found = []
    for imported in imports(path, module):
        theirs = home(imported)
        if theirs is None:
            if imported == "solvable":
                continue  # `from solvable import x` also lists solvable.x, which is judged by itself
            found.append(f"{module} imports {imported}, which has no layer")
        elif LAYERS[theirs] > LAYERS[mine] or (LAYERS[theirs] == LAYERS[mine] and theirs != mine):
            found.append(f"{module} imports {imported}")
    return found


ALL = modules()
INSIDE = [pair for pair in ALL if pair[1] not in ("solvable", "solvable.__main__")]


@pytest.mark.parametrize(("path", "module"), INSIDE, ids=[module for _, module in INSIDE])
def test_nothing_imports_upwards(path, module):
    assert trespasses(path, module) == []


def test_the_check_can_fail(tmp_path):
    (tmp_path / "bad.py").write_text("def f():\n    from solvable.lab import grid\n    from ..models import index\n")
    assert (
        trespasses(tmp_path / "bad.py", "solvable.engine.bad")
        and trespasses(tmp_path / "bad.py", "solvable.lab.x") == []
    )
    (tmp_path / "worse.py").write_text("from solvable import learning_curve\n")
    assert trespasses(tmp_path / "worse.py", "solvable.engine.worse")


def test_no_family_imports_another():
    for path, module in ALL:
        parts = module.split(".")
        if parts[:2] == ["solvable", "models"] and len(parts) > 2:
            for imported in imports(path, module):
                other = imported.split(".")
                if other[:2] == ["solvable", "models"] and len(other) > 2:
                    assert other[2] == parts[2], f"{module} imports {imported}"


def fresh(code: str) -> str:
    """Run code in a new interpreter and return what it printed."""
    path = ":".join([str(SOURCE.parent), *(entry for entry in sys.path if entry)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = f"print([name for name in {HEAVY!r} if name in sys.modules])"


def test_importing_is_light():
    out = fresh(
        f"import sys; before = set(sys.modules); import solvable\n{LOADED}; print(len({{*sys.modules}} - before))"
    )
    loaded, count = out.splitlines()
    assert loaded == "[]" and int(count) < 60


def test_help_is_light():
    code = f"""
import sys
from solvable.cli.app import run
run(["--help"])
{LOADED}; print("numpy" in sys.modules); print(len(sys.modules))
"""
    loaded, numpy_loaded, count = fresh(code).splitlines()[-3:]
    assert loaded == "[]" and numpy_loaded == "False" and int(count) < 700


def test_public_names():
    assert set(PUBLIC) <= set(dir(sv)) and set(PUBLIC) <= set(sv.__all__)
    assert "__version__" in dir(sv) and isinstance(sv.__version__, str)
    with pytest.raises(AttributeError, match="module 'solvable' has no attribute 'nothing'"):
        sv.nothing  # noqa: B018


def test_studies_and_figures_are_made_from_python_too():
    study, reproduce = (inspect.signature(getattr(sv, name)) for name in ("study", "reproduce"))
    assert list(study.parameters)[:4] == ["target", "noise", "out", "d"] and study.return_annotation == "Study"
    assert list(reproduce.parameters)[:3] == ["entry", "out", "quick"] and reproduce.return_annotation == "Finding"
    with pytest.raises(ValueError, match="entry = 'nothing' is not allowed: entry must be one of: aim-hardmax"):
        sv.reproduce("nothing")


@pytest.mark.parametrize("name", sv.__all__)
def test_every_public_name_loads(name):
    assert getattr(sv, name) is not None


def test_type_checkers_see_the_same_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(sv.__all__)


@pytest.mark.parametrize("folder", ["benchmarks", "examples"])
def test_scripts_import_names_that_exist(folder):
    scripts = sorted((SOURCE.parents[1] / folder).glob("*.py"))
    assert scripts
    for script in scripts:
        for node in ast.walk(ast.parse(script.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("solvable"):
                found = importlib.import_module(node.module or "")
                missing = [name.name for name in node.names if not hasattr(found, name.name)]
                assert not missing, f"{script.name}: {node.module} has no {missing}"
