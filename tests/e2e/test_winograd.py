# SPDX-License-Identifier: Apache-2.0
"""Convolutions by int8 Winograd along rows (23), against plain sums of products.

Where the processor has no kernels for it, other kernels compute the same layers.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import single_layers as layers
from levels import levels
from neon8.compile import oracle
from neon8.errors import ModelError
from neon8.ir.program import Tensor
from neon8.operators.convolution import Conv2dOp
from neon8.operators.reference import as_float, rounded
from neon8.runtime import Model
from opened_file import File
from programs import level, program, real, step
from random_convs import bound
from random_program import differing_bytes

WHOLE, HALF = 127, 254
"""The most that |g0 + g2| + |g1| may be."""


def fitting_weights(rng, shape, most):
    """int8 weights, (O, kh, 3, I), many at the bounds of (23)."""
    g = np.clip(rng.integers(-300, 301, shape), -127, 127)
    outer = g[:, :, 0] + g[:, :, 2]
    g[:, :, 0] = np.where(np.abs(outer) > most, -g[:, :, 0], g[:, :, 0])
    room = np.maximum(most - np.abs(g[:, :, 0] + g[:, :, 2]), 0)
    g[:, :, 1] = np.clip(g[:, :, 1], -room, room)
    if most == HALF:
        odd = g.sum(axis=2) % 2
        g[:, :, 1] -= np.where(g[:, :, 1] > 0, odd, -odd)
    return g.astype(np.int8)


def plain_sums(x, weights, pads, zero_point):
    """int64 sums of x, N H W C, by weights, O kh kw I, stride 1."""
    top, left, bottom, right = pads
    padded = np.pad(
        x.astype(np.int64),
        ((0, 0), (top, bottom), (left, right), (0, 0)),
        constant_values=zero_point,
    )
    _, height, width, _ = weights.shape
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (1, 2))
    return np.einsum("nyxcij,oijc->nyxo", windows, weights.astype(np.int64))


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    most=st.sampled_from([WHOLE, HALF]),
    width=st.integers(2, 15),
    extreme=st.booleans(),
)
def test_fitting_layers(seed, most, width, extreme):
    rng = np.random.default_rng(seed)
    height, batch, kernel = rng.integers(1, (9, 3, 4)).tolist()
    depth, channels = rng.integers((9, 1), (34, 27)).tolist()
    weights = fitting_weights(rng, (channels, kernel, 3, depth), most)
    pads = (*rng.integers(0, (kernel, 3, kernel, 3)).tolist(),)
    if height + pads[0] + pads[2] < kernel or width + pads[1] + pads[3] < 3:
        return
    lo = int(rng.integers(-128, 1))
    zero_point = int(rng.integers(lo, lo + 128))
    x = rng.integers(lo, lo + 128, (batch, height, width, depth))
    if extreme:
        x = np.where(rng.random(x.shape) < 0.5, lo, lo + 127)
    sums = plain_sums(x, weights, pads, zero_point)
    bias = rng.integers(-5000, 5000, channels).astype(np.int32)
    multiplier = (2.0 ** rng.uniform(-14, -6, channels)).astype(np.float32)
    slope = rng.uniform(-1, 1, channels).astype(np.float32) if seed % 2 else None
    residual = rng.integers(-128, 128, sums.shape).astype(np.int8) if seed % 3 else None
    epilogue = {
        "bias": bias,
        "multiplier": multiplier,
        "slope": slope,
        "residual_scale": 0 if residual is None else 0.37,
        "residual_zero_point": -3,
        "zero_point": 5,
        "lo": -100,
        "hi": 110,
    }
    layer = layers.Conv2d(
        weights,
        x.shape,
        in_zero_point=zero_point,
        in_range=(lo, lo + 127),
        pads=pads,
        **epilogue,
    )
    v = as_float(sums + bias) * multiplier
    if residual is not None:
        real = as_float(residual.astype(np.int64) + 3)
        v = v + real * np.float32(0.37)
    if slope is not None:
        v = np.where(v < 0, v * slope, v)
    out = Tensor(name="out", dims=(1,), zero_point=5)
    expected = rounded(v, out, -100, 110)
    assert np.array_equal(layer.run(x.astype(np.int8), residual), expected)


ONES = np.ones((4, 3, 3, 16), np.int8)


@pytest.mark.parametrize("bounds", [(1, 0), (-129, 0), (0, 128)])
def test_a_range_that_is_none(bounds):
    with pytest.raises(ModelError, match="invalid argument"):
        layers.Conv2d(ONES, (1, 4, 4, 16), in_range=bounds, type="int32")


def test_the_end_of_a_range():
    layer = layers.Conv2d(ONES, (1, 4, 4, 16), in_range=(-5, 7), type="int32")
    x = np.full((1, 4, 4, 16), -5, np.int8)
    assert layer.run(x).tolist() == [[[[-5 * 9 * 16] * 4] * 2] * 2]


TENSORS = [
    real("image", (1, 16, 9, 12)),
    *(
        level(name, (1, 16, 9, 12))
        for name in ("x", "positive", "larger", "first", "both")
    ),
]
CODES = {"larger": (0, 120), "x": (-128, 127)}


def network(rng, source, most):
    """x clamped from below; its largest neighbours; two 3x3 layers of `source`."""
    weights = [fitting_weights(rng, (16, 3, 3, 16), most) for _ in range(2)]
    ops = [
        step("Quantize", "x", "image"),
        step("Requantize", "positive", "x", scale=np.float32(1.3), lo=0, hi=120),
        step(
            "Pool",
            "larger",
            "positive",
            kind="max",
            kernel=(2, 2),
            strides=(1, 1),
            dilations=(1, 1),
            pads=(1, 1, 0, 0),
        ),
        *(
            Conv2dOp(
                name=name,
                inputs=inputs,
                output=name,
                weights=array,
                bias=rng.integers(-999, 999, 16).astype(np.int32),
                multiplier=np.full(16, 2e-4, np.float32),
                residual_scale=np.float32(0.5 if len(inputs) == 2 else 0),
                pads=(1, 1, 1, 1),
            )
            for array, name, inputs in zip(
                weights,
                ("first", "both"),
                ((source,), (source, "first")),
                strict=True,
            )
        ),
    ]
    ops = [
        dataclasses.replace(op, acc_bound=bound(op.weights, op.bias))
        if isinstance(op, Conv2dOp)
        else op
        for op in ops
    ]
    return program(TENSORS, ops, "image", "first both")


@pytest.mark.parametrize("isa", ["c", "neon", "dotprod", "i8mm"])
@pytest.mark.parametrize("claimed", [True, False])
@pytest.mark.parametrize("source", ["x", "larger"])
@pytest.mark.parametrize("most", [WHOLE, HALF])
def test_a_file_that_claims_it(most, source, claimed, isa):
    """Its kernels serve layers that claim fitting weights and have such inputs."""
    if isa not in levels():
        return
    rng = np.random.default_rng(7)
    program = network(rng, source, most)
    file = File(program)
    for name in ("first", "both"):
        if claimed:
            file.step(name).flags = 8 if most == WHOLE else 16
    image = rng.normal(0, 9, (1, 16, 9, 12)).astype(np.float32)
    expected = oracle.run(program, {"image": image})
    with Model.from_bytes(file.content(), isa=isa) as model:
        steps = {step.output: step for step in model.steps}
        assert steps[source].codes == CODES[source]
        fits = claimed and source == "larger" and isa in {"dotprod", "i8mm"}
        for name in ("first", "both"):
            # In int16 it is n8_winograd_gemm_s32_neon, which needs no claim.
            assert steps[name].kernel.endswith(("_winograd", "_winograd_a55")) == fits
        assert differing_bytes(model.session().run({"image": image}), expected) == {}


def layer(rng, channels, out, size, groups):
    """A 3x3 layer of `groups` that keeps the size of its input."""
    shape = (out, 3, 3, channels // groups)
    weights = rng.integers(-99, 100, shape).astype(np.int8)
    bias = rng.integers(-999, 999, out).astype(np.int32)
    tensors = [
        real("image", (1, channels, size, size)),
        level("x", (1, channels, size, size)),
        level("y", (1, out, size, size)),
    ]
    conv = step(
        "Conv2d",
        "y",
        "x",
        weights=weights,
        bias=bias,
        multiplier=np.full(out, 1e-3, np.float32),
        pads=(1, 1, 1, 1),
        groups=groups,
        acc_bound=bound(weights, bias),
    )
    return program(tensors, [step("Quantize", "x", "image"), conv], "image", "y")


@pytest.mark.parametrize(
    ("channels", "out", "size", "groups", "pays"),
    [
        (64, 64, 14, 1, True),
        (8, 8, 14, 1, True),
        (6, 16, 14, 1, True),
        (3, 16, 14, 1, False),
        (3, 64, 14, 1, False),
        (64, 64, 2, 1, False),
        (128, 128, 14, 8, True),
        (64, 64, 14, 32, False),
    ],
)
def test_where_it_pays_in_int16(channels, out, size, groups, pays):
    """As counted in whole layers: both count what they do beside products."""
    if "neon" not in levels():
        return
    rng = np.random.default_rng(7)
    program = layer(rng, channels, out, size, groups)
    image = rng.normal(0, 9, (1, channels, size, size)).astype(np.float32)
    expected = oracle.run(program, {"image": image})
    with Model.from_bytes(File(program).content(), isa="neon") as model:
        assert (model.steps[1].kernel == "n8_winograd_gemm_s32_neon") == pays
        assert differing_bytes(model.session().run({"image": image}), expected) == {}
