"""Small mistakes put into a copy of the package one at a time, each of which the tests named beside it must notice.

`make mutants` runs them all, in some minutes; `python tests/mutants.py NAME ...` those with one of the names in theirs.
It ends with 1 if a mistake goes unnoticed, if its text is no longer there exactly once, or if a test fails without any.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A mistake: `text` in `file` of the package becomes `instead`; one of the `tests` with `words` in it must fail."""

    name: str
    file: str
    text: str
    instead: str
    tests: str
    words: str


MUTANTS = (
    Mutant(
        "a fixed point counts as solved whatever its residual",
        "engine/solvers/curve.py",
        "residual < 1e-8,",
        "residual < 1e8,",
        "tests/engine/solvers/test_curve.py",
        "off_the_curve",
    ),
    Mutant(
        "the overlap's uncertainty is a hundred times too small",
        "engine/solvers/curve.py",
        "np.where(inner, slope * (self.table",
        "np.where(inner, 0.01 * slope * (self.table",
        "tests/engine/solvers/test_curve.py",
        "uncertainty_of_the_overlap",
    ),
    Mutant(
        "lazy learning without samples has no uncertainty",
        "models/matrix/lazy.py",
        'jnp.where(sampled, share, unseen),\n        "training_loss": fit_blur',
        'jnp.where(sampled, share, 0.0),\n        "training_loss": fit_blur',
        "tests/models/matrix/test_lazy.py",
        "without_samples",
    ),
    Mutant(
        "lazy learning without samples has another training error",
        "models/matrix/lazy.py",
        "(penalty / (1 + penalty)) ** 2  #",
        "(penalty / (1 + penalty))  #",
        "tests/models/matrix/test_lazy.py",
        "without_samples",
    ),
    Mutant(
        "a repaired file is not put back",
        "lab/sweep/store.py",
        "os.replace(aside, path)",
        "pass",
        "tests/lab/sweep/test_store.py",
        "put_back",
    ),
    Mutant(
        "a stale error stays beside the result",
        "lab/sweep/store.py",
        "self._path(id, failed=True).unlink(missing_ok=True)",
        "pass",
        "tests/lab/sweep/test_store.py",
        "earlier_error",
    ),
    Mutant(
        "metrics out of range are let through",
        "core/ranges.py",
        "outside |= ~_inside(found, name, ranges)",
        "pass",
        "tests/core/test_ranges.py",
        "out_of",
    ),
    Mutant(
        "metrics that are not finite are let through",
        "core/ranges.py",
        "lost = ~all_finite(metrics, count)",
        "lost = np.zeros(count, bool)",
        "tests/verbs/test_predict.py",
        "not_finite",
    ),
    Mutant(
        "an uncertainty as large as the value is precise",
        "core/ranges.py",
        "_SHARE = 0.1",
        "_SHARE = 10.0",
        "tests/core/test_ranges.py",
        "imprecise",
    ),
    Mutant(
        "the memory of message passing has the wrong sign",
        "engine/amp.py",
        "Omega -= past.onsager(W)",
        "Omega += past.onsager(W)",
        "tests/engine/test_amp.py",
        "ridge_posterior_mean or step_by_step",
    ),
    Mutant(
        "any character may stand in a target",
        "targets/parser.py",
        "if not (_TOKENS_ALLOWED if self.tokens else _ALLOWED).match(character):",
        "if False:",
        "tests/targets/test_parser.py",
        "refusals",
    ),
    Mutant(
        "data and algorithm share one stream of random numbers",
        "verbs/simulate.py",
        "spawn_key=(stream,)",
        "spawn_key=(0,)",
        "tests/verbs/test_simulate.py",
        "draw_different",
    ),
    Mutant(
        "a theory that runs reject agrees with them",
        "lab/verdict.py",
        "return Judgement(DIFFERS)",
        "return Judgement(AGREES)",
        "tests/lab/test_verdict.py",
        "ten_percent",
    ),
    Mutant(
        "the digest of a sealed file is not compared",
        "lab/sweep/sealed.py",
        "if hashlib.sha256(body).hexdigest().encode() != first[len(_MARK) :]:",
        "if False:",
        "tests/lab/sweep/test_store.py",
        "flipped_bit",
    ),
    Mutant(
        "the least free entropy is taken for the largest",
        "engine/solvers/curve.py",
        "np.lexsort((value, row))",
        "np.lexsort((-value, row))",
        "tests/models/index/test_theory.py",
        "hard_phase",
    ),
    Mutant(
        "a loop that did not settle counts as converged",
        "numerics/fixed_point.py",
        "jnp.where(residual <= 1, Ending.CONVERGED",
        "jnp.where(residual <= 1e8, Ending.CONVERGED",
        "tests/numerics/test_fixed_point.py",
        "little_above",
    ),
    Mutant(
        "the mean of the eigenvalues is forgotten where samples are few",
        "models/matrix/nuclear/few_samples.py",
        " - 2 * mean * K",
        "",
        "tests/models/matrix/nuclear/test_few_samples.py",
        "continues_the_equations",
    ),
    Mutant(
        "an axis may be negative",
        "core/axis.py",
        "np.isfinite(array) & low & high",
        "np.isfinite(array) & high",
        "tests/verbs/test_predict.py",
        "bad_axes",
    ),
    Mutant(
        "a tensor has the precision of one of the next order",
        "engine/outputs/explicit.py",
        "return -(self.order - 1) * np.logaddexp",
        "return -self.order * np.logaddexp",
        "tests/models/lowrank/test_spiked.py",
        "rademacher_spikes_in_a_matrix",
    ),
    Mutant(
        "training labels of random features shrink once",
        "models/features/two_layer/ridge.py",
        "test * shrunk**2),",
        "test * shrunk),",
        "tests/models/features/test_random_features.py",
        "equations_written_independently",
    ),
    Mutant(
        "an attention matrix shows one number more",
        "models/attention/indexed/model.py",
        "return T * (T + 1) // 2 - 1 if self.tied",
        "return T * (T + 1) // 2 if self.tied",
        "tests/models/attention/indexed/test_theory.py",
        "as_good_as_labels_of_a_quadratic",
    ),
    Mutant(
        "the grid of a batch ends where labels still weigh",
        "engine/dynamics/samples.py",
        "normal_trapezoid(_STEP / fineness, _TAIL)",
        "normal_trapezoid(_STEP / fineness)",
        "tests/models/index/dynamics/test_batch.py",
        "on_a_grid_covers",
    ),
)


def mutated(mutant: Mutant, tree: Path = TREE) -> str:
    """The file with the mistake; `ValueError` unless its text is there exactly once."""
    source = (tree / "src" / "solvable" / mutant.file).read_text()
    if source.count(mutant.text) != 1:
        raise ValueError(f"{mutant.file} has {mutant.text!r} {source.count(mutant.text)} times, not once")
    return source.replace(mutant.text, mutant.instead)


def fails(tree: Path, mutants: Sequence[Mutant]) -> bool:
    """Whether a test that these mutants name fails in a tree; anything but passing or failing is an error."""
    paths = os.pathsep.join([str(tree / "src"), str(tree / "tests")])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    # Compiled programs are shared by all that run here.
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(tree / "compiled"))
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
    files, words = (sorted({getattr(mutant, name) for mutant in mutants}) for name in ("tests", "words"))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files, "-k", " or ".join(words)]
    ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} did not run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    if ended.returncode == 1 and len(mutants) > 1:
        print(ended.stdout[-2000:])
    return ended.returncode == 1


def main(*names: str) -> int:
    """Try the mutants; 1 if anything is not as it should be."""
    chosen = [mutant for mutant in MUTANTS if not names or any(name in mutant.name for name in names)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(TREE, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "out", "site"))
        if fails(copy, chosen):
            print("the tests fail without any mistake")
            return 1
        survivors = 0
        for mutant in chosen:
            path = copy / "src" / "solvable" / mutant.file
            text = path.read_text()
            try:
                path.write_text(mutated(mutant, copy))
                killed, why = fails(copy, [mutant]), ""
            except ValueError as error:
                killed, why = False, f": {error}"
            path.write_text(text)
            survivors += not killed
            print(f"{'killed  ' if killed else 'SURVIVED'}  {mutant.name}{why}", flush=True)
    print(f"{len(chosen)} mutants, {survivors} survived")
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
