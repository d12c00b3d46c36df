# SPDX-License-Identifier: Apache-2.0
"""What is measured: thirteen layers and some networks, with random weights.

Each is an ONNX network whose weights are normal, as those of trained layers nearly are,
calibrated and compiled as any other. A layer is then run by itself, through
n8_conv2d_run; a network as a whole. The same bytes every time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

import neon8
from bench.networks import catalogue, samples, weights
from bench.networks.attention import attend
from bench.networks.builder import Net
from neon8.arrays import Int8Array
from neon8.compile import lower, oracle
from neon8.ir.program import Program
from neon8.operators.conversion import RequantizeOp
from neon8.operators.convolution import Conv2dOp

Arguments = tuple[str | Path, ...]
Random = np.random.Generator
Drawn = tuple[Net, onnx.ModelProto]

OPSET = 13
OPSET_OF_TOKENS = 20
SEED = 8
SAMPLES = 32
PIXEL_ALIGN = 8
RESERVED = (0,) * 6
"""What n8_conv2d_shape ends in."""
SLACK = 64
"""Bytes that must be readable after the last pixel of an input."""


def drawn(net: Net) -> Drawn:
    """The network with its weights."""
    return net, weights.model(net, weights.draw(net))


def conv(
    channels: tuple[int, int],
    kernel: int,
    stride: int,
    size: int,
    groups: int = 1,
    *,
    relu: bool = False,
) -> Drawn:
    """A convolution of `size` x `size` pixels, padded by half its kernel.

    relu: of what a ReLU leaves.
    """
    inside, out = channels
    net = Net("layer", OPSET, seed=SEED)
    x = net.input("x", inside, size, size)
    x = net.relu(x) if relu else x
    options = {"stride": stride, "pads": [kernel // 2] * 4, "groups": groups}
    net.output(net.conv(x, "conv", out, kernel, plain=True, **options), "y")
    return drawn(net)


def fully_connected(inside: int, out: int) -> Drawn:
    """One pixel."""
    net = Net("layer", OPSET, seed=SEED)
    net.output(net.linear(net.input("x", inside), "fc", out), "y")
    return drawn(net)


def attention(tokens: int, heads: int, width: int) -> Drawn:
    """softmax(Q K^T) V of heads, from one projection to the joined heads.

    Q, K and V are the input, as (3, heads, width, tokens): the channels of pixels.
    """
    net = Net("attention", OPSET, seed=SEED)
    x = net.transpose(net.input("x", 3 * heads * width, tokens), 0, 2, 1)
    parts = net.transpose(net.reshape(x, 1, tokens, 3, heads, width), 2, 0, 3, 1, 4)
    q, k, v = (net.take(parts, at, 0) for at in range(3))
    joined = attend(net, q, k, v, shared=False)
    net.output(net.transpose(joined, 0, 2, 1), "y")
    return drawn(net)


def token_net(operator: str, tokens: int, channels: int) -> Drawn:
    """A LayerNormalization or a Gelu of tokens; a value counts as a MAC."""
    net = Net("values", OPSET_OF_TOKENS, seed=SEED)
    x = net.input("x", tokens, channels)
    net.macs += tokens * channels
    norm = operator == "LayerNormalization"
    net.output(net.layer_norm(x, "norm") if norm else net.gelu(x), "y")
    return drawn(net)


def lstm(steps: int, inside: int, hidden: int) -> Drawn:
    """One direction, of one sequence."""
    net = Net("layer", OPSET, seed=SEED)
    x = net.transpose(net.input("x", inside, steps), 2, 0, 1)
    net.output(net.lstm(x, "rnn", hidden), "y")
    return drawn(net)


AT_ANY_COST = 100.0
"""dB, more than four products in 16 bits cost any layer."""

SMALL_NET = (
    (16, 3, 2, 1),
    (16, 3, 1, 16),
    (32, 1, 1, 1),
    (32, 3, 2, 32),
    (64, 1, 1, 1),
    (64, 3, 1, 1),
    (64, 3, 2, 64),
    (128, 1, 1, 1),
)
"""Output channels, kernel, stride, groups."""


def small_net() -> Drawn:
    """A small MobileNet of 96 x 96 pixels, with one 3x3 convolution among the 1x1."""
    net = Net("net", OPSET, seed=SEED)
    x = net.input("x", 3, 96, 96)
    for number, (out, kernel, stride, groups) in enumerate(SMALL_NET):
        options = {"stride": stride, "pads": [kernel // 2] * 4, "groups": groups}
        x = net.relu(net.conv(x, f"{number}", out, kernel, plain=True, **options))
    x = net.op("Flatten", [net.op("GlobalAveragePool", [x])])
    net.output(net.linear(x, "fc", 100), "y")
    return drawn(net)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    name: for people; draw: makes the network; ends: types of the inputs and outputs of
    one that is run as a whole, or "" for a layer; fast: it is calibrated with --fast;
    most_loss: dB that --accumulator-aware may cost, or None without it.
    """

    name: str
    draw: Callable[[], Drawn]
    ends: str = ""
    fast: bool = False
    most_loss: float | None = None


NETWORKS = (
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "squeezenet1_1",
    "resnet18",
    "resnet50",
    "keyword_spotter",
)
"""Networks of docs/networks.md, from float32 to float32."""

ROWS = {
    "pw64-256": Row("1x1 64→256 @56", lambda: conv((64, 256), 1, 1, 56)),
    "pw256-64": Row("1x1 256→64 @56", lambda: conv((256, 64), 1, 1, 56)),
    "pw256-64-aware": Row(
        "... compiled with `--accumulator-aware`",
        lambda: conv((256, 64), 1, 1, 56),
        most_loss=AT_ANY_COST,
    ),
    "pw512-2048": Row("1x1 512→2048 @7", lambda: conv((512, 2048), 1, 1, 7)),
    "c3-64": Row("3x3 s1 64 @56", lambda: conv((64, 64), 3, 1, 56)),
    "c3-64-fast": Row(
        "... after ReLU, calibrated with `--fast`",
        lambda: conv((64, 64), 3, 1, 56, relu=True),
        fast=True,
    ),
    "c3-256": Row("3x3 s1 256 @14", lambda: conv((256, 256), 3, 1, 14)),
    "c3-256-fast": Row(
        "... after ReLU, calibrated with `--fast`",
        lambda: conv((256, 256), 3, 1, 14, relu=True),
        fast=True,
    ),
    "c3s2-128": Row("3x3 s2 128 @56", lambda: conv((128, 128), 3, 2, 56)),
    "c7s2-3": Row("7x7 s2 3→64 @224", lambda: conv((3, 64), 7, 2, 224)),
    "dw3-144": Row("dw 3x3 s1 144 @56", lambda: conv((144, 144), 3, 1, 56, 144)),
    "dw3s2-144": Row("dw 3x3 s2 144 @56", lambda: conv((144, 144), 3, 2, 56, 144)),
    "fc2048-1000": Row("FC 2048→1000", lambda: fully_connected(2048, 1000)),
    "attention49": Row(
        "attention of 49 tokens, heads of 32", lambda: attention(49, 3, 32), ends="int8"
    ),
    "attention196-32": Row(
        "... of 196 tokens", lambda: attention(196, 3, 32), ends="int8"
    ),
    "attention196-64": Row(
        "... of 196 tokens, heads of 64", lambda: attention(196, 3, 64), ends="int8"
    ),
    "attention1500-64": Row(
        "... of 1500 tokens, heads of 64", lambda: attention(1500, 1, 64), ends="int8"
    ),
    "norm192": Row(
        "LayerNormalization 192 @196",
        lambda: token_net("LayerNormalization", 196, 192),
        ends="int8",
    ),
    "gelu768": Row("Gelu 768 @196", lambda: token_net("Gelu", 196, 768), ends="int8"),
    "lstm128": Row("LSTM 40→128, 98 steps", lambda: lstm(98, 40, 128), ends="float"),
    "net": Row("the small net", small_net, ends="int8"),
    "net-fast": Row("... calibrated with `--fast`", small_net, ends="int8", fast=True),
    **{
        name: Row(name, partial(catalogue.build, name), ends="float")
        for name in NETWORKS
    },
}
"""By their names on the command line, in the order of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row, ready to be measured.

    arguments: of guest.c, but for the output's file; expected: what that must hold;
    macs: multiply-accumulates of a run, those with padding included.
    """

    key: str
    macs: int
    arguments: Arguments
    expected: bytes


def make(key: str, folder: Path) -> Case:
    """Compile a row into `folder` and run it on this machine."""
    row = ROWS[key]
    net, proto = row.draw()
    path = folder / f"{key}.onnx"
    onnx.save(proto, path)
    rng = np.random.default_rng(SEED)
    ((name, shape),) = ((name, net.shape(name)[1:]) for name in net.inputs)
    data = rng.standard_normal((SAMPLES, *shape), np.float32)
    if row.ends == "float":
        images = samples.images({name: shape}, SAMPLES, seed=SEED)
        data = np.concatenate([each[name] for each in images])
    # calibrate_model() would leave out what costs accuracy.
    seen = neon8.observe_model(path, data)
    table = neon8.solve_observation(seen, path, method="minmax", fast=row.fast)
    if row.ends:
        content = neon8.compile_model(path, table, io=row.ends)
        arguments, expected = make_model(folder / key, content, data[0], rng)
    else:
        graph = neon8.load_graph(path)
        program = lower.lower(graph, table, io="int8", max_sqnr_loss=row.most_loss)
        arguments, expected = make_layer(folder / key, program, rng)
    return Case(key=key, macs=net.macs, arguments=arguments, expected=expected)


def make_model(
    base: Path, content: bytes, image: np.ndarray, rng: Random
) -> tuple[Arguments, bytes]:
    """Files of a .n8 model and its input; the output's bytes.

    image: the input, if that is float32.
    """
    file = base.with_suffix(".n8")
    neon8.save_model(content, file)
    source = base.with_suffix(".in")
    with neon8.Model.open(file) as model, model.session(threads=1) as session:
        ((name, info),) = model.inputs.items()
        x = image[None]
        if info.dtype == "int8":
            x = rng.integers(info.lo, info.hi, info.shape, np.int8, endpoint=True)
        (y,) = session.run({name: x}).values()
    source.write_bytes(x.tobytes())
    return ("model", file, source), y.tobytes()


def make_layer(base: Path, program: Program, rng: Random) -> tuple[Arguments, bytes]:
    """A file for guest.c of a Program's only convolution; the output's bytes."""
    (op,) = (op for op in program.ops if isinstance(op, Conv2dOp))
    source, target = (program.tensors[name] for name in (op.inputs[0], op.output))
    _, channels, height, width = source.shape
    shape = (1, height, width, channels)
    before = [each for each in program.ops if isinstance(each, RequantizeOp)]
    lo, hi = next(((each.lo, each.hi) for each in before), (source.lo, source.hi))
    x = rng.integers(lo, hi, shape, np.int8, endpoint=True)
    y = oracle.step(program, op, target, [x.transpose(0, 3, 1, 2)])
    geometry = (
        *(*shape, *y.shape[2:], y.shape[1], *op.weights.shape[1:3]),
        *(*op.strides, *op.dilations, *op.pads[:2], op.groups),
        *(lo, hi),
    )
    numbers = (source.zero_point, target.zero_point, op.lo, op.hi)
    parts = (
        np.array(geometry + RESERVED + numbers, np.int32),
        op.multiplier,
        op.bias,
        op.weights,
        padded(x),
        np.zeros(SLACK, np.int8),
    )
    file = base.with_suffix(".layer")
    file.write_bytes(b"".join(part.tobytes() for part in parts))
    return ("layer", file), padded(y.transpose(0, 2, 3, 1)).tobytes()


def padded(x: Int8Array) -> Int8Array:
    """N H W C with pixels of 8 n bytes."""
    room = -x.shape[-1] % PIXEL_ALIGN
    return np.pad(x, [(0, 0), (0, 0), (0, 0), (0, room)])
