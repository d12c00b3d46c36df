# SPDX-License-Identifier: Apache-2.0
"""Nodes that together are a function of one tensor's values become one Pointwise."""

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import rebuild
from neon8.operators.arithmetic import FUNCTIONS
from neon8.operators.functions import MAX_SIZE, Function, X, call
from neon8.operators.pointwise import Pointwise, function_of

Forms = dict[str, Function]
"""What a tensor is as a function of others: their names, and the functions."""


def compose_pointwise(graph: Graph) -> Graph:
    """One Pointwise for each pattern: SiLU, Gelu, Mish, HardSwish, as exporters write.

    A pattern is whatever computes one tensor from the values of another: functions,
    activations, arithmetic with single constants and between such tensors, with
    nothing inside that is read from outside. What has neither a function nor a product
    in it stays: activations and constants have better places.
    """
    forms: dict[str, Forms] = {}
    made = {node.output: node for node in graph.nodes}
    readers: dict[str, list[Node]] = {name: [] for name in graph.tensors}
    serious: set[str] = (
        set()
    )  # what a node that wants_table makes, and all that follows
    for node in graph.nodes:
        if node.wants_table or not serious.isdisjoint(node.inputs):
            serious.add(node.output)
        forms[node.output] = _forms(node, forms)
        for name in node.inputs:
            readers[name].append(node)
    outputs = set(graph.outputs)
    composed: list[Node] = []
    gone: set[str] = set()
    for node in reversed(graph.nodes):
        if node.output in gone:
            continue
        best: tuple[str, set[str]] | None = None
        for root in forms[node.output] if node.output in serious else ():
            inside = _inside(made, readers, outputs, node, root)
            if inside is None or not _worthwhile(made, readers, root, inside):
                continue
            if best is None or len(inside) > len(best[1]):
                best = root, inside
        if best is None:
            composed.append(node)
            continue
        root, inside = best
        gone |= inside
        composed.append(
            Pointwise(
                name=node.name,
                inputs=(root,),
                output=node.output,
                operator=node.operator,
                function=forms[node.output][root],
            )
        )
    return rebuild(graph, reversed(composed))


def _forms(node: Node, forms: dict[str, Forms]) -> Forms:
    """What the output of `node` is as a function of its input and of what that is."""
    function = function_of(node)
    if function is not None:
        found = _known(node.inputs[0], forms)
        result = {root: function.of(inner) for root, inner in found.items()}
    elif type(node) in FUNCTIONS and node.activation.identity:
        first, second = (_known(name, forms) for name in node.inputs)
        result = {
            root: call(FUNCTIONS[type(node)], first[root], second[root])
            for root in first
            if root in second
        }
    else:
        return {}
    return {root: form for root, form in result.items() if form.size <= MAX_SIZE}


def _known(name: str, forms: dict[str, Forms]) -> Forms:
    return {**forms.get(name, {}), name: X}


def _inside(
    made: dict[str, Node],
    readers: dict[str, list[Node]],
    outputs: set[str],
    last: Node,
    root: str,
) -> set[str] | None:
    """The outputs of the nodes from `root` to `last`; None if one is read elsewhere."""
    inside = {last.output}
    todo = [last]
    while todo:
        for name in todo.pop().inputs:
            if name == root or name in inside:
                continue
            inside.add(name)
            todo.append(made[name])
    for name in inside - {last.output}:
        if name in outputs:
            return None
        if any(reader.output not in inside for reader in readers[name]):
            return None
    return inside


def _worthwhile(
    made: dict[str, Node], readers: dict[str, list[Node]], root: str, inside: set[str]
) -> bool:
    """True if a table is the right thing for these nodes.

    They must have a function or a product among them, and must not begin with what the
    node before them can take in: an activation, or constants after a convolution.
    """
    nodes = [made[name] for name in inside]
    if not any(node.wants_table for node in nodes):
        return False
    before = made.get(root)
    first = readers[root][0] if len(readers[root]) == 1 else None
    if len(inside) == 1 or before is None or first is None:
        return True
    if first.only_activates:
        return not before.precedes_activation
    if first.weighted and before.weighted:
        return not before.activation.identity
    return True
