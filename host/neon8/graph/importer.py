# SPDX-License-Identifier: Apache-2.0
"""From an ONNX file to the normalised Graph."""

from dataclasses import replace

from neon8.graph.layout import channels_first
from neon8.graph.normalized import normalized
from neon8.graph.onnx_file import ModelLike, Shapes, open_onnx
from neon8.graph.passes import PASSES
from neon8.graph.reader import read
from neon8.graph.remedies import remedy
from neon8.ir.graph import INTEGERS as KINDS
from neon8.ir.graph import MAX_RANK, Graph, Node, Tensor
from neon8.ir.names import unused
from neon8.operators.composition import Parts
from neon8.operators.opaque import Opaque
from neon8.operators.registry import COMPOSITIONS, IMPORTS, INTEGERS
from neon8.operators.source import OnnxNode, Source, UnsupportedError


def load(model: ModelLike, *, shapes: Shapes | None = None) -> Graph:
    """The network in `model`, ready to be calibrated.

    shapes: see open_onnx(); a first dimension that stays free is 1.  What neon8 cannot
    run is an Opaque node, which only the compiler refuses.  GraphError, one line: not
    an ONNX file, or one that asks for absurd sizes.
    """
    source = normalized(read(open_onnx(model, shapes=shapes)))
    graph = convert(channels_first(source, _supported))
    for apply in PASSES:
        graph = apply(graph)
    return graph


def convert(source: Source) -> Graph:
    """The network node by node, nothing folded or fused."""
    live = set(source.outputs)
    for node in reversed(source.nodes):
        if not live.isdisjoint(node.outputs):
            live.update(node.inputs, node.captures)
    nodes: list[Node] = []
    tensors = {name: _tensor(source, name) for name in source.inputs}
    for name in source.outputs:
        if name in source.constants:
            nodes.append(_constant(source, name))
            tensors[name] = _tensor(source, name)
    for node in source.nodes:
        wanted = tuple(name for name in node.outputs if name and name in live)
        if not wanted:
            continue
        made: tuple[Node | Tensor, ...]
        try:
            made = _known(source, node, wanted)
        except UnsupportedError as error:
            read_ = dict.fromkeys((*node.inputs, *node.captures))
            made = (
                Opaque(
                    name=node.name,
                    inputs=tuple(name for name in read_ if name in tensors),
                    output=wanted[0],
                    more=wanted[1:],
                    operator=node.operator,
                    reason=error.reason,
                ),
            )
        new = {one.name: one for one in made if isinstance(one, Tensor)}
        for name, tensor in new.items():
            if tensor.origin is not None and tensor.origin.name in source.hidden:
                new[name] = replace(tensor, hidden=True)
        for one in made:
            if isinstance(one, Node) and one.output not in tensors:
                nodes.append(one)  # what is rearranged for several is so once
                tensors |= {
                    name: new.get(name) or _tensor(source, name) for name in one.outputs
                }
    return Graph(
        name=source.name,
        digest=source.digest.result(),
        tensors=tensors,
        nodes=tuple(nodes),
        inputs=source.inputs,
        outputs=source.outputs,
        rearranged=dict(source.rearranged)
        | {name: t for name, t in tensors.items() if t.origin is not None},
    )


def _supported(source: Source, node: OnnxNode) -> bool:
    """True if neon8 can run it."""
    try:
        _known(source, node, tuple(filter(None, node.outputs)))
    except UnsupportedError:
        return False
    return True


def _known(
    source: Source, node: OnnxNode, wanted: tuple[str, ...]
) -> tuple[Node | Tensor, ...]:
    """The nodes that do what `node` does.  UnsupportedError: there are none."""
    if node.fault:
        raise source.failure(node, node.fault)
    operator = IMPORTS.get(node.operator)
    if any(source.types.get(name) in KINDS for name in wanted):
        operator = INTEGERS.get(node.operator, operator)
    if operator is None:
        if node.operator in COMPOSITIONS:  # which may say why there is none of it
            COMPOSITIONS[node.operator](Parts(source=source, node=node, taken=set()))
        raise source.failure(node, remedy(node.operator))
    made = operator(source, node)
    made = made if isinstance(made, tuple) else (made,)
    new = [one for one in made if isinstance(one, Tensor)]
    nodes = [replace(n, operator=node.operator) for n in made if isinstance(n, Node)]
    for tensor in new:
        if tensor.name in source.types or tensor.name in source.constants:
            text = f"its tensor {tensor.name!r} has a name that neon8 gives to another"
            raise source.failure(node, f"{text}; rename it")
    taken = {one.name for one in new}
    for one in nodes:
        if one.output not in taken:
            source.dims_of(node, one.output)
        if not one.finite:
            raise source.failure(node, "its constants are too large for float32")
    computed = {one.output for one in nodes}
    for name in wanted:
        if name not in computed and name not in source.constants:
            text = f"its output {name!r} is used, which neon8 does not compute"
            raise source.failure(node, text)
    return (*new, *nodes)


def _tensor(source: Source, name: str) -> Tensor:
    if name in source.rearranged:
        return source.rearranged[name]
    dims = source.shapes.get(name)
    fixed = dims is not None and len(dims) <= MAX_RANK
    return Tensor(
        name=name,
        dims=dims if dims is not None and fixed else (),
        dtype=source.types.get(name, ""),
        fixed=fixed,
        hidden=name in source.hidden,
    )


def _constant(source: Source, output: str) -> Opaque:
    """What gives an output that does not depend on any input."""
    return Opaque(
        name=unused(f"Constant_{output}", {node.name for node in source.nodes}),
        inputs=(),
        output=output,
        operator="Constant",
        reason="does not depend on any input; remove it from the outputs",
    )
