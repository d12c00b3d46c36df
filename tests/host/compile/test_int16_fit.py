# SPDX-License-Identifier: Apache-2.0
"""Weight scales with which int16 holds four products: the least ones, at a price."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neon8.compile.lower import lower
from neon8.quant.int16_fit import DEPTH, fit, sqnr
from neon8.quant.proof import INT16_REACH, int16_depth, sum_of_largest
from neon8.quant.weights import quantize_weights
from small_graphs import conv, graph_of, table_of

ANY_LOSS = 200.0


def absmax_scales(weight):
    largest = np.abs(weight.reshape(len(weight), -1)).max(axis=1)
    return (np.where(largest > 0, largest, 1) / 127).astype(np.float32).astype(float)


WEIGHTS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 9), st.just(1), st.just(1)),
    elements=st.floats(-1, 1, width=32).filter(lambda w: w == 0 or abs(w) > 1e-3),
)


@given(weight=WEIGHTS, clipped=st.sampled_from([1.0, 0.5]))
def test_the_scales_are_the_least_that_fit(weight, clipped):
    """Each channel fits, and with the next smaller float32 it does not."""
    given = absmax_scales(weight) * clipped  # halved, the largest weights are clipped
    scales, _ = fit("layer", weight, given, limit=math.inf)
    levels = quantize_weights(weight, scales)
    for channel, scale in enumerate(scales):
        own = weight[channel : channel + 1]
        before = quantize_weights(own, given[channel : channel + 1])
        passed = sum_of_largest(before.reshape(-1), DEPTH) <= INT16_REACH
        assert (scale == given[channel]) == passed
        assert sum_of_largest(levels[channel].reshape(-1), DEPTH) <= INT16_REACH
        assert scale == np.float32(scale)
        if not passed:
            below = np.nextafter(np.float32(scale), np.float32(0)).astype(float)
            least = quantize_weights(own, np.array([below]))
            assert sum_of_largest(least.reshape(-1), DEPTH) > INT16_REACH


@given(weight=WEIGHTS, limit=st.floats(0.01, 8))
def test_nothing_is_done_beyond_the_limit(weight, limit):
    given = absmax_scales(weight)
    scales, found = fit("layer", weight, given, limit=limit)
    if found is None:
        assert int16_depth(quantize_weights(weight, given)) >= DEPTH
        assert scales is given
        return
    wanted, _ = fit("layer", weight, given, limit=math.inf)
    assert found.before == sqnr(weight, given)
    assert found.channels == (wanted > given).sum()
    assert found.all == len(weight)
    assert found.applied == (found.loss < limit)
    assert scales.tolist() == (wanted if found.applied else given).tolist()


def test_the_factor_by_hand():
    """Three weights of 127 become 85 each; 85.5 would round to 86, which is even."""
    weight = np.array([1, -1, 1], np.float32).reshape(1, 3, 1, 1)
    scales, found = fit("layer", weight, np.array([1 / 127]), limit=math.inf)
    # They were exact, so that no limit pays for it.
    assert scales.tolist() == [1 / 127]
    assert not found.applied
    assert (found.before, found.loss) == (math.inf, math.inf)
    assert found.factor == pytest.approx(127 / 85.5, rel=1e-7)
    weight[0, 0] = np.nextafter(np.float32(1), np.float32(2))
    scales, found = fit("layer", weight, np.array([1 / 127]), limit=math.inf)
    assert found.applied
    assert quantize_weights(weight, scales).ravel().tolist() == [85, -85, 85]
    assert scales[0] == pytest.approx(1 / 85.5, rel=1e-6)


def test_sqnr_by_hand():
    weight = np.array([[1.0, 0.25], [3.0, 0.0]], np.float32).reshape(2, 2, 1, 1)
    # Levels 2, 0 (half to even) and 3, 0: the error is 0.25, the signal 10.0625.
    found = sqnr(weight, np.array([0.5, 1.0]))
    assert found == pytest.approx(10 * math.log10(10.0625 / 0.0625), rel=1e-15)
    assert sqnr(weight, np.array([0.25, 1.0])) == math.inf


def many(out=4, channels=8):
    rng = np.random.default_rng(3)
    return conv(
        "y",
        channels=channels,
        out=out,
        weight=rng.normal(size=(out, channels, 1, 1)).astype(np.float32),
        bias=rng.normal(size=out).astype(np.float32),
    )


SHAPES = {"x": (1, 8, 5, 5), "y": (1, 4, 5, 5)}


def with_scales(node):
    graph = graph_of(node, shapes=SHAPES)
    table = table_of(graph)
    scales = tuple(absmax_scales(node.weight).tolist())
    entry = replace(table.layers[node.name], weight_scales=scales)
    return graph, replace(table, layers={node.name: entry})


def test_bias_and_multiplier_follow_the_scale(caplog):
    graph, table = with_scales(many())
    plain = lower(graph, table, io="int8")
    with caplog.at_level(logging.INFO, "neon8"):
        aware = lower(graph, table, io="int8", max_sqnr_loss=ANY_LOSS)
    (one,), (other,) = plain.ops, aware.ops
    assert (one.int16_depth, other.int16_depth) == (2, DEPTH)
    (found,) = aware.fits
    assert found.applied
    assert f"layer 'layer_y': {found.channels} of 4 weight scales" in caplog.text
    factor = other.multiplier.astype(float) / one.multiplier.astype(float)
    assert factor.max() == pytest.approx(found.factor, rel=1e-6)
    # Both say the same real numbers, in steps of their own.
    step = 0.5 * 0.5  # of input and output
    for op in plain.ops + aware.ops:
        unit = op.multiplier.astype(float) * step
        centred = op.bias * unit / 0.5
        np.testing.assert_allclose(centred, graph.nodes[0].bias, atol=unit.max())
    assert other.acc_bound < one.acc_bound


def test_nothing_changes_by_default():
    graph, table = with_scales(many())
    assert lower(graph, table, io="int8").fits == ()
    (op,) = lower(graph, table, io="int8", max_sqnr_loss=1e-6).ops
    (plain,) = lower(graph, table, io="int8").ops
    assert op.weights.tobytes() == plain.weights.tobytes()
    assert op.multiplier.tobytes() == plain.multiplier.tobytes()


def test_weights_of_a_quantized_file_stay():
    """They are integers already: another scale would round them again."""
    node = many()
    scales = absmax_scales(node.weight)
    levels = quantize_weights(node.weight, scales)
    weight = (levels * scales.reshape(-1, 1, 1, 1)).astype(np.float32)
    node = replace(node, weight=weight, weight_scales=scales.astype(np.float32))
    graph, table = with_scales(node)
    program = lower(graph, table, io="int8", max_sqnr_loss=ANY_LOSS)
    assert program.fits == ()
    assert program.ops[0].weights.ravel().tolist() == levels.ravel().tolist()
