# SPDX-License-Identifier: Apache-2.0
"""Data for the tests of the default recipe, and what is measured of its tables."""

import numpy as np

import graph_executor
import neon8
from neon8.compile.lower import lower
from neon8.compile.oracle import run

CHANNELS = 8
SHAPE = (1, 3, 9, 9)
SAMPLES, UNSEEN = np.split(
    np.random.default_rng(1).normal(0.3, 1, (40, *SHAPE)).astype(np.float32), [28]
)


def sqnr(path, table):
    """In dB, of samples that were not observed, by the integers of the compiler."""
    return sqnr_of(path, table, UNSEEN)


def sqnr_of(path, table, samples):
    """In dB, of these samples."""
    graph = neon8.load_graph(path)
    program = lower(graph, table)
    noise = signal = 0.0
    for x in samples:
        want = graph_executor.run(graph, {"x": x})["y"]
        signal += float(np.square(want).sum())
        noise += float(np.square(run(program, {"x": x})["y"] - want).sum())
    return 10 * np.log10(signal / noise)


def table_of_any_order_and_split(path, samples):
    """The table of samples: the same bytes, whichever way they came."""
    parts = [neon8.observe_model(path, samples[piece::3]) for piece in (2, 0, 1)]
    tables = [
        neon8.calibrate_model(path, samples),
        neon8.calibrate_model(path, samples[::-1]),
        neon8.solve_observation(neon8.merge_observations(*parts), path),
    ]
    texts = set()
    for table in tables:
        neon8.save_table(table, path.with_suffix(".json"))
        assert neon8.load_table(path.with_suffix(".json")) == table
        texts.add(path.with_suffix(".json").read_bytes())
    assert len(texts) == 1
    return tables[0]
