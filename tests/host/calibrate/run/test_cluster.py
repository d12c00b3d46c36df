# SPDX-License-Identifier: Apache-2.0
"""A dask.distributed cluster: the same bytes, also when a worker dies half-way."""

import os
import signal
import sys

import numpy as np
import pytest

from calib_nets import branchy, images
from neon8.calibrate import calib_file
from neon8.calibrate.run.run import Task, observe_data
from neon8.errors import SetupError
from onnx_nets import save
from settings_kits import settings_with

COUNT = 1500

# Dask warns of its own sockets and loops, which its threads close after the test.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    np.savez(folder / "x.npz", x=images(COUNT))
    return save(folder, branchy()), folder / "x.npz"


@pytest.fixture
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as made:
        yield made


def test_a_worker_killed_half_way_changes_nothing(data, cluster):
    want = calib_file.dumps(observe_data(*data).observation)
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    killed = []

    def progress(done, total):
        if not killed and done >= total // 3:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    outcome = observe_data(
        *data, settings_with(engine=address), Task(progress=progress)
    )
    assert killed
    assert calib_file.dumps(outcome.observation) == want
    arrays = observe_data(
        data[0], iter(images(COUNT)[:60]), settings_with(engine=address)
    )
    few = observe_data(*data, settings_with(limit=60))
    assert calib_file.dumps(arrays.observation) == calib_file.dumps(few.observation)


def test_no_scheduler_is_an_error(data, monkeypatch):
    from neon8.calibrate.run import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(SetupError, match="no dask scheduler answers there"):
        observe_data(*data, settings_with(engine="dask://127.0.0.1:9"))


def test_without_dask_it_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SetupError, match=r"pip install 'neon8\[dask\]'"):
        observe_data(*data, settings_with(engine="dask://127.0.0.1:9"))
