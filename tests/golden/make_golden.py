# SPDX-License-Identifier: Apache-2.0
"""Writes small.n8 and small.json: one network whose file and results must never change.

wide.n8 and wide.json are of the same network with 16 bits between its ends, factors.n8
and factors.json of one with a function and a product between channels with factors,
indexed.n8 and indexed.json of one that also chooses, takes and puts values, and keeps
boxes: the fuzzer makes its indices wild.

    PYTHONPATH=host python3 tests/golden/make_golden.py

Run it only after a deliberate change of the format, of lowering or of docs/numerics.md,
and say so in CHANGELOG.md. All numbers come from formulas, none from a generator.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from neon8.compile import oracle, writer
from neon8.compile.lower import lower
from neon8.ir.graph import Activation, Graph, Node, Tensor
from neon8.operators.arithmetic import Add, Multiply
from neon8.operators.boxes import Suppression
from neon8.operators.convolution import Conv2d
from neon8.operators.functions import X, call, gated
from neon8.operators.indexed import Places, Put, Take
from neon8.operators.movement import Concat, Reshape
from neon8.operators.pointwise import Pointwise
from neon8.operators.pooling import Pool
from neon8.operators.ranking import Top
from neon8.operators.softmax import Softmax
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale

HERE = Path(__file__).parent
NAMES = ("small", "wide", "factors", "indexed")
WIDE_BITS = 16
WIDER = 2 ** (WIDE_BITS - 8)
"""Levels of a tensor of 16 bits for each of 8."""


def model(name: str) -> Path:
    """The file of one of NAMES."""
    return HERE / f"{name}.n8"


def digests_of(name: str) -> Path:
    """The digests of it."""
    return HERE / f"{name}.json"


RELU = Activation(lo=0.0)
RELU6 = Activation(lo=0.0, hi=6.0)
LEAKY = Activation(slope=0.1)

# name: (N C H W, rank, scheme, scale, zero point)
TENSORS = {
    "image": ((2, 3, 9, 7), 4, "asymmetric", 0.03125, -20),
    "c1": ((2, 11, 9, 7), 4, "unsigned", 0.0223, -128),
    "dw": ((2, 11, 5, 4), 4, "unsigned", 0.0235, -128),
    "pw": ((2, 12, 5, 4), 4, "symmetric", 0.0402, 0),
    "c2": ((2, 12, 5, 4), 4, "asymmetric", 0.0317, 11),
    "sum": ((2, 12, 5, 4), 4, "unsigned", 0.0281, -128),
    "gate": ((2, 4, 5, 4), 4, "asymmetric", 0.0173, -77),
    "max": ((2, 4, 5, 4), 4, "asymmetric", 0.0173, -77),
    "mean": ((2, 4, 5, 4), 4, "symmetric", 0.0211, 0),
    "join": ((2, 8, 5, 4), 4, "asymmetric", 0.0181, -60),
    "pool": ((2, 8, 1, 1), 4, "asymmetric", 0.0091, -30),
    "logits": ((2, 10, 1, 1), 2, "asymmetric", 0.05, 0),
    "p": ((2, 10, 1, 1), 2, "unsigned", 0.0039, -128),
}

# Inputs of "indexed", too.
INDEXED = {
    "rows": ((2, 3, 5, 4), 4, "unsigned", 0.0281, -128),
    "put": ((2, 12, 5, 4), 4, "unsigned", 0.0281, -128),
    "corners": ((2, 20, 4, 1), 3, "asymmetric", 0.0173, -77),
    "marks": ((2, 4, 20, 1), 3, "symmetric", 0.0211, 0),
}


def wave(count: int, start: int) -> np.ndarray:
    """`count` floats in [-1, 1) without a pattern that could hide a fault."""
    numbers = np.arange(start, start + count, dtype=np.int64)
    return ((numbers * numbers * 31 + numbers * 17) % 256 / 128 - 1).astype(np.float32)


def conv(name, source, output, shape, **options) -> Conv2d:
    """A convolution with weights (O, I / groups, kh, kw) from `wave`."""
    size = int(np.prod(shape))
    gain = np.float32(1.5 / np.sqrt(size / shape[0]))
    return Conv2d(
        name=name,
        inputs=(source,),
        output=output,
        weight=wave(size, len(name) + size).reshape(shape) * gain,
        bias=wave(shape[0], size) * np.float32(0.5),
        pre_activation=output,
        **options,
    )


def graph(name: str = "small") -> Graph:
    """Each kind of layer once, two outputs, one of which is read on."""
    around = (1, 1, 1, 1)
    middle = (
        conv("second", "pw", "c2", (12, 6, 3, 3), pads=around, groups=2),
        Add(name="add", inputs=("c2", "pw"), output="sum", activation=RELU),
    )
    if name == "factors":
        silu = gated(call("sigmoid", X))
        middle = (
            Pointwise(name="silu", inputs=("pw",), output="c2", function=silu),
            Multiply(name="times", inputs=("c2", "pw"), output="sum", activation=RELU),
        )
    nodes = (
        conv("first", "image", "c1", (11, 3, 3, 3), pads=around, activation=RELU),
        conv(
            "depthwise",
            "c1",
            "dw",
            (11, 1, 3, 3),
            pads=around,
            strides=(2, 2),
            groups=11,
            activation=RELU6,
        ),
        conv("pointwise", "dw", "pw", (12, 11, 1, 1), activation=LEAKY),
        *middle,
        conv("gate", "sum", "gate", (4, 12, 1, 3), pads=(0, 1, 0, 1)),
        Pool(
            name="maxpool",
            inputs=("gate",),
            output="max",
            kind="max",
            kernel=(3, 3),
            pads=around,
        ),
        Pool(
            name="meanpool",
            inputs=("gate",),
            output="mean",
            kind="average",
            kernel=(3, 3),
            pads=around,
            count_pad=True,
        ),
        Concat(name="concat", inputs=("max", "mean"), output="join", axis=1),
        Pool(
            name="global",
            inputs=("join",),
            output="pool",
            kind="average",
            kernel=(5, 4),
        ),
        conv("dense", "pool", "logits", (10, 8, 1, 1)),
        Softmax(name="softmax", inputs=("logits",), output="p", axis=1),
    )
    outputs = ("sum", "p")
    tensors = {
        name: Tensor(name, shape[:rank])
        for name, (shape, rank, *_) in tensors_of(name).items()
    }
    if name == "indexed":
        nodes += indexed()
        outputs = ("sum", "p", "put", "best", "kept")
        tensors["best"] = Tensor("best", (2, 3), dtype="int64")
        tensors["kept"] = Tensor("kept", (24, 3), dtype="int64")
    return Graph(
        name="small",
        digest=hashlib.sha256(b"small").hexdigest(),
        tensors=tensors,
        nodes=nodes,
        inputs=("image",),
        outputs=outputs,
    )


def tensors_of(name: str) -> dict[str, tuple]:
    """What TENSORS says, of the network with this name."""
    return TENSORS | (INDEXED if name == "indexed" else {})


def indexed() -> tuple[Node, ...]:
    """The best of the logits; channels of "sum", put to others; boxes of "max"."""
    places = Places(outer=2, count=3, inner=20, sizes=(3, 4))
    first, second = (
        np.array(numbers, np.int32) for numbers in ([0, 1, 2, 3, -1, -1], [2] * 6)
    )
    return (
        Top(name="top", inputs=("logits",), output="best", view=(2, 10, 1), count=3),
        Take(
            name="take",
            inputs=("sum",),
            output="rows",
            places=places,
            constants={1: first},
        ),
        Put(
            name="put",
            inputs=("sum", "rows"),
            output="put",
            places=places,
            constants={1: second},
            function="maximum",
        ),
        Reshape(name="boxes", inputs=("max",), output="corners"),
        Reshape(name="scores", inputs=("mean",), output="marks"),
        Suppression(
            name="keep",
            inputs=("corners", "marks"),
            output="kept",
            overlap=0.25,
            threshold=0.0,
            centred=False,
        ),
    )


# The exponents of factors in "factors" repeat after so many channels.
FACTORS = {"pw": 3, "c2": 2}

# What is of 16 bits in "wide": what the steps between the ends take and give.
WIDE = {"c1", "pw", "c2", "sum", "gate", "max", "mean", "join"}


def factors_of(tensor: str) -> tuple[float, ...]:
    """Powers of 2, or none."""
    if tensor not in FACTORS:
        return ()
    channels = TENSORS[tensor][0][1]
    return tuple(0.5 ** (channel % FACTORS[tensor]) for channel in range(channels))


def table(
    net: Graph, name: str = "small", given: dict[str, tuple] | None = None
) -> ScaleTable:
    """Scales from TENSORS, or from `given`; weight scales from the weights."""
    if given is None:
        given = {tensor: row[2:] for tensor, row in tensors_of(name).items()}
    scales = {}
    for tensor, (scheme, scale, zero_point) in given.items():
        wider = WIDER if name == "wide" and tensor in WIDE else 1
        scales[tensor] = TensorScale(
            scale=scale / wider,
            zero_point=zero_point * wider,
            scheme=scheme,
            threshold=(0.0, 0.0),
            min=0.0,
            max=0.0,
            bits=8 if wider == 1 else WIDE_BITS,
            factors=factors_of(tensor) if name == "factors" else (),
        )
    layers = {}
    for node in net.nodes:
        if isinstance(node, Conv2d):
            largest = np.abs(node.weight).max(axis=(1, 2, 3)) / np.float32(127)
            layers[node.name] = LayerScale(
                input=node.inputs[0], weight_scales=tuple(map(float, largest))
            )
    return ScaleTable(
        model_name="small.onnx",
        model_digest=net.digest,
        method="mse",
        scheme="auto",
        samples=1,
        engine="none",
        tensors=scales,
        layers=layers,
    )


def inputs() -> dict[str, np.ndarray]:
    """What the network is run on."""
    shape = TENSORS["image"][0]
    return {"image": 4 * wave(int(np.prod(shape)), 7).reshape(shape)}


def digest(array: np.ndarray) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(array.tobytes()).hexdigest()


def make(name: str) -> tuple[bytes, dict[str, object]]:
    """The file, and the digests of the file, of the inputs and of the outputs."""
    net = graph(name)
    program = lower(net, table(net, name))
    content = writer.dumps(program)
    results = oracle.run(program, inputs())
    return content, {
        "file": hashlib.sha256(content).hexdigest(),
        "inputs": {name: digest(array) for name, array in inputs().items()},
        "outputs": {name: digest(array) for name, array in results.items()},
    }


if __name__ == "__main__":
    for which in NAMES:
        golden, digests = make(which)
        model(which).write_bytes(golden)
        digests_of(which).write_text(
            json.dumps(digests, indent=2) + "\n", encoding="utf-8"
        )
