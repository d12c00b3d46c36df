# SPDX-License-Identifier: Apache-2.0
"""Bits of activations: as many as sums allow (12), (24); and tensors in float32."""

from dataclasses import replace

import numpy as np
import pytest

from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.ir.groups import scale_groups
from neon8.operators.functions import X, call
from neon8.operators.pointwise import Pointwise
from neon8.quant.grid import at_bits, ends
from neon8.rewrite.bits import in_float32, with_bits, with_wide_weights
from small_graphs import RELU, conv, graph_of, scale, table_of, with_entries

SQUARE = Pointwise(name="f", inputs=("a",), output="b", function=call("multiply", X, X))
SCHEMES = {
    "symmetric": scale(0.25, 0, "symmetric"),
    "unsigned": scale(0.25, -128, "unsigned"),
    "asymmetric": scale(0.25, -100),
}


def random_layer(rng, output="y", source="x", **options):
    """A layer of up to 8192 inputs, so that 16 bits fit some and not others."""
    channels = int(2 ** rng.uniform(3, 13))
    shape = (4, channels, 1, 1) if "spread" not in options else (4, channels, 3, 3)
    weight = rng.normal(size=shape).astype(np.float32) * 0.5
    weight[rng.integers(4)] += np.float32(0.5 * rng.integers(2))
    bias = (rng.normal(size=4) * rng.choice([0.1, 100])).astype(np.float32)
    node = conv(output, source, channels=channels, bias=bias, **options)
    return replace(node, weight=weight.clip(-1, 1)), (1, channels, 5, 5)


def compiles(graph, table, bits):
    """With so many bits for x, whatever the layer's output is: None, or the error."""
    entry = at_bits(table.tensors["x"], bits)
    table = replace(table, tensors=table.tensors | {"x": entry})
    try:
        for io in ("int8", "float"):
            lower(graph, table, io=io)
    except CompileError as error:
        return error.text
    return None


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "options", [{}, {"spread": (2, 2), "pads": (1, 1, 1, 1)}], ids=["plain", "spread"]
)
def test_as_many_as_can_be_compiled(scheme, options):
    rng = np.random.default_rng(len(scheme))
    found = set()
    for _ in range(12):
        node, shape = random_layer(rng, **options)
        size = 9 if options else 5
        graph = graph_of(node, shapes={"x": shape, "y": (1, 4, size, size)})
        table = table_of(graph, x=SCHEMES[scheme])
        done = with_bits(table, graph, scale_groups(graph), {"x": 16})
        bits = done.tensors["x"].bits
        assert done.layers == table.layers
        assert compiles(graph, table, bits) is None
        if bits < 16:
            assert "accumulator" in compiles(graph, table, bits + 1)
        found.add(bits)
    assert 16 in found
    assert len(found) > 2


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "options", [{}, {"spread": (2, 2), "pads": (1, 1, 1, 1)}], ids=["plain", "spread"]
)
def test_weights_of_int16(scheme, options):
    """As fine as sums surely allow, of int8 and int16 inputs in whatever order."""
    rng = np.random.default_rng(len(scheme))
    bits = []
    for _ in range(12):
        node, shape = random_layer(rng, **options)
        size = 9 if options else 5
        graph = graph_of(node, shapes={"x": shape, "y": (1, 4, size, size)})
        table = table_of(graph, x=SCHEMES[scheme])
        wide = with_wide_weights(table, graph, ["layer_y"])
        for found in (wide, with_bits(wide, graph, scale_groups(graph), {"x": 16})):
            entry = found.layers["layer_y"]
            step = next(op for op in lower(graph, found).ops if hasattr(op, "weights"))
            assert step.weights.dtype == np.int16
            assert step.acc_bound < 2**31
            whole = found.tensors["x"].scale * np.array(entry.weight_scales)
            assert set(step.multiplier) == set(np.float32(whole))  # none was enlarged
            bits.append(np.log2(np.abs(step.weights).max()))
        assert table.tensors["x"].bits == 8 < found.tensors["x"].bits
        assert (wide.layers["layer_y"].bits, entry.reasons) == (16, ("weights16",))
        narrow = with_bits(wide, graph, scale_groups(graph), {"x": 8})
        assert narrow.layers == wide.layers
    assert max(bits) > 14.9
    assert min(bits) > 6


def test_steps_of_weights_stay_steps():
    """+-1 and their scale 1 / 127 are 127 * 256 of the new ones."""
    graph = graph_of(conv("y"))
    found = with_wide_weights(table_of(graph), graph, ["layer_y"])
    assert set(np.abs(lower(graph, found).ops[1].weights).flat) == {127 * 256}


def test_what_functions_read_needs_no_factors():
    """Its scale is that of the largest channel, and the layer's integers stay."""
    graph = graph_of(conv("a"), SQUARE, conv("y", "b"))
    factors = {name: {"factors": (0.5, 1.0, 0.25, 0.5)} for name in "ab"}
    table = with_entries(graph, **factors)
    done = with_bits(table, graph, {}, {"a": 16, "b": 16})
    assert done.tensors["a"].factors == ()
    assert done.tensors["a"].threshold == ends(table.tensors["a"])
    assert done.tensors["b"].factors == table.tensors["b"].factors
    before, after = (
        next(op for op in lower(graph, each).ops if op.name == "layer_a")
        for each in (table, done)
    )
    assert (before.weights == after.weights).all()


def test_a_grid_covers_the_same():
    graph = graph_of(conv("y"))
    for entry in SCHEMES.values():
        table = table_of(graph, x=entry)
        done = with_bits(table, graph, {}, {"x": 16})
        found = done.tensors["x"]
        assert found.threshold == pytest.approx(ends(entry), abs=entry.scale)
        assert 255 < entry.scale / found.scale < 258.1
        assert found.reasons == ("int16",)
        back = with_bits(done, graph, {}, {"x": 8}).tensors["x"]
        assert (back.bits, back.reasons) == (8, ())
        assert back.scale == pytest.approx(entry.scale, rel=1e-2)


@pytest.mark.parametrize(
    ("seen", "reasons", "covered"),
    [
        ((-40.0, 50.0), (), (-40.0, 50.0)),
        ((-1.0, 1.0), (), (-7.0, 56.75)),
        ((-40.0, 50.0), ("override",), (-7.0, 56.75)),
        ((-1e4, 1e4), (), (-7.0, 56.75)),
    ],
)
def test_what_8_bits_would_clip(seen, reasons, covered):
    """It is covered, unless the user has set the range or it would cost the gain."""
    graph = graph_of(conv("y"))
    entry = replace(SCHEMES["asymmetric"], min=seen[0], max=seen[1], reasons=reasons)
    done = with_bits(table_of(graph, x=entry), graph, {}, {"x": 16})
    lo, hi = done.tensors["x"].threshold
    assert lo == pytest.approx(covered[0], abs=0.3)
    assert hi == pytest.approx(max(covered[1], 56.75), abs=0.3)


def test_a_bias_that_is_large_for_its_weights():
    """As of a channel that pruning left next to nothing: it alone pays."""
    node = conv("y")
    weight = node.weight.copy()
    weight[2] *= 1e-9
    graph = graph_of(replace(node, weight=weight, bias=np.full(4, 3, np.float32)))
    table = table_of(graph)
    scales = [1.0, 1.0, 1e-9, 1.0]
    scales[2] = 3 / (0.5 * 2.0**29)  # as of 8 bits, see weight_scales()
    layer = replace(table.layers["layer_y"], weight_scales=tuple(scales))
    table = replace(table, layers={"layer_y": layer})
    done = with_bits(table, graph, {}, {"x": 16})
    assert done.tensors["x"].bits == 16
    new = done.layers["layer_y"]
    assert new.weight_scales[2] == pytest.approx(257 / 2 * scales[2], rel=1e-3)
    assert [*new.weight_scales[:2], new.weight_scales[3]] == [1.0, 1.0, 1.0]
    assert new.reasons == ("bias:2",)
    assert lower(graph, done).ops[-1].acc_bound < 2**31


def test_scales_that_not_every_processor_keeps():
    graph = graph_of(conv("y"))
    table = table_of(graph, x=scale(2e-29), weight_scale=1.0)
    done = with_bits(table, graph, {}, {"x": 16})
    assert done.tensors["x"].bits == 12
    assert lower(graph, done)


def test_a_table_with_too_few_weight_scales():
    graph = graph_of(conv("y"))
    table = table_of(graph)
    layer = replace(table.layers["layer_y"], weight_scales=(1.0, 1.0))
    table = replace(table, layers={"layer_y": layer})
    with pytest.raises(CompileError, match="has 2 weight scales, expected 1 or 4"):
        with_bits(table, graph, {}, {"x": 16})


def dtypes(prog):
    return {name: tensor.dtype for name, tensor in prog.tensors.items()}


def test_a_tensor_in_float32():
    """A convolution gives it as it is; what reads it is float32."""
    graph = graph_of(conv("h"), conv("i", "h"), conv("y", "i"))
    table = in_float32(table_of(graph), scale_groups(graph), ["h"])
    prog = lower(graph, table, io="int8")
    assert [type(op).__name__.removesuffix("Op") for op in prog.ops] == [
        "Conv2d",
        "Conv2dF32",
        "Quantize",
        "Conv2d",
    ]
    assert dtypes(prog)["h"] == "float32"
    assert prog.islands == {"layer_i": "tensor 'h' is float32 in the table"}
    assert table.tensors["h"].reasons == ("float32",)
    back = with_bits(table, graph, {}, {"h": 8})
    assert back == table_of(graph)


def test_a_tensor_in_float32_behind_an_activation():
    """Its maker clamps integers, so it is float32, too."""
    graph = graph_of(conv("h", activation=RELU), conv("y", "h"))
    table = in_float32(table_of(graph), scale_groups(graph), ["h"])
    assert set(lower(graph, table).islands) == {"layer_h", "layer_y"}


def test_the_ends_in_float32():
    graph = graph_of(conv("h"), conv("y", "h", activation=RELU))
    table = in_float32(table_of(graph), scale_groups(graph), ["x", "y"])
    prog = lower(graph, table, io="float")
    assert set(prog.islands) == {"layer_h", "layer_y"}
    prog = lower(graph, table, io="int8")
    assert dtypes(prog)["x"] == dtypes(prog)["y"] == "int8"
    quantized = replace(graph, quantized=True)
    with pytest.raises(CompileError, match="'x' is float32 in the table, and rounded"):
        lower(quantized, table)
