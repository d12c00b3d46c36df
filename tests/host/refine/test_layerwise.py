# SPDX-License-Identifier: Apache-2.0
"""Layers chosen one after another: by what they read, and as the table says."""

from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.data.few import Kept
from neon8.graph.onnx_file import open_onnx
from neon8.operators.convolution import Conv2dOp, conv_sums
from neon8.refine import layerwise, thorough
from neon8.refine.inputs import PIXELS, mean_row, some_rows
from neon8.refine.layerwise import Choice, chosen, layers_of
from neon8.refine.lockstep import in_lockstep, peak
from neon8.refine.rounding import descend
from neon8.refine.thorough import seen_in_float
from onnx_nets import net, node, save

F = np.float32
SHAPE = (1, 3, 9, 8)


def images(count, seed=1):
    return np.random.default_rng(seed).normal(size=(count, *SHAPE)).astype(F)


def network():
    """Everything a convolution can be: strides, groups, residual, transposed, float."""
    rng = np.random.default_rng(2)

    def weight(*shape):
        return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(F)

    weights = {
        "wa": weight(8, 3, 3, 3),
        "ba": weight(8, 1).reshape(8),
        "wd": weight(8, 1, 3, 3),
        "wg": weight(8, 4, 3, 1),
        "wp": weight(8, 8, 1, 1),
        "wt": weight(8, 4, 2, 2),
        "wm": weight(4, 5),
    }
    nodes = [
        node("Conv", "x wa ba", "a", "a", strides=[2, 1], pads=[1] * 4),
        node("Relu", "a", "ra"),
        node("Conv", "ra wd", "d", "d", group=8, dilations=[2, 2], pads=[2] * 4),
        node("LeakyRelu", "d", "rd", alpha=0.2),
        node("Conv", "rd wg", "g", "g", group=2, pads=[0, 0, 2, 0]),
        node("Relu", "g", "rg"),
        node("Conv", "rg wp", "p", "p"),
        node("Add", "p ra", "s"),
        node("Relu", "s", "rs"),
        node("ConvTranspose", "rs wt", "t", "t", strides=[2, 2]),
        node("GlobalAveragePool", "t", "v"),
        node("Flatten", "v", "f"),
        node("MatMul", "f wm", "y", "m"),
    ]
    return net(nodes, {"x": SHAPE}, "y", weights)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Path, graph, table; factors for what the depthwise layer reads."""
    path = save(tmp_path_factory.mktemp("layerwise"), network())
    graph = neon8.load_graph(path)
    table = neon8.calibrate_model(path, iter(images(20)), plain=True)
    # s reads it too, which has no factors.
    factors = tuple(np.linspace(0.5, 1.5, 8).astype(F).tolist())
    entry = replace(table.tensors["rd"], factors=factors)
    layer = replace(
        table.layers["d"],
        weight_scales=tuple(
            float(F(s / f))
            for s, f in zip(table.layers["d"].weight_scales, factors, strict=True)
        ),
    )
    table = replace(
        table,
        tensors=table.tensors | {"rd": entry},
        layers=table.layers | {"d": layer},
    )
    return path, graph, table


def seen(path, graph, arrays):
    kept = [Kept(f"{i:064x}", {"x": a}) for i, a in enumerate(arrays)]
    return seen_in_float(open_onnx(path), graph, kept)


def convolutions(lowered):
    return [op for op in lowered.ops if isinstance(op, Conv2dOp)]


def test_lockstep_is_the_network(made):
    _, graph, table = made
    lowered = lower(graph, table)
    arrays = [{"x": a} for a in images(3)]
    seen_by = {}

    def visit(op, values):
        seen_by[op.output] = [each.tobytes() for each in values]
        return op

    in_lockstep(lowered, arrays, visit, steps=len(lowered.ops))
    for at, each in enumerate(arrays):
        values = {"x": oracle.taken(lowered.tensors["x"], each)}
        for op in lowered.ops:
            out = lowered.tensors[op.output]
            assert seen_by[op.output][at] == values[op.inputs[0]].tobytes()
            read = [values[name] for name in op.inputs]
            values[op.output] = oracle.step(lowered, op, out, read)
    sizes = [tensor.dims for tensor in lowered.tensors.values()]
    assert 4 * np.prod(SHAPE) <= peak(lowered, len(lowered.ops))
    assert peak(lowered, len(lowered.ops)) < 4 * sum(map(np.prod, sizes))


def test_rows_are_what_the_layer_multiplies(made):
    _, graph, table = made
    lowered = lower(graph, table)
    values = {"x": oracle.taken(lowered.tensors["x"], {"x": images(1)[0]})}
    met = 0
    for op in lowered.ops:
        out = lowered.tensors[op.output]
        read = [values[name] for name in op.inputs]
        values[op.output] = oracle.step(lowered, op, out, read)
        if not isinstance(op, Conv2dOp):
            continue
        met += 1
        source = lowered.tensors[op.inputs[0]]
        sums = conv_sums(op, out, source, read[0])
        levels = op.weights.astype(int).transpose(0, 3, 1, 2)
        moved = sums - source.zero_point * levels.sum(axis=(1, 2, 3))[:, None, None]
        groups = levels.reshape(op.groups, -1, levels[0].size)
        mean = (groups @ mean_row(op, out, source, read[0])[..., None]).reshape(-1)
        np.testing.assert_allclose(mean, moved.mean(axis=(0, 2, 3)), atol=1e-6)
        rows = some_rows(op, out, source, read[0], digest="f" * 15 + "b")
        pixels = moved.transpose(0, 2, 3, 1).reshape(-1, len(levels))
        assert len(rows) == min(PIXELS, len(pixels))
        got = np.einsum("gok,ngk->ngo", groups, rows).reshape(len(rows), -1)
        known = {row.tobytes() for row in pixels}
        assert {row.tobytes() for row in got} <= known
    assert met == 6


def test_sums_in_float_are_of_the_same_pixels(made, monkeypatch):
    """Whatever strides, factors and scales a layer has."""
    path, graph, table = made
    met = []

    def looked_at(weights, scales, rows, wanted, *, samples):
        met.append(scales.shape)
        assert len(rows) == len(wanted) <= samples * PIXELS
        got = np.einsum("gok,ngk->ngo", weights / scales[..., None], rows)
        assert np.std(wanted - got) < 0.1 * np.std(wanted)
        assert np.abs(np.mean(wanted - got)) < 0.05 * np.std(wanted)
        return descend(weights, scales, rows, wanted, samples=samples)

    monkeypatch.setattr(layerwise, "descend", looked_at)
    choice = Choice(rounding=True, means=True)
    samples = seen(path, graph, images(3, 3))
    chosen(layers_of(graph, table), table, samples, choice, watch=lambda: None)
    assert sorted(met) == [(1, 5), (1, 8), (1, 8), (2, 4), (8, 1)]


def test_a_layer_with_very_many_inputs(tmp_path):
    """3x3 taps on 1024 channels."""
    rng = np.random.default_rng(7)
    weights = {"w": rng.normal(size=(2, 1024, 3, 3)).astype(F)}
    shape = (1, 1024, 3, 3)
    nodes = [node("Conv", "x w", "y", "y")]
    path = save(tmp_path, net(nodes, {"x": shape}, "y", weights))
    arrays = list(rng.normal(size=(6, *shape)).astype(F))
    graph, table = neon8.load_graph(path), neon8.calibrate_model(path, iter(arrays))
    samples = seen(path, graph, arrays)
    layers, choice = layers_of(graph, table), Choice(rounding=True, means=False)
    found = chosen(layers, table, samples, choice, watch=lambda: None)
    assert found.layers["y"].rounding == "chosen"


@pytest.mark.parametrize("way", [(False, True), (True, False), (True, True)])
def test_the_table_is_what_was_chosen(made, way):
    """Each step that the walk put in is that which the compiler makes of the table."""
    path, graph, table = made
    layers = layers_of(graph, table)
    assert sorted(layer.node.name for layer in layers.values()) == list("adgmp")
    samples = seen(path, graph, images(12, 3))
    count = []
    found = chosen(
        layers, table, samples, Choice(rounding=way[0], means=way[1]),
        watch=lambda: count.append(1),
    )  # fmt: skip
    assert len(count) == 5
    for op in convolutions(lower(graph, found)):
        if op.name == "t":
            assert found.layers["t"] == table.layers["t"]
            continue
        entry = found.layers[op.name]
        assert entry.rounding == ("chosen" if way[0] else "nearest")
        assert entry.bias_correction
        assert ("corrected" in entry.reasons, "chosen" in entry.reasons) == (
            True,
            way[0],
        )
        step = layers[op.output].step(entry)
        assert (step.weights == op.weights).all()
        assert (step.bias == op.bias).all()
        if op.bias_f32 is not None:
            assert (step.bias_f32 == op.bias_f32).all()
    assert found.tensors == table.tensors


def test_means_become_those_of_the_float_network(made):
    """Means before a layer's activation, with factors taken into account."""
    path, graph, table = made
    samples = seen(path, graph, images(40, 4))
    layers = layers_of(graph, table)
    found = chosen(
        layers, table, samples, Choice(rounding=True, means=True), watch=lambda: None
    )

    def errors(each):
        """Layer -> how far off its means are, in standard errors of chance."""
        lowered = lower(graph, each)
        sums = {}

        def visit(op, values):
            layer = layers.get(op.output)
            if layer is not None:
                source = layer.source
                rows = np.stack(
                    [mean_row(op, layer.out, source, q) for q in values], axis=2
                )
                steps = layer.by_group(op.weights.transpose(0, 3, 1, 2))
                products = (steps @ rows).reshape(-1, len(values))
                bias = op.bias + source.zero_point * op.weights.astype(int).sum(
                    axis=(1, 2, 3)
                )
                unit = float(source.scale) * layer.scales
                real = (products + bias[:, None]) * unit[:, None]
                if op.bias_f32 is not None:
                    real += op.bias_f32[:, None]
                want = np.stack([s.means[layer.node.pre_activation] for s in samples])
                gaps = want.T / layer.factors[:, None] - real
                chance = gaps.std(axis=1) / np.sqrt(len(samples)) + 1e-6
                sums[op.name] = np.abs(gaps.mean(axis=1) / chance).max()
            return op

        arrays = [each.inputs for each in samples]
        in_lockstep(lowered, arrays, visit, steps=len(lowered.ops))
        return sums

    before, after = errors(table), errors(found)
    assert max(before.values()) > 5
    assert max(after.values()) < 2


def test_large_tensors_take_fewer_samples(made, monkeypatch):
    path, graph, table = made
    layers = layers_of(graph, table)
    choice = Choice(rounding=True, means=True)
    samples = seen(path, graph, images(6, 5))
    some = chosen(layers, table, samples[:2], choice, watch=lambda: None)
    lowered = lower(graph, table)
    monkeypatch.setattr(layerwise, "BUDGET", 3 * peak(lowered, len(lowered.ops)) - 1)
    assert chosen(layers, table, samples, choice, watch=lambda: None) == some


def test_values_in_float_take_bounded_memory(made, monkeypatch):
    path, graph, _ = made
    (whole,) = seen(path, graph, images(1))
    size = sum(each.nbytes for each in whole.pixels.values())
    for most, kept in ((3 * size, 3), (3 * size - 1, 2), (1, 1)):
        monkeypatch.setattr(thorough, "BUDGET", most)
        assert len(seen(path, graph, images(5))) == kept


def test_what_stays_as_it_is(made):
    path, graph, table = made
    samples = seen(path, graph, images(4, 6))
    layers = table.layers
    # The compiler enlarges scales with which a bias does not fit int32.
    tiny = replace(layers["a"], weight_scales=(1e-12,) * 8)
    lattice = replace(layers["d"], rounding="lattice")
    table = replace(table, layers=layers | {"a": tiny, "d": lattice})
    known = layers_of(graph, table)
    assert sorted(layer.node.name for layer in known.values()) == list("dgmp")
    levels, both = (Choice(rounding=True, means=means) for means in (False, True))
    found = chosen(known, table, samples, levels, watch=lambda: None)
    assert found.layers["a"] == tiny
    assert found.layers["d"] == lattice
    assert found.layers["g"].rounding == "chosen"
    # Means that are not finite say nothing.
    lost = [
        replace(each, means=dict.fromkeys(each.means, np.array([np.nan])))
        for each in samples
    ]
    assert chosen(known, table, lost, both, watch=lambda: None) == found
