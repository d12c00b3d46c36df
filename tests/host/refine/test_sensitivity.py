# SPDX-License-Identifier: Apache-2.0
"""What each tensor costs, by simulation: the figures rank as the int8 network does."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hard_nets import HARD, images
from neon8.evaluate.measure import sqnr_of
from neon8.evaluate.network import open_network
from neon8.refine.sensitivity import Meter
from neon8.rewrite.rounding import packed


def meter_of(hard, count=8):
    path, _, table = hard
    inputs = [{"x": image[np.newaxis]} for image in images(count)]
    return Meter(open_network(path), table, inputs), inputs


def test_knows_what_is_rounded(hard):
    meter, _ = meter_of(hard)
    assert meter.groups == {name: (name,) for name in ("x", "t1", "t3", "t5")}
    assert set(meter.plain) == {"x", "t1", "t3", "t5"}


def test_alone_and_without(hard):
    meter, _ = meter_of(hard)
    alone = meter.alone()
    assert min(alone, key=alone.__getitem__) == HARD
    assert alone[HARD] < 12
    assert min(v for n, v in alone.items() if n != HARD) > 30
    without = [{k: v for k, v in meter.plain.items() if k != n} for n in meter.groups]
    whole, *rest = meter.sqnr([meter.plain, *without])
    assert whole < alone[HARD] + 0.5
    gains = dict(zip(meter.groups, (each - whole for each in rest), strict=True))
    assert gains[HARD] > 15
    assert all(abs(gain) < 1 for name, gain in gains.items() if name != HARD)


def test_says_how_far_it_is(hard):
    meter, _ = meter_of(hard, count=2)
    seen = []
    meter.alone(watch=lambda done, total: seen.append((done, total)))
    assert sorted(seen) == [(done, 8) for done in range(1, 9)]


@pytest.mark.parametrize(
    ("squares", "db"),
    [
        ([[100.0, 1.0]], 20.0),
        ([[100.0, 0.0]], math.inf),
        ([[0.0, 0.0]], math.inf),
        ([[0.0, 1.0]], -math.inf),
        ([[100.0, 1.0], [1e6, 1e4]], 20.0),  # each output counts the same
        ([[100.0, 1.0], [1.0, 0.0]], 10 * math.log10(200)),
    ],
)
def test_sqnr(squares, db):
    assert sqnr_of(np.array(squares)) == pytest.approx(db)


def test_weights_that_were_chosen(hard):
    """Levels of the table are those that are simulated."""
    path, graph, table = hard
    (layer,) = (n for n in graph.nodes if n.name == "n2")
    entry = table.layers["n2"]
    bits = packed(np.ones(layer.weight.shape, bool))
    layers = {**table.layers, "n2": replace(entry, rounding="chosen", levels=bits)}
    inputs = [{"x": image[np.newaxis]} for image in images(8)]
    plain, other = (
        Meter(open_network(path), each, inputs).sqnr([{}])[0]
        for each in (table, replace(table, layers=layers))
    )
    assert other < plain - 2
