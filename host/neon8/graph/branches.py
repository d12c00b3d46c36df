# SPDX-License-Identifier: Apache-2.0
"""If whose condition depends on shapes alone: the branch that is taken takes its place.

PyTorch scripts write such nodes for whatever asks for a rank or a batch size. Once the
shapes are known so is the condition, and what is left has no branches.
"""

import onnx

from neon8.graph.protos import rename


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
    made = [onnx.NodeProto.FromString(each.SerializeToString()) for each in inner]
    rename(made, names)
    for value, output in zip(graph.output, node.output, strict=False):
        if output:
            source = names.get(value.name, value.name)
            made.append(onnx.helper.make_node("Identity", [source], [output]))
    return made
