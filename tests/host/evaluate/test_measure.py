# SPDX-License-Identifier: Apache-2.0
"""One way to measure a table: as the library runs it, in order, by name."""

from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.errors import CompileError
from neon8.evaluate import measure
from neon8.evaluate.measure import Bench, sqnr_of

COUNT = 5


@pytest.fixture(scope="module")
def made(tiny):
    graph = neon8.load_graph(tiny.onnx)
    samples = [{"image": each[np.newaxis]} for each in np.load(tiny.data)["x"][:COUNT]]
    reference = Reference(tiny.onnx)
    wanted = [reference.run(each) for each in samples]
    return graph, neon8.load_table(tiny.table), samples, wanted


def bench(made, **more):
    graph, _, samples, wanted = made
    return Bench(graph=graph, samples=samples, wanted=wanted, **more)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_figures_are_of_each_sample_in_order(made, monkeypatch, threads):
    graph, table, samples, wanted = made
    monkeypatch.setattr(measure, "usable", lambda: threads)
    ticks = []
    found = bench(made, tick=lambda: ticks.append(1)).measure(table)
    assert (len(ticks), found.squares.shape) == (COUNT, (COUNT, 1, 2))
    model = neon8.Model.from_bytes(neon8.compile_model(graph, table))
    with model, model.session() as session:
        for sample, want, squares in zip(samples, wanted, found.squares, strict=True):
            real = want["scores"].astype(np.float64)
            error = real - session.run(sample)["scores"]
            signal = np.square(real - real.mean()).sum()
            noise = np.square(error - error.mean()).sum()
            assert squares[0] == pytest.approx([signal, noise])
        assert found.cost == sum(step.cost for step in model.steps)
    assert found.sqnr_db == sqnr_of(found.squares.sum(axis=0))
    share = found.squares[:, 0, 1] / found.squares[:, 0, 0].sum()
    assert found.shares == pytest.approx(tuple(share))


def test_layers_in_float(made):
    graph, table, *_ = made
    plain = bench(made).measure(table)
    exact = bench(made).measure(table, keep_float={node.name for node in graph.nodes})
    assert exact.sqnr_db > plain.sqnr_db + 20
    assert exact.cost > plain.cost


def test_a_table_that_does_not_fit(made):
    with pytest.raises(CompileError):
        bench(made).measure(replace(made[1], tensors={}))
