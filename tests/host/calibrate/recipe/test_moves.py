# SPDX-License-Identifier: Apache-2.0
"""Factors go along with channels that are cut out, joined and shuffled."""

import numpy as np
import pytest

import neon8
from onnx_nets import net, node, save
from recipe_kits import SAMPLES, SHAPE, sqnr

F = np.float32
CHANNELS = 16
HALF = CHANNELS // 2
BLOCKS = "abcd"
INDICES = {
    "from": [0],
    "to": [CHANNELS],
    "axis": [1],
    "four": [4],
    "halves": [HALF, HALF],
    "pairs": [1, 2, HALF, 9, 9],
    "whole": [1, CHANNELS, 9, 9],
}


def network(nodes, weights, outputs="y"):
    """With the stem x -> conv -> relu t, and what each Conv reads from `weights`."""
    rng = np.random.default_rng(4)
    stem = [node("Conv", "x stem", "s", "stem", pads=[1] * 4), node("Relu", "s", "t")]
    weights = {"stem": (CHANNELS, 3, 3, 3)} | weights
    filled = {name: rng.normal(0, 0.4, shape) for name, shape in weights.items()}
    nodes = stem + nodes
    read = {name for each in nodes for name in each.input}
    filled |= {name: INDICES[name] for name in INDICES if name in read}
    return nodes, filled, outputs


def fourth():
    """Every fourth channel is read apart, and is 64 times smaller than the others."""
    nodes = [
        node("Slice", "t from to axis four", "taken"),
        node("Conv", "taken a", "y", "a"),
        node("Conv", "t b", "z", "b"),
    ]
    shapes = {"a": (4, CHANNELS // 4, 1, 1), "b": (4, CHANNELS, 1, 1)}
    nodes, weights, outputs = network(nodes, shapes, "y z")
    weights["stem"][::4] /= 64
    weights["b"][:, ::4] *= 64
    return nodes, weights, outputs


def shuffle(times=4.0):
    """Blocks of ShuffleNetV2, of which each gives values `times` as large."""
    nodes, last = [], "t"
    for block in BLOCKS:
        nodes += [
            node("Split", f"{last} halves", f"l{block} r{block}", axis=1),
            node("Conv", f"r{block} {block}", f"s{block}", block),
            node("Relu", f"s{block}", f"t{block}"),
            node("Concat", f"l{block} t{block}", f"j{block}", axis=1),
            node("Reshape", f"j{block} pairs", f"p{block}"),
            node("Transpose", f"p{block}", f"q{block}", perm=[0, 2, 1, 3, 4]),
            node("Reshape", f"q{block} whole", f"u{block}"),
        ]
        last = f"u{block}"
    nodes.append(node("Conv", f"{last} end", "y", "end"))
    shapes = dict.fromkeys(BLOCKS, (HALF, HALF, 1, 1)) | {"end": (4, CHANNELS, 1, 1)}
    nodes, weights, outputs = network(nodes, shapes)
    for block in BLOCKS:
        weights[block] *= times
    return nodes, weights, outputs


def saved(folder, kind):
    nodes, weights, outputs = kind()
    return save(folder, net(nodes, {"x": SHAPE}, outputs, weights))


@pytest.mark.parametrize(("kind", "least"), [(fourth, 30), (shuffle, 30)])
def test_what_is_small_keeps_its_steps(kind, least, tmp_path):
    path = saved(tmp_path, kind)
    table = neon8.calibrate_model(path, SAMPLES)
    plain = neon8.calibrate_model(path, SAMPLES, plain=True)
    assert sqnr(path, table) > least
    assert sqnr(path, plain) < least - 15


@pytest.mark.parametrize(("times", "gain"), [(4.0, 10), (2.0, 0.5)])
def test_blocks_without_factors_have_steps_of_their_own(times, gain, tmp_path):
    """An output of the network has no factors, and so nothing that it is moved to."""

    def kind():
        nodes, weights, outputs = shuffle(times)
        return nodes, weights, f"{outputs} t"

    path = saved(tmp_path, kind)
    table = neon8.calibrate_model(path, SAMPLES)
    assert not any(each.factors for each in table.tensors.values())
    own = [name for name, each in table.tensors.items() if "own" in each.reasons]
    assert own == [f"l{block}" for block in (BLOCKS if times > 2 else "a")]
    plain = neon8.calibrate_model(path, SAMPLES, plain=True)
    assert sqnr(path, table) > sqnr(path, plain) + gain


def test_what_a_pad_puts_in_has_room_beside_small_values(tmp_path):
    nodes = [
        node("Pad", "t pads one", "p"),
        node("Conv", "p a", "y", "a"),
        node("Conv", "t b", "z", "b"),
    ]
    shapes = {"a": (4, CHANNELS, 3, 3), "b": (4, CHANNELS, 1, 1)}
    nodes, weights, outputs = network(nodes, shapes, "y z")
    weights["stem"] /= 16
    weights |= {"pads": [0, 0, 1, 1] * 2, "one": np.array(1.0)}
    path = save(tmp_path, net(nodes, {"x": SHAPE}, outputs, weights))
    table = neon8.calibrate_model(path, SAMPLES)
    assert table.tensors["t"].scale < table.tensors["p"].scale
    assert table.tensors["p"].threshold[1] >= 1
    assert sqnr(path, table) > 30


@pytest.mark.parametrize("plain", [False, True])
def test_what_a_concat_adds_is_within_the_range(tmp_path, plain):
    """A constant beside small values, as the token for the class is."""
    nodes = [node("Concat", "t token", "j", axis=1), node("Conv", "j a", "y", "a")]
    nodes, weights, outputs = network(nodes, {"a": (4, CHANNELS + 1, 1, 1)})
    weights["stem"] /= 16
    weights["token"] = np.linspace(-3, 2, 81).reshape(1, 1, 9, 9)
    path = save(tmp_path, net(nodes, {"x": SHAPE}, outputs, weights))
    table = neon8.calibrate_model(path, SAMPLES, plain=plain)
    low, high = table.tensors["j"].threshold
    assert low <= -2.9
    assert high >= 1.9
    assert sqnr(path, table) > 30
