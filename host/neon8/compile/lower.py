# SPDX-License-Identifier: Apache-2.0
"""lower: a float Graph and a ScaleTable to the int8 Program that computes the same.

Nodes are taken in order of execution. Tensors change between float and int8 only where
a reader needs it, so a convolution that ends the network, or that only feeds a softmax,
is never rounded to int8.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import FLOAT, INT8, Build, bytes_mean_the_same, ratio
from neon8.compile.lower_conv import lower_conv, slope_of
from neon8.compile.scales import check_digest, clamp_of
from neon8.errors import CompileError
from neon8.graph.graph import (
    Activate,
    Add,
    Concat,
    Conv2d,
    Graph,
    Node,
    Pool,
    Reshape,
    Softmax,
)
from neon8.quant.scale_table import ScaleTable

IO_TYPES = {"float": FLOAT, "int8": INT8}
MAX_TAPS = 2**23
"""2**23 * 255 < 2**31: the sum of an average pool fits int32."""


def lower(graph: Graph, table: ScaleTable, *, io: str = "float") -> program.Program:
    """The int8 program of `graph` with the scales of `table`.

    io: "float" for float32 inputs and outputs, "int8" for quantized ones.
    CompileError: the table does not fit, or docs/numerics.md cannot be kept.
    """
    if io not in IO_TYPES:
        raise CompileError(f"io {io!r} is not one of {', '.join(IO_TYPES)}")
    check_digest(graph, table)
    check_ends(graph)
    graph = without_plain_reshapes(graph)
    b = Build(graph=graph, table=table, io=IO_TYPES[io], consumers=consumers_of(graph))
    for name in graph.inputs:
        b.declare(name, b.io)
    absorbed: set[str] = set()
    for node in graph.nodes:
        if node.name in absorbed:
            continue
        done = lower_node(b, node)
        absorbed.add(done.name)
        if done.output in graph.outputs:
            (b.float32 if b.io == FLOAT else b.int8)(done.output)
    for name in graph.outputs:
        if not b.has(name):
            raise CompileError(f"nothing computes output {name!r}")
    return program.Program(
        source_digest=graph.digest,
        tensors=b.tensors,
        ops=tuple(b.ops),
        inputs=graph.inputs,
        outputs=graph.outputs,
    )


def check_ends(graph: Graph) -> None:
    """CompileError for inputs and outputs that no .n8 file can have."""
    for what, names in (("input", graph.inputs), ("output", graph.outputs)):
        if not names:
            raise CompileError(f"the network has no {what}")
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise CompileError(f"{what} {name!r} is listed {count} times")
    both = set(graph.inputs) & set(graph.outputs)
    if both:
        raise CompileError(
            f"output {min(both)!r} is an input as well; remove it from the outputs"
        )


def consumers_of(graph: Graph) -> dict[str, list[Node]]:
    """Tensor to the nodes that read it; one that reads it twice is there twice."""
    consumers: dict[str, list[Node]] = {name: [] for name in graph.tensors}
    for node in graph.nodes:
        for name in node.inputs:
            consumers[name].append(node)
    return consumers


def without_plain_reshapes(graph: Graph) -> Graph:
    """Leaves out each Reshape that keeps N C H W and alone reads what a node makes.

    So the flattened result of a last convolution can stay float, too.
    """
    consumers = consumers_of(graph)
    made = {node.output for node in graph.nodes} - set(graph.outputs)
    renamed: dict[str, str] = {}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        source = node.inputs[0]
        plain = (
            isinstance(node, Reshape)
            and graph.tensors[source].shape == graph.tensors[node.output].shape
            and len(consumers[source]) == 1
            and source in made
        )
        output = renamed.get(node.output, node.output)
        if plain:
            renamed[source] = output
        else:
            kept.append(replace(node, output=output))
    return replace(graph, nodes=tuple(reversed(kept)))


def lower_node(b: Build, node: Node) -> Node:
    """Appends the ops of a node; returns the last node that is done with them."""
    match node:
        case Conv2d():
            return lower_conv(b, node) or node
        case Add():
            lower_add(b, node)
        case Activate():
            source = b.int8(node.inputs[0])
            activate(b, node, source, b.declare(node.output, INT8))
        case Pool():
            lower_pool(b, node)
        case Concat():
            lower_concat(b, node)
        case Reshape():
            lower_reshape(b, node)
        case Softmax():
            lower_softmax(b, node)
        case _:
            raise CompileError(
                f"layer {node.name!r}: no int8 form of {type(node).__name__}"
            )
    return node


def lower_add(b: Build, node: Add) -> None:
    """A sum that no convolution took in  (6)."""
    first, second = (b.int8(name) for name in node.inputs)
    out = b.declare(node.output, INT8)
    lo, hi = clamp_of(node.activation, out)
    b.ops.append(
        program.Add(
            name=node.name,
            inputs=(first.name, second.name),
            output=out.name,
            scale=ratio(node.name, first, out),
            residual_scale=ratio(node.name, second, out),
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


def activate(
    b: Build,
    node: Activate | Pool,
    source: program.Tensor,
    out: program.Tensor,
) -> None:
    """source -> out with the activation of `node` and the scale of `out`."""
    b.requantize(
        node.name,
        source,
        out,
        clamp=clamp_of(node.activation, out),
        slope=float(slope_of(node.name, node.activation)),
    )


def lower_pool(b: Build, node: Pool) -> None:
    """(9).  A scale changed under max and a leaky slope need a step of their own."""
    source = b.int8(node.inputs[0])
    out = b.declare(node.output, INT8)
    check_windows(b, node)
    rescales = node.kind == "max" and not bytes_mean_the_same(source, out)
    if not rescales and node.activation.slope == 1.0:
        append_pool(b, node, source, out, clamp_of(node.activation, out))
        return
    pooled = replace(source, shape=out.shape, rank=out.rank)
    pooled = b.temporary(pooled, "pooled")
    append_pool(b, node, source, pooled, (pooled.lo, pooled.hi))
    activate(b, node, pooled, out)


def append_pool(
    b: Build,
    node: Pool,
    source: program.Tensor,
    out: program.Tensor,
    clamp: tuple[int, int],
) -> None:
    """One pooling op; the runtime derives an average's multiplier from the scales."""
    if node.kind == "average":
        for count in (1, node.kernel[0] * node.kernel[1]):
            ratio(node.name, source, out, count=count)
    b.ops.append(
        program.Pool(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            kind=node.kind,
            kernel=node.kernel,
            strides=node.strides,
            dilations=node.dilations,
            pads=node.pads,
            count_pad=node.count_pad,
            lo=clamp[0],
            hi=clamp[1],
        )
    )


def check_windows(b: Build, node: Pool) -> None:
    """CompileError for a window without a single tap, or with too many for int32."""
    in_shape = b.graph.tensors[node.inputs[0]].shape
    out_shape = b.graph.tensors[node.output].shape
    if node.kernel[0] * node.kernel[1] > MAX_TAPS:
        raise CompileError(
            f"layer {node.name!r}: a window of {node.kernel} overflows int32"
        )
    for axis in (0, 1):
        out = np.arange(out_shape[2 + axis])[:, np.newaxis]
        taps = np.arange(node.kernel[axis]) * node.dilations[axis]
        at = out * node.strides[axis] - node.pads[axis] + taps
        inside = (at >= 0) & (at < in_shape[2 + axis])
        if not inside.any(axis=1).all():
            raise CompileError(
                f"layer {node.name!r}: a pooling window lies outside its input"
            )


def lower_softmax(b: Build, node: Softmax) -> None:
    """(14), in float; its argument is made by a step, not lent by the caller."""
    if node.inputs[0] in b.graph.inputs:
        raise CompileError(
            f"layer {node.name!r}: softmax of network input {node.inputs[0]!r} is not "
            "supported"
        )
    inputs = (b.float32(node.inputs[0]).name,)
    out = b.declare(node.output, FLOAT)
    b.ops.append(program.Softmax(name=node.name, inputs=inputs, output=out.name))


def lower_concat(b: Build, node: Concat) -> None:
    """Moves bytes, once all inputs have the scale of the output."""
    sources = [b.int8(name) for name in node.inputs]
    out = b.declare(node.output, INT8)
    inputs = tuple(b.rescaled(node.name, source, out).name for source in sources)
    b.ops.append(
        program.Concat(name=node.name, inputs=inputs, output=out.name, axis=node.axis)
    )


def lower_reshape(b: Build, node: Reshape) -> None:
    """Moves bytes, once the input has the scale of the output."""
    source = b.int8(node.inputs[0])
    out = b.declare(node.output, INT8)
    inputs = (b.rescaled(node.name, source, out).name,)
    b.ops.append(program.Reshape(name=node.name, inputs=inputs, output=out.name))
