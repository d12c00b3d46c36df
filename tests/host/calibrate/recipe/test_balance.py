# SPDX-License-Identifier: Apache-2.0
"""Rounding errors cancel over taps where what these read is alike, and only there."""

from dataclasses import replace

import numpy as np
import pytest

import graph_executor
import neon8
from neon8.compile.lower import lower
from neon8.compile.oracle import run
from onnx_nets import net, node, save

F = np.float32
SHAPE = (1, 8, 12, 12)
RNG = np.random.default_rng(7)
NOISE = RNG.normal(size=(24, *SHAPE)).astype(F)
SMOOTH = (NOISE[..., :1, :1] + 0.1 * NOISE).astype(F)


def made(tmp_path, operator="Conv", kernel=3, **attributes):
    weight = RNG.normal(size=(8, 8, kernel, kernel)).astype(F)
    nodes = [node(operator, "x w", "y", "c", pads=[kernel // 2] * 4, **attributes)]
    return save(tmp_path, net(nodes, {"x": SHAPE}, "y", {"w": weight}))


@pytest.mark.parametrize(
    ("images", "options", "rounding"),
    [
        (SMOOTH, {}, "balanced"),
        (NOISE, {}, "nearest"),
        (SMOOTH, {"kernel": 1}, "nearest"),
        (SMOOTH, {"operator": "ConvTranspose", "strides": [2, 2]}, "nearest"),
    ],
    ids=["smooth", "noise", "one tap", "transposed"],
)
def test_where_it_pays(tmp_path, images, options, rounding):
    path = made(tmp_path, **options)
    table = neon8.calibrate_model(path, list(images))
    assert table.layers["c"].rounding == rounding
    plain = neon8.calibrate_model(path, list(images), plain=True)
    assert plain.layers["c"].rounding == "nearest"


def test_the_output_is_nearer(tmp_path):
    """By the integers of the compiler, by far more than half of the noise."""
    path = made(tmp_path)
    table = neon8.calibrate_model(path, list(SMOOTH), precision={"x": "int16"})
    layer = replace(table.layers["c"], rounding="nearest")
    graph = neon8.load_graph(path)
    noise = []
    for each in (table, replace(table, layers={"c": layer})):
        program = lower(graph, each)
        errors = [
            run(program, {"x": x})["y"] - graph_executor.run(graph, {"x": x})["y"]
            for x in SMOOTH
        ]
        noise.append(np.concatenate(errors)[..., 2:-2, 2:-2].var(axis=(0, 2, 3)).sum())
    assert noise[0] < noise[1] / 4
