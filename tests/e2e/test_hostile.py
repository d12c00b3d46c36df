# SPDX-License-Identifier: Apache-2.0
"""Well-formed models that mean ill: what opening costs, and what is refused."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.compile import writer
from neon8.errors import ModelError
from neon8.ir.program import Tensor
from neon8.runtime import Model
from opened_file import File, refusal, said_of
from programs import program, step
from random_steps import inside

SECONDS = 2


def tensor(name, shape, **fields):
    return Tensor(name=name, dims=shape, **fields)


def program_of(source, results, ops):
    return program([source, *results], ops, source.name, results[-1].name)


def pool(source, out, kind="max", **fields):
    given = {"kernel": (1, 1), "strides": (1, 1), "dilations": (1, 1)} | fields
    pads = given.pop("pads", (0, 0, 0, 0))
    return step("Pool", out.name, source.name, kind=kind, pads=pads, **given)


def opens(program) -> bool:
    try:
        Model.from_bytes(writer.dumps(program)).close()
    except ModelError:
        return False
    return True


@given(
    kernel=st.integers(1, 6),
    stride=st.integers(1, 9),
    dilation=st.integers(1, 9),
    pad=st.integers(0, 24),
    size=st.integers(1, 8),
    out=st.integers(1, 12),
)
def test_windows_of_a_pool_touch_the_input(kernel, stride, dilation, pad, size, out):
    source, result = tensor("x", (1, 1, 1, size)), tensor("y", (1, 1, 1, out))
    step = pool(
        source,
        result,
        kernel=(1, kernel),
        strides=(1, stride),
        dilations=(1, dilation),
        pads=(0, pad, 0, 0),
    )
    axis = (kernel, stride, dilation, pad, 0, out)
    assert opens(program_of(source, [result], [step])) == inside(axis, size)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kernel": (1, 2**19 + 1), "dilations": (1, 2), "pads": (0, 2**20, 0, 0)},
        {"kernel": (1, 2), "dilations": (1, 2**20), "pads": (0, 2**20, 0, 0)},
    ],
)
def test_wide_pools_open_at_once(fields):
    """Thousands of axes of a million windows each, in half a megabyte."""
    wide = [tensor(f"t{index}", (1, 1, 1, 2**20)) for index in range(3000)]
    steps = [
        pool(before, after, **fields) for before, after in itertools.pairwise(wide)
    ]
    content = writer.dumps(program_of(wide[0], wide[1:], steps))
    start = time.process_time()
    Model.from_bytes(content).close()
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    ("from_scale", "to_scale", "accepted"),
    [
        (1, 1, True),
        (2.0**64, 1, True),
        (2.0**65, 1, False),
        (1, 1e29, True),
        (1, 1e30, False),
        (1e30, 1e-30, False),
        (1e-30, 1e30, False),
    ],
)
def test_average_pool_has_a_normal_multiplier(from_scale, to_scale, accepted):
    source = tensor("x", (1, 1, 2, 2), scale=np.float32(from_scale))
    result = tensor("y", (1, 1, 1, 1), scale=np.float32(to_scale))
    step = pool(source, result, "average", kernel=(2, 2))
    assert opens(program_of(source, [result], [step])) == accepted


def test_layers_do_not_share_arrays():
    """Each use is packed on its own: shared ones would multiply what a file costs."""
    tensors = [tensor(name, (1, 64, 1, 1)) for name in "xyz"]
    ops = [
        step(
            "Conv2d",
            after.name,
            before.name,
            weights=np.ones((64, 1, 1, 64), np.int8),
            bias=np.zeros(64, np.int32),
            multiplier=np.ones(64, np.float32),
            bias_f32=None,
            slopes=None,
            residual_scale=np.float32(0),
            strides=(1, 1),
            dilations=(1, 1),
            pads=(0, 0, 0, 0),
            groups=1,
            lo=-128,
            hi=127,
            acc_bound=64 * 128,
        )
        for before, after in itertools.pairwise(tensors)
    ]
    file = File(program_of(tensors[0], tensors[1:], ops))
    Model.from_bytes(file.content()).close()
    first, second = file.step("y"), file.step("z")
    size = second.weights
    for name in ("weights", "bias", "multiplier"):
        setattr(second, name, getattr(first, name))
    file.header.file_size = size
    file.header.data_size = size - file.header.data
    file.bytes = file.bytes[:size]  # without the arrays that nothing reads any more
    reason = "its arrays are not where they must be"
    assert refusal(file.content()) == said_of("z", reason)
