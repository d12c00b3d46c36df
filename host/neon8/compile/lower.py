# SPDX-License-Identifier: Apache-2.0
"""lower: a float Graph and a ScaleTable to the int8 Program that computes the same.

Which nodes run in float32 is decided first, in domains.py; then nodes are taken in
order of execution. Tensors change between float and int8 only where a reader needs it,
so a convolution that ends the network, or that only feeds a softmax, is never rounded
to int8.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from neon8.arrays import FloatArray
from neon8.compile.domains import consumers_of, islands_of, with_pairs
from neon8.errors import CompileError
from neon8.graph.remedies import refusal
from neon8.ir.graph import Graph, Node
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.build import FLOAT, INT8, INT16, Build
from neon8.operators.conversion import ImageOp
from neon8.operators.movement import append_permute
from neon8.operators.opaque import lower_opaque
from neon8.operators.reference import quantize
from neon8.operators.registry import LOWER, LOWER_FLOAT
from neon8.operators.scales import check_digest
from neon8.quant.proof import tell
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.bias import corrected
from neon8.rewrite.equalization import equalized
from neon8.rewrite.masks import with_masks
from neon8.rewrite.rounding import rounded
from neon8.text import counted

IO_TYPES = {"float": FLOAT, "int8": INT8}
LAYOUTS = ("nchw", "nhwc")


def lower(
    graph: Graph,
    table: ScaleTable,
    *,
    io: str = "float",
    layout: str = "nchw",
    images: Mapping[str, FloatArray] | None = None,
    keep_float: frozenset[str] = frozenset(),
    partial: bool = False,
    opaque: bool = False,
    max_sqnr_loss: float | None = None,
) -> Program:
    """The int8 program of `graph` with the scales of `table`.

    io: "float" for float32 inputs and outputs, "int8" for quantized ones, which are
    int16 where the table has more than 8 bits.
    layout: "nchw", inputs and outputs lie as in the graph; "nhwc", those of four
    dimensions lie N H W C.
    images: inputs that are uint8, N H W C; of each channel, what the network takes for
    every byte, (C, 256).
    keep_float: names of layers and ONNX operators that run in float32.
    partial: layers without scales in the table run in float32, too; always so in a
    network that was quantized elsewhere.
    opaque: Opaque nodes become steps, for whoever can write those.
    max_sqnr_loss: see int16_fit.py; None leaves the weight scales as they are.
    CompileError: the table does not fit, docs/numerics.md cannot be kept; or else a
    line for each Opaque node.
    """
    if io not in IO_TYPES:
        raise CompileError(f"io {io!r} is not one of {', '.join(IO_TYPES)}")
    if layout not in LAYOUTS:
        raise CompileError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    refused = refusal(graph)
    if refused is not None and not opaque:
        raise refused
    check_digest(graph, table)
    check_ends(graph)
    graph = equalized(graph, table)
    if not opaque:  # other tools have no int16
        graph, table = with_masks(graph, table)
    if graph.quantized:
        check_quantized(table)
        partial = True
        graph = with_pairs(graph, table, consumers_of(graph), keep_float)
    consumers = consumers_of(graph)
    islands = islands_of(
        graph,
        table,
        consumers,
        float_io=IO_TYPES[io] == FLOAT,
        keep=keep_float,
        partial=partial,
    )
    # What runs in float32 has its weights as they are.
    exact = frozenset(n.name for n in graph.nodes if n.output in islands)
    graph = rounded(corrected(graph, table, exact), table, exact)
    consumers = consumers_of(graph)
    b = Build(
        graph=graph,
        table=table,
        io=IO_TYPES[io],
        consumers=consumers,
        islands=islands,
        max_sqnr_loss=max_sqnr_loss,
        original=opaque,
        last=ends_last(graph) if layout == "nhwc" else frozenset(),
        images=frozenset(images or ()),
    )
    for name in graph.inputs:
        if name in b.images:
            enter_image(b, name, (images or {})[name])
            continue
        enter(b, name)
        if graph.quantized and name in table.tensors:
            round_input(b, name)
    for node in graph.nodes:
        if b.has(node.output) or node.output in b.inside:  # a convolution took it in
            continue
        forms = LOWER if b.type_of(node) == INT8 else LOWER_FLOAT
        append = forms.get(type(node))
        if opaque and integral(graph, node):
            append = lower_opaque
        if append is None:
            kind = type(node).__name__
            text = f"no {b.type_of(node)} form of {kind}"
            raise CompileError(f"layer {node.name!r}: {text}")
        first = len(b.ops)
        append(b, node)
        if node.output in islands:
            give_reason(b, b.ops[first:], islands[node.output])
        for name in filter(b.has, graph.outputs):
            b.take(name, b.outside_type(name))
    for name in b.images:
        if FLOAT in b.forms[name]:
            text = "is an image, but a layer reads it as float32; see --keep-float"
            raise CompileError(f"input {name!r} {text}")
    for name in graph.outputs:
        if not b.has(name):
            raise CompileError(f"nothing computes output {name!r}")
        if name in b.last:
            leave(b, name)
    tell(b.enlarged)
    return Program(
        source_digest=graph.digest,
        tensors=b.tensors,
        ops=tuple(b.ops),
        inputs=graph.inputs,
        outputs=graph.outputs,
        islands={
            node.name: islands[node.output]
            for node in graph.nodes
            if node.output in islands
        },
        fits=tuple(b.fits),
    )


def integral(graph: Graph, node: Node) -> bool:
    """True if it reads or makes integers, and does more than move them."""
    names = (*node.inputs, *node.outputs)
    return not node.moves and not all(graph.tensors[name].real for name in names)


INT16_ENDS = (-(2**15), 2**15 - 1)
IMAGE_RANK = 4
TO_FIRST = (0, 3, 1, 2)
TO_LAST = (0, 2, 3, 1)


def ends_last(graph: Graph) -> frozenset[str]:
    """The inputs and outputs that are, or could be, images."""
    ends = (*graph.inputs, *graph.outputs)
    return frozenset(n for n in ends if graph.tensors[n].rank == IMAGE_RANK)


def enter(b: Build, name: str) -> None:
    """Declares an input, and makes it channels first if it comes channels last.

    Whoever gives int16 may give codes beyond the range of the tensor, for which (12)
    is not proved: they are clamped.
    """
    dtype = b.outside_type(name)
    first = b.declare(name, dtype)
    if name in b.last:
        given = b.add(replace(first, name=name, dims=turned(first.dims, TO_LAST)))
        append_permute(b, name, given, first, (given.dims, TO_FIRST))
    if dtype == INT16 and (first.lo, first.hi) != INT16_ENDS:
        inside = b.temporary(first, "clamped")
        b.requantize(name, first, inside, clamp=(inside.lo, inside.hi))
        b.forms[name][dtype] = inside.name


def enter_image(b: Build, name: str, table: FloatArray) -> None:
    """Declares an input of bytes, each of which is quantized here and now."""
    dims = b.graph.tensors[name].dims
    if len(dims) != IMAGE_RANK or dims[1] != len(table):
        channels = counted(len(table), "channel")
        raise CompileError(f"input {name!r} is {list(dims)}, no image of {channels}")
    out = b.declare(name, INT8)
    given = b.add(Tensor(name=name, dims=turned(dims, TO_LAST), dtype="uint8"))
    levels = quantize(table, out)
    b.ops.append(
        ImageOp(name=name, inputs=(given.name,), output=out.name, table=levels)
    )


def leave(b: Build, name: str) -> None:
    """Gives an output channels last."""
    first = b.take(name, b.outside_type(name))
    taken = b.add(replace(first, name=name, dims=turned(first.dims, TO_LAST)))
    append_permute(b, name, first, taken, (first.dims, TO_LAST))


def turned(dims: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of a Transpose."""
    return tuple(dims[axis] for axis in order)


def give_reason(b: Build, ops: Sequence[Op], reason: str) -> None:
    """Tells it to the float tensors that the steps of one layer compute."""
    for op in ops:
        made = b.tensors[op.output]
        if made.dtype == FLOAT and not op.converts:
            b.tensors[op.output] = replace(made, reason=reason)


def round_input(b: Build, name: str) -> None:
    """An input that its file rounds is rounded for those that read it as float32, too.

    So it is before a pair rounds it again. Any other reader takes it as int8.
    """
    readers = b.consumers[name]
    if any(n.quantization is not None or b.type_of(n) == FLOAT for n in readers):
        b.own(name)
        b.forms[name].pop(FLOAT, None)  # what it was before


def check_quantized(table: ScaleTable) -> None:
    """CompileError for a tensor in float32 of a network that says itself which are."""
    for name, entry in table.tensors.items():
        if entry.float32:
            text = "is float32 in the table, and rounded by the file; delete it there"
            raise CompileError(f"tensor {name!r} {text}")


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
            f"output {min(both)!r} is an input as well; remove it from the outputs, or "
            "compile --cut, which gives it back as it came"
        )
