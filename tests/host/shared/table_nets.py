# SPDX-License-Identifier: Apache-2.0
"""Small networks with whole scale tables, for the tests of formats."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neon8.calibrate.run.reference import Reference
from neon8.formats.attach import attach, complete
from neon8.formats.conversion import convert_table as convert
from neon8.formats.foreign_table import ForeignTable, QuantParams, Range, to_params
from neon8.formats.registry import NAMES
from neon8.graph.importer import load
from neon8.ir.graph import Graph
from neon8.pipeline import save_table
from neon8.quant import table_json
from neon8.quant.scale_table import ScaleTable
from onnx_nets import net, node, random_inputs_of, save


@dataclass(frozen=True, slots=True)
class Case:
    """A network in a file, its table, and samples for it."""

    path: Path
    graph: Graph
    table: ScaleTable
    samples: list[dict[str, np.ndarray]]


def mixed():
    """Every operator, fused and not, with residual sums and several ranks."""
    rng = np.random.default_rng(7)
    weights = {}

    def w(name, *shape):
        array = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)
        weights[name] = array.astype(np.float32)
        return name

    nodes = [
        node("Conv", f"x {w('w0', 8, 3, 3, 3)} {w('b0', 8)}", "c0", "conv0",
             pads=[1] * 4),
        node("Relu", "c0", "r0", "relu0"),
        node("MaxPool", "r0", "p0", "pool0", kernel_shape=[3, 3], strides=[2, 2],
             ceil_mode=1),
        node("Conv", f"p0 {w('w1', 8, 1, 3, 3)} {w('b1', 8)}", "c1", "dw1",
             pads=[1] * 4, group=8),
        node("LeakyRelu", "c1", "l1", "leaky1", alpha=0.1),
        node("Conv", f"l1 {w('w2', 8, 8, 1, 1)} {w('b2', 8)}", "c2", "pw2"),
        node("Add", "c2 p0", "a2", "add2"),
        node("Relu", "a2", "r2", "relu2"),
        node("Conv", f"r2 {w('w3', 4, 8, 3, 3)} {w('b3', 4)}", "c3", "conv3",
             pads=[1] * 4),
        node("Clip", "c3 lo hi", "k3", "clip3"),
        node("Concat", "k3 r2", "cat", "cat", axis=1),
        node("AveragePool", "cat", "avg", "avg", kernel_shape=[2, 2], strides=[2, 2],
             pads=[1, 1, 0, 0], count_include_pad=1),
        node("Add", "avg avg2", "sum", "sum"),
        node("AveragePool", "cat", "avg2", "avg2", kernel_shape=[2, 2],
             strides=[2, 2], pads=[1, 1, 0, 0]),
        node("Flatten", "sum", "flat", "flat"),
        node("Gemm", f"flat {w('w4', 10, 12 * 4)} {w('b4', 10)}", "g4", "fc4",
             transB=1),
        node("Relu", "g4", "r4", "relu4"),
        node("Gemm", f"r4 {w('w5', 10, 5)} {w('b5', 5)}", "g5", "fc5"),
        node("Softmax", "g5", "y", "soft", axis=1),
        node("GlobalAveragePool", "l1", "z", "gap"),
    ]  # fmt: skip
    nodes[12], nodes[13] = nodes[13], nodes[12]
    weights |= {"lo": np.float32(-0.2), "hi": np.float32(0.9)}
    return net(nodes, {"x": (1, 3, 9, 9)}, "y z", weights)


def residual():
    """Two blocks as of ResNet: around one nothing, around the other a convolution."""
    rng = np.random.default_rng(11)
    weights = {}

    def conv(source, name, inputs, outputs, size, stride=1):
        spread = 1 / np.sqrt(inputs * size * size)
        shape = (outputs, inputs, size, size)
        weights[f"{name}_w"] = rng.normal(0, spread, shape).astype(np.float32)
        weights[f"{name}_b"] = rng.normal(0, 0.1, outputs).astype(np.float32)
        return node(
            "Conv",
            f"{source} {name}_w {name}_b",
            name,
            name,
            pads=[size // 2] * 4,
            strides=[stride] * 2,
        )

    nodes = [
        conv("x", "c0", 3, 8, 3),
        node("Relu", "c0", "r0"),
        conv("r0", "c1", 8, 8, 3),
        node("Relu", "c1", "r1"),
        conv("r1", "c2", 8, 8, 3),
        node("Add", "r0 c2", "a2"),
        node("Relu", "a2", "r2"),
        conv("r2", "c3", 8, 16, 3, stride=2),
        node("Relu", "c3", "r3"),
        conv("r3", "c4", 16, 16, 3),
        conv("r2", "c5", 8, 16, 1, stride=2),
        node("Add", "c5 c4", "a5"),
        node("Relu", "a5", "r5"),
        node("GlobalAveragePool", "r5", "y"),
    ]  # fmt: skip
    return net(nodes, {"x": (1, 3, 16, 16)}, "y", weights)


def moving():
    """All ways to move values, a linear resize and transposed convolutions."""
    rng = np.random.default_rng(13)
    ints = {
        "cut": [1, 2, 4, 6, 6], "whole": [1, 8, 6, 6], "rows": [1, 9, 4, 2],
        "one": [1], "last": [-1], "second": [2], "around": [0, 0, 1, 0, 0, 0, 0, 2],
        "taken": [3, 0, 0, 5],
    }  # fmt: skip
    weights = {name: np.array(values, np.int64) for name, values in ints.items()}
    weights |= {"none": np.zeros(0, np.float32), "half": np.float32(0.3)}
    weights["double"] = np.array([1, 1, 2, 2], np.float32)

    def w(name, *shape):
        array = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)
        weights[name] = array.astype(np.float32)
        return name

    nodes = [
        node("Conv", f"x {w('w0', 8, 3, 1, 1)} {w('b0', 8)}", "c0", "conv0"),
        node("Reshape", "c0 cut", "five"),
        node("Transpose", "five", "turned", "shuffle", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "turned whole", "mixed"),
        node("Slice", "mixed one last second", "sliced", "slice"),
        node("Pad", "sliced around half", "padded", "pad"),
        node("ConvTranspose", f"padded {w('w1', 8, 2, 3, 3)} {w('b1', 4)}", "t1", "up1",
             group=2, strides=[2, 2], pads=[1] * 4),
        node("Relu", "t1", "r1"),
        node("Resize", "mixed none double", "grown", "grow", mode="linear"),
        node("Gather", "grown taken", "some", "gather", axis=1),
        node("Conv", f"some {w('w2', 4, 4, 2, 2)}", "c2", "conv2", strides=[2, 2]),
        node("DepthToSpace", "c2", "pixels", "pixels", blocksize=2),
        node("Transpose", "pixels", "last_channels", "nhwc", perm=[0, 2, 3, 1]),
        node("Flatten", "last_channels", "y", "flat"),
        node("ConvTranspose", f"r1 {w('w3', 4, 3, 2, 2)}", "z", "up3",
             strides=[2, 2]),
    ]  # fmt: skip
    return net(nodes, {"x": (1, 3, 6, 6)}, "y z", weights)


def case(folder, model, *, symmetric=False, count=6, seed=0):
    """`model` in a file, with a table of what onnxruntime saw on `count` samples."""
    path = save(folder, model)
    graph = load(path)
    samples = random_inputs_of(graph, count, seed=seed)
    inner = [name for name in graph.tensors if name not in graph.inputs]
    reference = Reference(path, inner, tensors=graph.rearranged)
    seen = [{**sample, **reference.run(sample)} for sample in samples]
    tensors = {}
    for name in graph.tensors:
        lo = min(float(np.min(values[name])) for values in seen)
        hi = max(float(np.max(values[name])) for values in seen)
        if symmetric:
            scale = float(np.float32(max(-lo, hi) / 127))
            tensors[name] = QuantParams(scale=scale)
        else:
            tensors[name] = to_params(Range(lo=lo, hi=hi))
    foreign = ForeignTable(source="seen", format="ranges", tensors=tensors)
    table = complete(attach(foreign, graph, {}), graph)
    return Case(path, graph, table, samples)


def own_table(path, **options):
    """The table of our own that convert makes of a file."""
    return table_json.loads(convert(path, "neon8", **options).data.decode())


def in_every_format(folder, *, symmetric):
    """The mixed network, its table in `folder` in files named after the formats."""
    made = case(folder, mixed(), symmetric=symmetric)
    own = folder / "net.scales.json"
    save_table(made.table, own)
    for name in NAMES:
        (folder / name).write_bytes(convert(own, name, model=made.path).data)
    return made
