# SPDX-License-Identifier: Apache-2.0
"""Channels of all sizes between convolutions cost nothing once they are equalized."""

import numpy as np
import pytest

import neon8
from neon8.refine.diagnosis import diagnose_model
from onnx_nets import net, node, save
from recipe_kits import CHANNELS, SAMPLES, SHAPE, sqnr

F = np.float32
DRIFT = np.exp2([0, -8, -3, -6, 0, -1, -7, -4]).astype(F)
OPERATORS = {
    "Relu": {},
    "LeakyRelu": {"alpha": 0.1},
    "Clip": {},
    "PRelu": {},
    "": {},
}


def network(*, operator="Relu", depthwise=True, pool=False, drift=None, shape=SHAPE):
    """x -> conv -> activation -> any max pool -> conv -> relu -> conv -> y.

    drift: (CHANNELS,), by which the channels between the first two are multiplied.
    """
    rng = np.random.default_rng(2)
    weights = {
        "w1": rng.normal(0, 0.3, (CHANNELS, 3, 3, 3)),
        "b1": rng.normal(0, 0.3, CHANNELS),
        "w2": rng.normal(0, 0.3, (CHANNELS, 1 if depthwise else CHANNELS, 3, 3)),
        "b2": rng.normal(0, 0.3, CHANNELS),
        "w3": rng.normal(0, 0.3, (5, CHANNELS, 1, 1)),
        "slopes": rng.uniform(0.05, 0.5, (CHANNELS, 1, 1)),
        "zero": np.array(0.0),
        "six": np.array(6.0),
    }
    if drift is not None:
        weights["w1"] = weights["w1"] * drift[:, None, None, None]
        weights["b1"] = weights["b1"] * drift
        rows = drift[:, None, None, None] if depthwise else drift[None, :, None, None]
        weights["w2"] = weights["w2"] / rows
    more = {"Clip": "zero six", "PRelu": "slopes"}.get(operator, "")
    nodes = [node("Conv", "x w1 b1", "s1" if operator else "t1", "c1", pads=[1] * 4)]
    if operator:
        nodes.append(node(operator, f"s1 {more}", "t1", "a1", **OPERATORS[operator]))
    if pool:
        nodes.append(node("MaxPool", "t1", "p1", "pool", kernel_shape=[2, 2]))
    group = CHANNELS if depthwise else 1
    nodes += [
        node("Conv", f"{'p1' if pool else 't1'} w2 b2", "s2", "c2", group=group),
        node("Relu", "s2", "t2"),
        node("Conv", "t2 w3", "y", "c3"),
    ]
    return net(nodes, {"x": shape}, "y", weights)


def calibrated(folder, *, plain=False, **options):
    path = save(folder, network(**options))
    return path, neon8.calibrate_model(path, SAMPLES, plain=plain)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("operator", ["Relu", "LeakyRelu", "PRelu", ""])
def test_channels_of_all_sizes_cost_nothing(operator, depthwise, tmp_path):
    """Within 1.5 dB of the network before it was rewritten; without, most is lost.

    They are what the room costs that is left above values seen in so few samples.
    """
    pool = operator in ("LeakyRelu", "PRelu")
    options = {"operator": operator, "depthwise": depthwise, "pool": pool}
    usual = sqnr(*calibrated(tmp_path, **options))
    path, table = calibrated(tmp_path, **options, drift=DRIFT)
    lost = sqnr(*calibrated(tmp_path, **options, drift=DRIFT, plain=True))
    assert sqnr(path, table) > usual - 1.5
    assert lost < usual - 10
    tensors = {name for name, each in table.tensors.items() if each.factors}
    between = {"s1", "t1"} if operator == "PRelu" else {"t1"}
    assert tensors == between | ({"p1"} if pool else set())
    for name in tensors:
        assert table.tensors[name].reasons[0] == "equalized"
        assert max(table.tensors[name].factors) == 1


def test_a_bound_is_kept(tmp_path):
    """Only channels that do not reach it are stretched, and with room left."""
    drift = np.array([1, 1, 0.01, 0.5, 1, 0.02, 1, 1], F)
    path, table = calibrated(tmp_path, operator="Clip", drift=drift)
    observed = neon8.observe_model(path, SAMPLES).channels["s1"]
    factors = np.array(table.tensors["t1"].factors)
    reach = np.minimum(observed.maximum, 6)
    assert factors.max() == 1
    assert (reach / factors <= 6).all()
    assert factors[2] < 0.1
    assert sqnr(path, table) > sqnr(*calibrated(tmp_path, operator="Clip")) - 0.5


def test_without_need_there_are_no_factors(tmp_path):
    for depthwise in (False, True):
        _, table = calibrated(tmp_path, depthwise=depthwise)
        assert not any(tensor.factors for tensor in table.tensors.values())


def test_the_users_ranges_stay(tmp_path):
    path = save(tmp_path, network(drift=DRIFT))
    ranges = tmp_path / "own.json"
    ranges.write_text('{"tensors": {"t1": {"min": 0, "max": 3}}}')
    table = neon8.calibrate_model(path, SAMPLES, overrides=ranges)
    assert table.tensors["t1"].factors == ()
    assert table.tensors["t1"].threshold == pytest.approx((0, 3))


def solved_fast(path):
    seen = neon8.observe_model(path, SAMPLES)
    return neon8.solve_observation(seen, path, fast=True, max_sqnr_loss=100.0)


def test_fast_judges_the_equalized_network(tmp_path):
    """The loss of a layer does not depend on how its input was scaled."""
    path = save(tmp_path, network(depthwise=False, drift=DRIFT))
    table = solved_fast(path)
    assert table.layers["c2"].rounding == "lattice"
    assert table.tensors["t1"].factors
    assert table.tensors["t1"].scheme == "symmetric"
    assert sqnr(path, table) > 20
    plain = solved_fast(save(tmp_path, network(depthwise=False)))
    found, want = (t.layers["c2"].sqnr_loss for t in (table, plain))
    assert found == pytest.approx(want, abs=1.5)


def test_a_dead_channel_is_left_alone(tmp_path):
    """It has no size to go by, and must not make anything infinite."""
    drift = DRIFT.copy()
    drift[1] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        model = network(drift=drift)
    for tensor in model.graph.initializer:
        if tensor.name == "w2":
            values = np.frombuffer(tensor.raw_data, F).copy()
            values[~np.isfinite(values)] = 0.5
            tensor.raw_data = values.tobytes()
    path = save(tmp_path, model)
    table = neon8.calibrate_model(path, SAMPLES)
    factors = table.tensors["t1"].factors
    assert factors[1] == 1
    assert min(factors) < 0.1
    assert sqnr(path, table) > 25


def test_no_factor_is_smaller_than_a_table_may_have(tmp_path):
    drift = DRIFT.copy()
    drift[1] = 2.0**-21
    path, table = calibrated(tmp_path, drift=drift)
    assert min(table.tensors["t1"].factors) == 2.0**-16
    neon8.save_table(table, tmp_path / "t.json")
    assert neon8.load_table(tmp_path / "t.json") == table
    assert sqnr(path, table) > 25


def decoder(groups, drift):
    """x -> conv -> relu -> transposed conv -> relu -> conv -> y."""
    rng = np.random.default_rng(3)
    back = drift[::-1]
    read = np.repeat(back.reshape(groups, -1), CHANNELS // groups, axis=0)
    weights = {
        "w1": rng.normal(0, 0.3, (CHANNELS, 3, 3, 3)) * drift[:, None, None, None],
        "w2": rng.normal(0, 0.3, (CHANNELS, CHANNELS // groups, 3, 3))
        * (read[:, :, None, None] / drift[:, None, None, None]),
        "b2": rng.normal(0, 0.3, CHANNELS) * back,
        "w3": rng.normal(0, 0.3, (5, CHANNELS, 1, 1)) / back[None, :, None, None],
    }
    up = {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}
    nodes = [
        node("Conv", "x w1", "s1", "c1"),
        node("Relu", "s1", "t1"),
        node("ConvTranspose", "t1 w2 b2", "s2", "up", group=groups, **up),
        node("Relu", "s2", "t2"),
        node("Conv", "t2 w3", "y", "c3"),
    ]
    return net(nodes, {"x": SHAPE}, "y", weights)


@pytest.mark.parametrize("groups", [1, 2, CHANNELS])
def test_a_transposed_convolution_takes_factors_and_gives_others(groups, tmp_path):
    usual = save(tmp_path, decoder(groups, np.ones(CHANNELS)))
    least = sqnr(usual, neon8.calibrate_model(usual, SAMPLES)) - 2
    path = save(tmp_path, decoder(groups, DRIFT.astype(float)))
    table = neon8.calibrate_model(path, SAMPLES)
    assert sqnr(path, table) > least
    assert sqnr(path, neon8.calibrate_model(path, SAMPLES, plain=True)) < 8
    assert {n for n, each in table.tensors.items() if each.factors} == {"t1", "t2"}
    assert diagnose_model(path, table, SAMPLES, top=0).sqnr_db > least


@pytest.mark.parametrize(
    ("side", "outliers", "room"),
    [
        (6, 1, (1.15, 1.4)),
        (48, 1, (0.99, 1.08)),
        (48, 60, (0.95, 1.08)),
        (96, 60, (0.45, 0.8)),
    ],
)
def test_the_room_above_what_was_seen(side, outliers, room, tmp_path):
    """Few values get some, many do not, and of many those far from all are clipped.

    What is read of t1 is divided by its factors, so all channels have outliers.
    """
    shape = (*SHAPE[:-2], side, side)
    path = save(tmp_path, network(drift=DRIFT, shape=shape))
    samples = np.random.default_rng(5).normal(size=(28, *shape)).astype(F)
    samples[3, ..., 20:, 20:22][..., :1, :] *= outliers
    entry = neon8.calibrate_model(path, samples).tensors["t1"]
    assert entry.factors
    assert room[0] < entry.threshold[1] / entry.max < room[1]
