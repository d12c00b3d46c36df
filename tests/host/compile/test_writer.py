# SPDX-License-Identifier: Apache-2.0
"""The .n8 file, read back with struct alone, as neon8_format.h describes it."""

import dataclasses
import itertools
import struct
import zlib

import numpy as np
import pytest

from neon8.compile import writer
from neon8.errors import CompileError
from neon8.ir.program import Program, Tensor
from neon8.operators.conversion import DequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.pooling import PoolOp
from neon8.runtime import Model

HEADER = struct.Struct("<8sIIQ32sIIIIIIQQQQQQ")
TENSOR = struct.Struct("<III8ifiiiI")
OP = struct.Struct("<6I2i2i2i2i2iii ii ffff II 9Q".replace(" ", ""))
ONES = (1, 1, 1, 1)
TABLES = ("tensors", "ops", "links", "strings", "data")


@dataclasses.dataclass
class File:
    """A file taken apart."""

    content: bytes
    checksum: int
    counts: tuple[int, ...]
    at: dict[str, int]
    data_size: int

    def tensor(self, index):
        return TENSOR.unpack_from(
            self.content, self.at["tensors"] + index * TENSOR.size
        )

    def op(self, index):
        return OP.unpack_from(self.content, self.at["ops"] + index * OP.size)

    def links(self):
        return struct.unpack_from(f"<{self.counts[2]}I", self.content, self.at["links"])

    def name(self, offset):
        start = self.at["strings"] + offset
        return self.content[start : self.content.index(b"\0", start)].decode()


def taken_apart(content):
    magic, version, checksum, size, digest, *rest = HEADER.unpack_from(content)
    assert magic == b"\x89N8\r\n\x1a\n\0"
    assert version == 2
    assert size == len(content)
    assert digest == bytes(range(32))
    return File(
        content,
        checksum,
        rest[:6],
        dict(zip(TABLES, rest[6:11], strict=True)),
        rest[11],
    )


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


def test_structs_have_the_sizes_of_the_header():
    assert (HEADER.size, TENSOR.size, OP.size) == (128, 64, 176)


def test_header_and_layout():
    file = taken_apart(writer.dumps(small()))
    assert file.counts == [4, 2, 7, 2, 2, len("x é y z first last ".encode())]
    assert file.checksum == zlib.crc32(file.content[16:])
    assert list(file.at.values()) == sorted(file.at.values())
    assert all(at % 8 == 0 for at in file.at.values())
    assert file.at["data"] % 64 == 0
    assert file.at["data"] + file.data_size == len(file.content)
    # Whatever no table covers is zero.
    sizes = {
        "tensors": 4 * TENSOR.size,
        "ops": 2 * OP.size,
        "links": 7 * 4,
        "strings": file.counts[5],
    }
    for name, after in itertools.pairwise(TABLES):
        gap = file.content[file.at[name] + sizes[name] : file.at[after]]
        assert gap.strip(b"\0") == b""


def test_tensors_and_links():
    file = taken_apart(writer.dumps(small()))
    rows = [file.tensor(index) for index in range(4)]
    assert [file.name(row[0]) for row in rows] == ["x", "é", "y", "z"]
    assert rows[0][1:] == (1, 4, 1, 3, 4, 4, *ONES, 0.5, 0, -127, 127, 0)
    assert rows[1][1:] == (1, 4, 1, 2, 4, 4, *ONES, 1.0, -9, -128, 127, 0)
    # Inputs, outputs, then what each op reads.
    assert file.links() == (0, 1, 3, 2, 0, 1, 2)


def test_convolution():
    file = taken_apart(writer.dumps(small()))
    kind, name, first, count, output, flags, *rest = file.op(0)
    assert (kind, file.name(name), first, count, output, flags) == (
        *(3, "first", 4, 2, 2),
        0,
    )
    assert rest[:10] == [3, 3, 1, 1, 1, 1, 1, 1, 1, 1]
    assert rest[10:20] == [1, 0, 5, 100, 0.0, 2.5, 1.0, 0.0, 0, 2]
    weights, bias, multiplier, *others, bound = rest[20:]
    assert (others, bound) == ([0] * 5, 114928)
    assert all(at % 64 == 0 for at in (weights, bias, multiplier))
    values = np.frombuffer(file.content, np.int8, 54, weights)
    assert values.tolist() == list(range(-27, 27))
    assert struct.unpack_from("<2i", file.content, bias) == (-3, 70000)
    assert struct.unpack_from("<2f", file.content, multiplier) == (0.5, 0.125)


def test_average_pool():
    file = taken_apart(writer.dumps(small()))
    kind, _, first, count, output, flags, *rest = file.op(1)
    assert (kind, first, count, output, flags) == (7, 6, 1, 3, 1)
    assert rest[:10] == [3, 2, 2, 2, 1, 1, 0, 0, 1, 0]
    assert rest[10:] == [1, 0, -128, 127, 0.0, 0.0, 1.0, 0.0, 0, 2, *[0] * 9]


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
