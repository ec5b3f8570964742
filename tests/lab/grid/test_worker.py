"""Worker processes: their threads, what they compile, and what they cannot load."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from toys import ridge as toy
from toys.learners import start

import solvable as sv
from solvable.lab.grid.crews import crew
from solvable.lab.grid.request import make_plan
from solvable.lab.grid.worker import NotLoaded, compute_packed
from solvable.lab.sweep.status import status

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs to see processes and threads")


@pytest.mark.slow
def test_workers_keep_to_few_threads(monkeypatch):
    """One for BLAS, and two for XLA, which gives other digits with one; whatever this process is told."""
    for name in ("NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    with crew(workers=2) as hands:
        found = hands.executor.submit(_threads).result()
    assert set(found["blas"]) == {1}
    assert found["xla"] == 2, found["names"]
    assert os.environ["NPROC"] == "7"


def _threads():
    """What a worker has after linear algebra in NumPy and in JAX."""
    import jax.numpy as jnp
    from threadpoolctl import threadpool_info

    x = np.random.default_rng(0).standard_normal((300, 300))
    np.linalg.eigvalsh(x @ x.T)
    y = jnp.asarray(x)
    jnp.linalg.eigh(y @ y.T)[0].block_until_ready()
    names = []
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/comm") as file:
            names.append(file.read().strip())
    blas = [info["num_threads"] for info in threadpool_info()]
    return {"blas": blas, "xla": sum("XLAEigen" in name for name in names), "names": names}


@pytest.mark.parametrize("target", ["abs(z)", pytest.param(sv.channels.Probit(0.3), marks=pytest.mark.slow)])
def test_what_one_point_compiled_or_tabulated_the_next_one_uses(target):
    """Also in a worker, where every task brings a copy of the model."""
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_: compiled.append(name) if "backend_compile" in name else None
    )
    jax.jit(lambda x: x + 0.123)(1.0)
    assert compiled, "the listener hears nothing"
    model = sv.MultiIndex(target)
    planned = make_plan(model, sv.AMP(), 60, 1, False, {"alpha": [0.7, 1.1, 1.5]}).layout().tasks
    tasks = [pickle.dumps([task]) for task in planned]
    compute_packed(tasks[0], 1.0)
    before = len(compiled)
    for task in tasks[1:3]:
        compute_packed(task, 1.0)
    assert len(compiled) == before, "a prediction at another alpha compiled again"
    compute_packed(tasks[3], 1.0)
    before = len(compiled)
    for task in tasks[4:]:
        compute_packed(task, 1.0)
    assert len(compiled) == before, "a run at another alpha compiled again"


MINE = """
import os, sys, numpy as np, jax.numpy as jnp
CONSTANT = jnp.ones((300, 300)) @ jnp.ones((300, 300)) + np.linalg.eigvalsh(np.eye(300))  # starts threads on import
from toys import ridge as toy
import solvable as sv
class Mine(sv.Learner):
    penalty: float = 1.0
@sv.theory(toy.Regression, Mine, vectorized=False)
def _(model, learner, alpha):
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return sv.Prediction({"overlap": alpha, "threads": sum("XLAEigen" in name for name in names)})
"""
CALL = "sv.sweep(toy.Regression(), Mine(), store=sys.argv[1], alpha=[0.5, 1.0, 2.0], workers=2, progress=False)"


def test_points_of_unknown_classes_are_explained():
    """As pickled by a prompt: a class of a module that the worker has, and which is not there."""
    with pytest.raises(NotLoaded, match="cannot load the points .AttributeError: .* 'Mine'.*must be in a module"):
        compute_packed(b"ctoys.ridge\nMine\n.", 1.0)


@pytest.mark.slow
def test_a_learner_of_a_prompt_or_notebook_is_explained(tmp_path):
    process = start(f"{MINE}\n{CALL}", str(tmp_path))
    _, errors = process.communicate(timeout=1800)
    assert process.returncode == 1
    told = errors.strip().splitlines()[-1]
    assert "NotLoaded: a worker process cannot load the points (AttributeError: Can't get attribute 'Mine'" in told
    assert "must be in a module" in told
    assert status(tmp_path).failed == 0 and status(tmp_path).left == 3


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.slow
def test_a_script_with_and_without_a_guard(tmp_path, guard):
    call = f"if __name__ == '__main__':\n    {CALL}\n    print('done')" if guard else f"{CALL}\nprint('done')"
    (tmp_path / "script.py").write_text(f"{MINE}\n{call}")
    process = start("", str(tmp_path / "store"), script=tmp_path / "script.py", extra={"NPROC": "7"})
    out, errors = process.communicate(timeout=1800)
    found = status(tmp_path / "store")
    if guard:
        assert out == "done\n" and found.done == 3, errors
        assert (sv.open(tmp_path / "store")["threads"] == 2).all()
        return
    assert process.returncode == 1 and out == ""
    told = errors.strip().splitlines()[-1]
    assert "WorkersLost: the worker processes end as soon as they start" in told
    assert '`if __name__ == "__main__":`' in told
    assert (found.done, found.failed, found.left) == (0, 0, 3)


def test_what_cannot_be_pickled_is_explained(tmp_path, monkeypatch):
    """Before anything is sent: no process need start."""
    monkeypatch.setattr("solvable.lab.grid.crews.process_pool", ThreadPoolExecutor)

    class Local(toy.Ridge):
        """A learner whose class no other process can find."""

    with pytest.raises(ValueError, match=r"cannot be sent to worker processes .*Local.* Use workers=1"):
        sv.sweep(toy.Regression(), Local(0.5), store=tmp_path, alpha=[0.5, 1.0], workers=2)
    assert status(tmp_path).failed == 0
    sv.sweep(toy.Regression(), Local(0.5), store=tmp_path, alpha=[0.5, 1.0])
    assert status(tmp_path).left == 0
