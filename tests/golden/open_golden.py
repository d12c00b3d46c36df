# SPDX-License-Identifier: Apache-2.0
"""Writes open.n8 and open.json: a network with an open batch, height and width.

    PYTHONPATH=host python3 tests/golden/open_golden.py

As make_golden.py, whose network it borrows from. The digests are of results at several
shapes, each of the network compiled for that shape alone.
"""

import hashlib
import json

import numpy as np
from make_golden import HERE, RELU, RELU6, conv, digest, table, wave

from neon8.compile import oracle, writer
from neon8.compile.lower import lower
from neon8.compile.open_shapes import compile_open, openings
from neon8.ir.graph import Graph, Tensor
from neon8.ir.program import Program
from neon8.operators.movement import Concat
from neon8.operators.pooling import Pool
from neon8.operators.resize import Filter, Resize, nearest, tapped
from neon8.operators.selection import Gather
from neon8.operators.softmax import Softmax
from neon8.settings.shapes import Open

MODEL = HERE / "open.n8"
DIGESTS = HERE / "open.json"
BOUNDS = {"image": (Open(1, 3), 3, Open(6, 40, 2), Open(6, 40, 2))}
SHAPES = [(1, 6, 6), (1, 8, 30), (2, 6, 14), (3, 40, 8), (1, 40, 40)]
"""Batch, height, width."""

# The scheme, the scale and the zero point; those that only move have their source's.
SCALES = {
    "image": ("asymmetric", 0.03125, -20),
    "c1": ("unsigned", 0.0223, -128),
    "dw": ("unsigned", 0.0235, -128),
    "up": ("unsigned", 0.0235, -128),
    "wide": ("unsigned", 0.0235, -128),
    "odd": ("unsigned", 0.0235, -128),
    "join": ("unsigned", 0.0235, -128),
    "pool": ("asymmetric", 0.0091, -30),
    "logits": ("asymmetric", 0.05, 0),
    "p": ("unsigned", 0.0039, -128),
    "cubes": ("asymmetric", 0.03, -100),
    "few": ("asymmetric", 0.03, -90),
}


def resize(
    name: str,
    source: str,
    output: str,
    sizes: tuple[int, int],
    scale: np.float32,
    how: Filter,
    taps: int,
) -> Resize:
    """Rows and columns of these sizes scaled alike."""
    (rows, row_weights), (columns, column_weights) = (
        tapped(size, int(size * scale), scale, "half_pixel", how, taps)
        for size in sizes
    )
    return Resize(
        name=name,
        inputs=(source,),
        output=output,
        rows=rows,
        columns=columns,
        row_weights=row_weights,
        column_weights=column_weights,
    )


def graph(batch: int, height: int, width: int) -> Graph:
    """At one shape: convolutions, resizes of each kind, a slice, a global pool."""
    half = height // 2, width // 2
    shapes = {
        "image": (batch, 3, height, width),
        "c1": (batch, 11, height, width),
        "dw": (batch, 11, *half),
        "up": (batch, 11, height, width),
        "wide": (batch, 11, height, width),
        "odd": (batch, 6, height, width - 3),
        "join": (batch, 22, height, width),
        "pool": (batch, 22, 1, 1),
        "logits": (batch, 10, 1, 1),
        "p": (batch, 10),
        "cubes": (batch, 11, height, width),
        "few": (batch, 11, *half),
    }
    around = (1, 1, 1, 1)
    two = np.float32(2)
    every = np.arange(batch, dtype=np.int32), np.arange(11, dtype=np.int32)
    linear, cubic = Filter(), Filter(cubic=True)
    less = Filter(cubic=True, antialias=True, exclude=True, a=-0.5)
    repeated = [nearest(size, 2 * size, two, "asymmetric", "floor") for size in half]
    tail = np.arange(3, width, dtype=np.int32)
    apart = {"strides": (2, 2), "groups": 11, "activation": RELU6}
    nodes = (
        conv("first", "image", "c1", (11, 3, 3, 3), pads=around, activation=RELU),
        conv("depthwise", "c1", "dw", (11, 1, 3, 3), pads=around, **apart),
        resize("linear", "dw", "up", half, two, linear, 2),
        Gather(
            name="nearest",
            inputs=("dw",),
            output="wide",
            view=shapes["dw"],
            indices=(*every, *repeated),
        ),
        Gather(
            name="slice",
            inputs=("wide",),
            output="odd",
            view=shapes["wide"],
            indices=(
                every[0],
                np.arange(0, 11, 2, dtype=np.int32),
                np.arange(height, dtype=np.int32),
                tail,
            ),
        ),
        Concat(name="concat", inputs=("up", "wide"), output="join", axis=1),
        Pool(
            name="global",
            inputs=("join",),
            output="pool",
            kind="average",
            kernel=(height, width),
        ),
        conv("dense", "pool", "logits", (10, 22, 1, 1)),
        Softmax(name="softmax", inputs=("logits",), output="p", axis=1),
        resize("cubic", "dw", "cubes", half, two, cubic, 4),
        resize("less", "c1", "few", (height, width), np.float32(0.5), less, 8),
    )
    return Graph(
        name="open",
        digest=hashlib.sha256(b"open").hexdigest(),
        tensors={name: Tensor(name, shape) for name, shape in shapes.items()},
        nodes=nodes,
        inputs=("image",),
        outputs=("odd", "join", "p", "cubes", "few"),
    )


def program(batch: int, height: int, width: int) -> Program:
    """The Program of one shape."""
    net = graph(batch, height, width)
    return lower(net, table(net, given=SCALES))


def template() -> Program:
    """That of all shapes."""

    def compile_at(shapes):
        batch, _channels, height, width = shapes["image"]
        return program(batch, height, width)

    names = {"image": [f"image[{axis}]" for axis in range(4)]}
    return compile_open(openings(BOUNDS, names), compile_at)


def inputs(batch: int, height: int, width: int) -> dict[str, np.ndarray]:
    """What the network is run on."""
    shape = (batch, 3, height, width)
    return {"image": 4 * wave(int(np.prod(shape)), 7).reshape(shape)}


def make() -> tuple[bytes, dict[str, object]]:
    """The file, and the digests of it and of the outputs at each of SHAPES."""
    content = writer.dumps(template())
    outputs = {}
    for shape in SHAPES:
        results = oracle.run(program(*shape), inputs(*shape))
        named = {name: digest(array) for name, array in results.items()}
        outputs["x".join(map(str, shape))] = named
    return content, {"file": hashlib.sha256(content).hexdigest(), "outputs": outputs}


if __name__ == "__main__":
    golden, digests = make()
    MODEL.write_bytes(golden)
    DIGESTS.write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
