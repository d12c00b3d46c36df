# SPDX-License-Identifier: Apache-2.0
"""Graphs and tables made by hand, for the tests of lowering."""

from dataclasses import replace

import numpy as np

from neon8.compile.lower import lower
from neon8.ir.graph import Activation, Graph, Tensor
from neon8.operators.arithmetic import Add
from neon8.operators.convolution import Conv2d
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale

RELU = Activation(lo=0.0)
ADD = Add(name="add", inputs=("a", "b"), output="y")
DIGEST = "ab" * 32
SHAPE = (1, 4, 5, 5)


def conv(output, source="x", *, channels=4, out=4, kernel=1, groups=1, **options):
    """A convolution named after its output, weights +-1, bias 1, 2, 3 ..."""
    shape = (out, channels // groups, kernel, kernel)
    weight = np.where(np.arange(np.prod(shape)) % 3 == 0, -1.0, 1.0).reshape(shape)
    settings = {
        "weight": weight.astype(np.float32),
        "bias": np.arange(1, out + 1, dtype=np.float32),
        "pads": (kernel // 2,) * 4,
    } | options
    return Conv2d(
        name=f"layer_{output}",
        inputs=(source,),
        output=output,
        groups=groups,
        pre_activation=output,
        **settings,
    )


def graph_of(*nodes, inputs=("x",), outputs=("y",), shapes=None):
    """A graph whose tensors are all SHAPE, those in `shapes` excepted."""
    names = [*inputs]
    for node in nodes:
        names += [*node.inputs, node.output]
    tensors = {name: Tensor(name, (shapes or {}).get(name, SHAPE)) for name in names}
    return Graph(
        name="net.onnx",
        digest=DIGEST,
        tensors=tensors,
        nodes=nodes,
        inputs=inputs,
        outputs=outputs,
    )


def scale(step=0.5, zero_point=0, scheme="asymmetric", *, bits=8):
    return TensorScale(
        scale=step,
        zero_point=zero_point,
        scheme=scheme,
        threshold=(0.0, 0.0),
        min=0.0,
        max=0.0,
        bits=bits,
    )


def table_of(graph, *, weight_scale=1 / 127, without=(), **scales):
    """All tensors at 0.5 asymmetric unless given; weight scales that make +-127."""
    tensors = {name: scale() for name in graph.tensors} | scales
    return ScaleTable(
        model_name="net.onnx",
        model_digest=graph.digest,
        method="mse",
        scheme="auto",
        samples=1,
        engine="none",
        tensors={name: tensors[name] for name in tensors if name not in without},
        layers={
            node.name: LayerScale(
                input=node.inputs[0],
                weight_scales=(float(np.float32(weight_scale)),) * len(node.weight),
            )
            for node in graph.nodes
            if isinstance(node, Conv2d)
        },
    )


def with_entries(graph, **entries):
    """table_of() whose tensors have other fields, by their names."""
    table = table_of(graph)
    changed = {n: replace(table.tensors[n], **entry) for n, entry in entries.items()}
    return replace(table, tensors=table.tensors | changed)


def kinds(prog):
    return [type(op).__name__.removesuffix("Op") for op in prog.ops]


def lowered(
    *nodes,
    io="int8",
    layout="nchw",
    scales=None,
    without=(),
    **options,
):
    graph = graph_of(*nodes, **options)
    table = table_of(graph, without=without, **(scales or {}))
    return lower(graph, table, io=io, layout=layout)
