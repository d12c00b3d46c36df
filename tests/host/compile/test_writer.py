# SPDX-License-Identifier: Apache-2.0
"""What the writer makes of a Program, and what it refuses."""

import dataclasses

import numpy as np
import pytest

from neon8.compile import writer
from neon8.errors import CompileError
from neon8.ir.program import Program, Tensor
from neon8.operators.conversion import DequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.pooling import PoolOp
from neon8.quant.limits import MAX_TENSORS
from neon8.runtime import Model, library


def small(**changes):
    """x -> conv with residual -> y, and y -> average pool -> z."""
    tensors = {
        name: Tensor(name=name, dims=dims, **options)
        for name, dims, options in (
            ("x", (1, 3, 4, 4), {"scale": np.float32(0.5), "lo": -127}),
            ("é", (1, 2, 4, 4), {"zero_point": -9}),
            ("y", (1, 2, 4, 4), {"scale": np.float32(0.25), "zero_point": 5}),
            ("z", (1, 2, 2, 2), {"zero_point": -128}),
        )
    }
    ops = (
        Conv2dOp(
            name="first",
            inputs=("x", "é"),
            output="y",
            weights=np.arange(-27, 27, dtype=np.int8).reshape(2, 3, 3, 3),
            bias=np.array([-3, 70000], np.int32),
            multiplier=np.array([0.5, 0.125], np.float32),
            residual_scale=np.float32(2.5),
            strides=(1, 1),
            pads=(1, 1, 1, 1),
            lo=5,
            hi=100,
            acc_bound=114928,
        ),
        PoolOp(
            name="last",
            inputs=("y",),
            output="z",
            kind="average",
            kernel=(3, 2),
            strides=(2, 2),
            dilations=(1, 1),
            pads=(0, 0, 1, 0),
            count_pad=True,
            lo=-128,
            hi=127,
        ),
    )
    prog = Program(
        source_digest=bytes(range(32)).hex(),
        tensors=tensors,
        ops=ops,
        inputs=("x", "é"),
        outputs=("z", "y"),
    )
    return dataclasses.replace(prog, **changes)


def test_the_library_reads_it():
    with Model.from_bytes(writer.dumps(small())) as model:
        assert [step.name for step in model.steps] == ["first", "last"]
        assert list(model.inputs) == ["x", "é"]
        assert list(model.outputs) == ["z", "y"]
        assert model.inputs["é"].shape == (1, 2, 4, 4)


def renamed(old, new):
    """The small program with another tensor name."""
    prog = small()
    new_names = {name: new if name == old else name for name in prog.tensors}
    tensors = {
        new_names[name]: dataclasses.replace(tensor, name=new_names[name])
        for name, tensor in prog.tensors.items()
    }
    inputs = tuple(new_names[name] for name in prog.inputs)
    conv, pool = prog.ops
    conv = dataclasses.replace(conv, inputs=inputs)
    return dataclasses.replace(prog, tensors=tensors, inputs=inputs, ops=(conv, pool))


def reshaped(shape):
    prog = small()
    tensors = prog.tensors | {"x": dataclasses.replace(prog.tensors["x"], dims=shape)}
    return dataclasses.replace(prog, tensors=tensors)


def test_longest_name():
    writer.dumps(renamed("x", "n" * 1023))


@pytest.mark.parametrize("reason", ["kept by request", "é" * 700])
def test_why_a_tensor_is_float32(reason):
    prog = small()
    made = Tensor(name="f", dims=(1, 2, 2, 2), dtype="float32", reason=reason)
    step = DequantizeOp(name="real", inputs=("z",), output="f")
    prog = dataclasses.replace(
        prog,
        tensors=prog.tensors | {"f": made},
        ops=(*prog.ops, step),
        outputs=("f",),
    )
    content = writer.dumps(prog)
    with Model.from_bytes(content) as model:
        *others, last = model.steps
        assert last.reason == reason.encode()[:1023].decode(errors="ignore")
        assert not any(step.reason for step in others)


@pytest.mark.parametrize(
    ("prog", "message"),
    [
        (renamed("x", "n" * 1024), "more than 1023 bytes"),
        (renamed("x", "é" * 512), "more than 1023 bytes"),
        (renamed("x", "a\0b"), "has a NUL"),
        (reshaped((1, 2**20 + 1, 1, 1)), "tensor 'x': shape"),
        (reshaped((1, 1, 2**20, 2**11)), "tensor 'x': shape"),
        (reshaped((1, 0, 1, 1)), "tensor 'x': shape"),
        (small(ops=small().ops * 40000), "80000 steps, too many"),
        (small(outputs=("y",) * 65536), "links, too many"),
    ],
)
def test_refusals(prog, message):
    with pytest.raises(CompileError, match=message):
        writer.dumps(prog)


def test_calibration_knows_how_much_a_file_holds():
    ffi = library.declarations(library.find().parent / library.RUNTIME.header)
    assert writer._Layout(ffi).codes["N8_FORMAT_MAX_COUNT"] == MAX_TENSORS
