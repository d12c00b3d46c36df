# SPDX-License-Identifier: Apache-2.0
"""If whose condition depends on shapes alone: the branch that is taken takes its place.

PyTorch scripts write such nodes for whatever asks for a rank or a batch size. Once the
shapes are known so is the condition, and what is left has no branches.
"""

from collections.abc import Mapping

import onnx


def branch_of(
    node: onnx.NodeProto, *, condition: bool, taken: set[str]
) -> list[onnx.NodeProto]:
    """The nodes that an If runs, with names that are not `taken`, and then are."""
    wanted = "then_branch" if condition else "else_branch"
    graph = next(each.g for each in node.attribute if each.name == wanted)
    constants = [
        onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        for tensor in graph.initializer
    ]
    inner = [*constants, *graph.node]
    names: dict[str, str] = {}
    for name in (output for each in inner for output in each.output if output):
        names[name] = name
        while names[name] in taken:
            names[name] = f"{node.name or node.output[0]}/{names[name]}"
        taken.add(names[name])
    made = [_renamed(each, names) for each in inner]
    for value, output in zip(graph.output, node.output, strict=False):
        if output:
            source = names.get(value.name, value.name)
            made.append(onnx.helper.make_node("Identity", [source], [output]))
    return made


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with other names of tensors, in its own branches and loops, too."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    for attribute in made.attribute:
        graphs = [attribute.g] if attribute.HasField("g") else []
        for graph in (*graphs, *attribute.graphs):
            own = {value.name for value in (*graph.input, *graph.initializer)}
            own |= {output for each in graph.node for output in each.output}
            outer = {old: new for old, new in names.items() if old not in own}
            nodes = [_renamed(each, outer) for each in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)
            for value in graph.output:
                value.name = outer.get(value.name, value.name)
    return made
