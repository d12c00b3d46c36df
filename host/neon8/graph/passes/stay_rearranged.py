# SPDX-License-Identifier: Apache-2.0
"""What follows a layer with rearranged channels is computed as the layer has them.

MatMul over tokens is a convolution between a move and a move back. What stands between
two of them, the bias and the activation, looks at single values or at single channels;
so the move back comes after it, where it often meets the next move and both go.

That is for the moves that neon8 makes. The Transposes of a file that lies channels last
are weighed before there is a Graph, in graph/layout.py, and what it decided stays.
"""

from dataclasses import replace

from neon8.ir.graph import Graph, Node, Tensor
from neon8.ir.rewrite import drop_dead
from neon8.operators import rearranged

Available = dict[tuple[str, str], Tensor]
"""(ONNX tensor, label) -> the tensor that has its values, rearranged."""


def stay_rearranged(graph: Graph) -> Graph:
    """Each node that looks at values or channels reads what is rearranged already.

    If the plain form of one of its inputs would have to be made for it.
    """
    if not graph.rearranged:
        return graph
    tensors = dict(graph.tensors)
    nodes: list[Node] = []
    available: Available = {}
    labels: dict[str, str] = {}  # of the plain tensors that are moved back
    done: set[str] = set()
    for original in graph.nodes:
        if original.output in done:
            continue
        node = original
        label = next((labels[n] for n in node.inputs if n in labels), "")
        sources = [available.get((name, label)) for name in node.inputs]
        inner = _inside(node, [s for s in sources if s is not None], tensors)
        if inner is not None:
            tensor = tensors[inner.output]
            nodes.append(inner)
            done.add(tensor.name)
            available[node.output, label] = tensor
            labels[node.output] = label
            node = rearranged.back(node.name, tensor)
        elif node.permutes:
            origin = tensors[node.inputs[0]].origin
            if (
                origin is not None
                and origin.name == node.output
                and origin.label != rearranged.NCHW
            ):
                labels[node.output] = origin.label
        made = tensors[node.output]
        if made.origin is not None:
            available[made.origin.name, made.origin.label] = made
        nodes.append(node)
        done.add(node.output)
    names = (*graph.inputs, *(name for node in nodes for name in node.outputs))
    kept = {name: tensors[name] for name in names}
    return drop_dead(
        replace(
            graph,
            nodes=tuple(nodes),
            tensors=kept,
            rearranged=graph.rearranged
            | {name: t for name, t in tensors.items() if t.origin is not None},
        )
    )


def _inside(
    node: Node, sources: list[Tensor], tensors: dict[str, Tensor]
) -> Node | None:
    """`node` on rearranged tensors, or None; its output is added to `tensors`."""
    if not sources or len(sources) != len(node.inputs):
        return None
    first = sources[0]
    dims = tensors[node.output].dims
    if any(tensors[name].dims != dims for name in node.inputs):
        return None
    if any(source.dims != first.dims for source in sources):
        return None
    output = rearranged.alike(tensors[node.output], first)
    if tensors.get(output.name, output) != output:
        return None
    made = None
    if first.origin is not None:
        made = node.on_rearranged(first.origin, dims, first.dims)
    if made is None:
        return None
    tensors[output.name] = output
    made = replace(made, inputs=tuple(source.name for source in sources))
    return made.renamed(output.name)
