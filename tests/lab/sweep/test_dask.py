"""A sweep on a Dask cluster of two processes, one of which is killed on the way."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy
from toys.learners import results, wait_until

import solvable as sv
from solvable.lab.sweep.status import status

LEARNERS = [sweep_toys.Slow(0.05), toy.Ridge()]
ARGUMENTS = {"alpha": np.linspace(0.2, 3, 12), "d": 10, "seeds": 2}


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=None,
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=1800)
        yield cluster, client


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(cluster, tmp_path):
    cluster, client = cluster
    killed = []

    def kill_one():
        wait_until(lambda: len(list((tmp_path / "store").glob("points/*/*.json"))) > 3, 1800)
        nanny = next(iter(cluster.workers.values()))
        nanny.auto_restart = False  # a machine that is gone stays gone
        killed.append(nanny.pid)
        os.kill(nanny.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    sv.sweep(toy.Regression(), LEARNERS, store=tmp_path / "store", scheduler=cluster.scheduler_address, **ARGUMENTS)
    killer.join()
    found = status(tmp_path / "store")
    assert (found.points, found.done, found.failed) == (72, 72, 0) and len(killed) == 1
    sv.sweep(toy.Regression(), LEARNERS, store=tmp_path / "alone", **ARGUMENTS)
    assert results(tmp_path / "store") == results(tmp_path / "alone")

    # The executor of a client, points that raise, and a class that no worker can import, which Dask sends along
    raising = sweep_toys.Raising(1.5)
    curve = sv.sweep(
        type("Sent", (toy.Regression,), {"__module__": "__main__", "__annotations__": {}})(),
        raising,
        store=tmp_path / "raising",
        alpha=[1.0, 2.0],
        executor=client.get_executor(pure=False),
    )
    assert curve.dataset["status"].values.tolist() == [[0, -3]]


def test_a_scheduler_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("distributed.Client.__init__", _refuse)
    with pytest.raises(ValueError, match=r"scheduler = 'tcp://127.0.0.1:1' is not allowed: .* running Dask scheduler"):
        sv.sweep(toy.Regression(), toy.Ridge(), store=tmp_path, scheduler="tcp://127.0.0.1:1", alpha=1.0)


def _refuse(self, address, timeout):
    raise OSError(f"Timed out trying to connect to {address}")
