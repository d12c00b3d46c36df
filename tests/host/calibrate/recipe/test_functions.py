# SPDX-License-Identifier: Apache-2.0
"""Channels of all sizes around functions and products have steps of their own."""

import numpy as np
import pytest

import neon8
from neon8.compile.lower import lower
from onnx_nets import net, node, save
from recipe_kits import CHANNELS, SAMPLES, SHAPE, sqnr, table_of_any_order_and_split
from small_graphs import kinds

F = np.float32
DRIFT = np.exp2([4, -4, 1, -3, 5, 0, -5, -2]).astype(F)
SILU = [node("Sigmoid", "s1", "g1", "gate"), node("Mul", "s1 g1", "t1", "product")]
HARD_SWISH = [
    node("HardSigmoid", "s1", "g1", "gate", alpha=1 / 6, beta=0.5),
    node("Mul", "s1 g1", "t1", "product"),
]
SQUEEZE = [
    node("GlobalAveragePool", "s1", "p1", "pool"),
    node("Conv", "p1 w4", "q1", "squeeze"),
    node("Sigmoid", "q1", "g1", "gate"),
    node("Mul", "s1 g1", "t1", "product"),
]


def network(between, drift=DRIFT):
    """x -> conv -> between, from s1 to t1 -> depthwise 5x5 -> relu -> conv -> y.

    drift: (CHANNELS,), the sizes of the channels of s1, which are undone after t1.
    """
    rng = np.random.default_rng(4)
    weights = {
        "w1": rng.normal(0, 0.4, (CHANNELS, 3, 3, 3)) * drift[:, None, None, None],
        "b1": rng.normal(0, 0.2, CHANNELS) * drift,
        "w2": rng.normal(0, 0.3, (CHANNELS, 1, 5, 5)) / drift[:, None, None, None],
        "b2": rng.normal(0, 0.3, CHANNELS),
        "w3": rng.normal(0, 0.3, (5, CHANNELS, 1, 1)),
        "w4": rng.normal(0, 0.3, (CHANNELS, CHANNELS, 1, 1))
        / drift[None, :, None, None],
    }
    nodes = [
        node("Conv", "x w1 b1", "s1", "c1", pads=[1] * 4),
        *between,
        node("Conv", "t1 w2 b2", "s2", "c2", group=CHANNELS),
        node("Relu", "s2", "t2"),
        node("Conv", "t2 w3", "y", "c3"),
    ]
    return net(nodes, {"x": SHAPE}, "y", weights)


@pytest.mark.parametrize("between", [SILU, HARD_SWISH, SQUEEZE])
def test_channels_of_all_sizes(between, tmp_path):
    """Without factors around the function or the product most is lost."""
    path = save(tmp_path, network(between))
    table = neon8.calibrate_model(path, SAMPLES)
    lost = sqnr(path, neon8.calibrate_model(path, SAMPLES, plain=True))
    assert sqnr(path, table) > max(25, lost + 6)
    read, made = (np.array(table.tensors[name].factors) for name in ("s1", "t1"))
    assert read.size == made.size == CHANNELS
    assert (read != made).any() or between is SQUEEZE


@pytest.mark.parametrize("names", [["s1"], ["t1"], ["s1", "t1"]], ids="+".join)
def test_around_a_function_of_int16(names, tmp_path):
    """No copy of 8 bits is made; what only functions read has no factors."""
    path = save(
        tmp_path, network(SILU, np.exp2([3, -2, 1, -2, 2, 0, -3, -1]).astype(F))
    )
    wanted = dict.fromkeys(names, "int16")
    usual = neon8.calibrate_model(path, SAMPLES)
    table = neon8.calibrate_model(
        path, SAMPLES, precision=wanted, output=tmp_path / "table"
    )
    assert neon8.load_table(tmp_path / "table") == table
    assert sqnr(path, table) > sqnr(path, usual) + {1: -0.2, 2: 0.5}[len(names)]
    entry = table.tensors["s1"]
    kept = "s1" not in names
    assert bool(entry.factors) == ("equalized" in entry.reasons) == kept
    lowered = lower(neon8.load_graph(path), table)
    assert "Requantize" not in kinds(lowered)
    assert "Interpolate" in kinds(lowered)


def test_thorough_runs_constants_too(tmp_path):
    """A function of int16 whose output alone has factors is multiplied by 1."""
    path = save(tmp_path, network([node("Tanh", "s1", "t1")]))
    table = neon8.calibrate_model(
        path, SAMPLES, precision={"s1": "int16"}, thorough=True
    )
    lowered = lower(neon8.load_graph(path), table)
    last = max(i for i, kind in enumerate(kinds(lowered)) if kind == "Conv2d")
    assert "Constant" in kinds(lowered)[:last]
    assert table.reasons[0].startswith(("thorough:", "default"))


def test_neighbours_share_tables(tmp_path):
    """Factors near a function are powers of the root of 2."""
    table = neon8.calibrate_model(save(tmp_path, network(SILU)), SAMPLES)
    for name in ("s1", "t1"):
        powers = 2 * np.log2(table.tensors[name].factors)
        assert powers == pytest.approx(np.rint(powers), abs=1e-5)
        assert max(table.tensors[name].factors) <= 1


def test_the_flat_end_of_a_function_needs_no_range(tmp_path):
    """SiLU makes next to nothing of -8 and less."""
    path = save(tmp_path, network(SILU, np.full(CHANNELS, 40.0, F)))
    table = neon8.calibrate_model(path, SAMPLES)
    seen = neon8.calibrate_model(path, SAMPLES, plain=True).tensors["s1"].min
    entry = table.tensors["s1"]
    assert seen < -20
    assert entry.reasons[0] == "equalized"
    assert entry.threshold[0] * max(entry.factors) > -14


def test_the_same_bytes_in_any_order_and_split(tmp_path):
    path = save(tmp_path, network(SQUEEZE))
    table = table_of_any_order_and_split(path, SAMPLES)
    assert table.tensors["t1"].factors


def test_small_gains_before_a_dense_layer_count_too(tmp_path):
    """Each of two tensors becomes less than 1.5 times as quiet, both 1.6 dB."""
    rng = np.random.default_rng(4)
    drift = DRIFT**-0.1
    weights = {
        "w1": rng.normal(0, 0.4, (CHANNELS, 3, 3, 3)) * drift[:, None, None, None],
        "b1": rng.normal(0, 0.2, CHANNELS) * drift,
        "w2": rng.normal(0, 0.3, (5, CHANNELS, 3, 3)) / drift[None, :, None, None],
    }
    nodes = [
        node("Conv", "x w1 b1", "s1", "c1", pads=[1] * 4),
        *SILU,
        node("Conv", "t1 w2", "y", "c2"),
    ]
    path = save(tmp_path, net(nodes, {"x": SHAPE}, "y", weights))
    table = neon8.calibrate_model(path, SAMPLES)
    assert {n for n, each in table.tensors.items() if each.factors} == {"s1", "t1"}
    assert sqnr(path, table) > 34.3
