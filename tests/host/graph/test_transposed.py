# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose against onnxruntime, and the plain convolutions that it is made of."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graph_executor
from neon8.formats.attach import weight_names
from neon8.graph.importer import load
from neon8.ir.graph import Activation, Graph, Tensor
from neon8.operators.convolution import Conv2d
from neon8.operators.subpixel import subpixel
from onnx_nets import assert_same, chain, net, node, save, why_opaque

F = np.float32
IMAGE = (1, 4, 5, 7)


def up(weight, bias=None, **attributes):
    constants = [weight] if bias is None else [weight, bias]
    return ("ConvTranspose", constants, attributes)


BN = ("BatchNormalization", [(3,), (3,), (3,), np.ones(3, F)], {})
RELU = ("Relu", [], {})
W3 = (4, 3, 3, 3)
CASES = {
    "uneven": [up((4, 3, 2, 5), strides=[3, 2], pads=[0, 2, 1, 3])],
    "dilated and strided, coprime": [up(W3, dilations=[3, 2], strides=[2, 3])],
    "same lower": [up(W3, auto_pad="SAME_LOWER", strides=[2, 3])],
    "output shape, upper": [up(W3, strides=[2, 2], output_shape=[10, 14],
                               auto_pad="SAME_UPPER")],
    "norm and relu": [up((4, 3, 2, 2), (3,), strides=[2, 2]), BN, RELU],
}  # fmt: skip


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES)
def test_transposed(tmp_path, steps):
    assert_same(tmp_path, chain(steps, IMAGE))


def test_a_line(tmp_path):
    step = up((4, 3, 4), (3,), strides=[3], pads=[1, 2], output_padding=[2])
    assert_same(tmp_path, chain([step], (1, 4, 9)))


def test_everything_is_folded(tmp_path):
    graph = assert_same(tmp_path, chain(CASES["norm and relu"], IMAGE))
    (layer,) = graph.nodes
    assert layer.spread == (2, 2)
    assert layer.activation.lo == 0


@st.composite
def layers(draw):
    """A convolution with spread, of any geometry, and the size of its input."""
    size = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    spread = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilations = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    groups = draw(st.sampled_from([1, 2]))
    pads = [0] * 4
    for axis in (0, 1):
        reach = (kernel[axis] - 1) * dilations[axis]
        least = reach + 1 - (size[axis] - 1) * spread[axis] - 1
        before = draw(st.integers(-4, reach))
        lowest = max(-4, least - before)
        after = draw(st.integers(lowest, max(lowest, reach + 3)))
        pads[axis], pads[2 + axis] = before, after
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    layer = Conv2d(
        name="up",
        inputs=("x",),
        output="y",
        pre_activation="y",
        weight=rng.normal(size=(4, 2, *kernel)).astype(F),
        bias=rng.normal(size=4).astype(F),
        groups=groups,
        spread=spread,
        dilations=dilations,
        pads=tuple(pads),
        activation=Activation(lo=-1.0),
    )
    return layer, size


@settings(max_examples=300)
@given(case=layers())
def test_a_plain_convolution_makes_the_same(case):
    """Its channels as pixels, without those that are cut off, are the output."""
    layer, size = case
    shape = (2, 2 * layer.groups, *size)
    out = (2, 4, *(
        (size[a] - 1) * layer.spread[a] + 1 + layer.pads[a] + layer.pads[2 + a]
        - (layer.weight.shape[2 + a] - 1) * layer.dilations[a]
        for a in (0, 1)
    ))  # fmt: skip
    parts = subpixel(layer)
    x = np.random.default_rng(0).normal(size=shape)
    want = executed(layer, x, shape, out)
    assert not parts.conv.transposed
    inner = parts.shape(shape)
    made = executed(parts.conv, x, shape, inner)
    n, c, h, w = inner
    up_, across = parts.phases
    each = c // layer.groups // math.prod(parts.phases)
    view = made.reshape(n, layer.groups, up_, across, each, h, w)
    wide = view.transpose(0, 1, 4, 5, 2, 6, 3).reshape(n, 4, h * up_, w * across)
    top, left = parts.crop
    got = wide[:, :, top : top + out[2], left : left + out[3]]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-12)


def executed(layer, x, shape, out):
    graph = Graph(
        name="",
        digest="",
        tensors={"x": Tensor("x", shape), "y": Tensor("y", out)},
        nodes=(layer,),
        inputs=("x",),
        outputs=("y",),
    )
    return graph_executor.run(graph, {"x": x})["y"]


def test_few_weights_stay_few():
    """A kernel that is as long as its strides has no zeros put in."""
    weight = np.ones((3, 4, 6, 4), F)
    layer = dataclasses.replace(
        load_plain(), weight=weight, spread=(3, 2), pads=(5, 3, 5, 3)
    )
    assert subpixel(layer).conv.weight.size == weight.size


def load_plain():
    return Conv2d(
        name="up",
        inputs=("x",),
        output="y",
        pre_activation="y",
        weight=np.zeros((1, 1, 1, 1), F),
        bias=np.zeros(3, F),
    )


REFUSED = {
    "weights of 108": up((4, 3, 3, 3), strides=[2, 2], dilations=[9001, 9001]),
    "do not fit": up((4, 3, 3, 3), group=3),
    "neon8 takes 3 or 4": up((4, 3, 3, 3, 3, 3)),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(tmp_path, text):
    shape = (1, 4, 2, 2, 2, 2) if "takes" in text else IMAGE
    assert text in why_opaque(tmp_path, chain([REFUSED[text]], shape))


def test_weights_must_be_constant(tmp_path):
    nodes = [node("ConvTranspose", "x w", "y", "up")]
    model = net(nodes, {"x": IMAGE, "w": W3}, "y")
    assert "computed at run time" in why_opaque(tmp_path, model)


def test_the_name_of_the_weights(tmp_path):
    """Other tools' tables know them by it, with their axis of output channels."""
    path = save(tmp_path, chain([up(W3, strides=[2, 2])], IMAGE))
    assert weight_names(path, load(path)) == {"n0": ("w0_0", 1)}
