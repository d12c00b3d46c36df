# SPDX-License-Identifier: Apache-2.0
"""Which nodes run in float32, decided for the whole Graph before it is lowered.

Everything runs in int8 except float islands: nodes without an int8 form, those that
the user keeps in float, those for which the table has no scales, and what only moves or
maps values between a float result and readers that want floats. A convolution is no
part of an island that only reads it: it takes int8 and writes float32.
"""

import difflib

from neon8.compile.operators import FOLLOWS, LOWER
from neon8.errors import CompileError
from neon8.graph.graph import Add, Concat, Conv2d, Graph, Node
from neon8.quant.scale_table import ScaleTable

ONLY_FLOAT = "its operator has no int8 form"
KEPT = "kept in float32 by request"
BETWEEN = "between float32 values, which it moves or maps"

SUGGESTIONS = 3


def islands_of(
    graph: Graph,
    table: ScaleTable,
    consumers: dict[str, list[Node]],
    *,
    float_io: bool,
    keep: frozenset[str],
    partial: bool,
) -> dict[str, str]:
    """The nodes that run in float32, by their output, each with the reason.

    consumers: graph tensor to its readers.  float_io: the network's inputs and outputs
    are float32.  keep, partial: as for lower().  CompileError: a name in `keep` is none
    of the network.
    """
    check_names(graph, keep)
    forced = {}
    for node in graph.nodes:
        reason = forced_float(table, node, keep, partial=partial)
        if reason is not None:
            forced[node.output] = reason
    # All that could follow does, until something that it needs turns out to be int8: a
    # chain of such nodes behind a convolution is float32 as a whole or not at all.
    makers = {node.output: node for node in graph.nodes}
    islands = forced | {
        node.output: BETWEEN
        for node in graph.nodes
        if maps_values(graph, node) and node.output not in forced
    }

    def wanted(name: str) -> bool:
        """True if nothing reads tensor `name` as int8."""
        readers = consumers[name]
        floats = all(reader.output in islands for reader in readers)
        return floats and (float_io if name in graph.outputs else bool(readers))

    def exists(name: str) -> bool:
        """True if tensor `name` is made as float32."""
        maker = makers.get(name)
        plain = isinstance(maker, Conv2d) and maker.activation.identity
        return name in islands or (plain and wanted(name))

    def follows(node: Node) -> bool:
        if isinstance(node, Add | Conv2d):  # a convolution before it takes it in
            found = all(name in islands for name in node.inputs)
        else:
            found = all(exists(name) for name in node.inputs)
        among = isinstance(node, Concat) and any(name in forced for name in node.inputs)
        return wanted(node.output) and (found or among)

    while True:
        lost = [
            name
            for name, reason in islands.items()
            if reason is BETWEEN and not follows(makers[name])
        ]
        if not lost:
            return islands
        for name in lost:
            del islands[name]


def maps_values(graph: Graph, node: Node) -> bool:
    """True if `node` moves or maps values; a convolution if it scales and shifts."""
    if isinstance(node, Conv2d):
        channels = graph.tensors[node.inputs[0]].shape[1]
        plain = node.strides == (1, 1) and node.pads == (0, 0, 0, 0)
        one_tap = node.weight.shape == (channels, 1, 1, 1)
        return plain and one_tap and node.groups == channels
    return type(node) in FOLLOWS


def forced_float(
    table: ScaleTable, node: Node, keep: frozenset[str], *, partial: bool
) -> str | None:
    """Why `node` runs in float32 whatever is around it; None if it need not."""
    if type(node) not in LOWER:
        return ONLY_FLOAT
    if node.name in keep or node.operator in keep:
        return KEPT
    if partial:
        convolves = isinstance(node, Conv2d)
        if convolves and node.name not in table.layers:
            return "the table has no weight scales for it"
        tensors = node.inputs if convolves else (*node.inputs, node.output)
        for name in tensors:
            if name not in table.tensors:
                return f"tensor {name!r} has no scale in the table"
    return None


def check_names(graph: Graph, keep: frozenset[str]) -> None:
    """CompileError for what is neither a layer nor an operator of the network."""
    known = {node.name for node in graph.nodes}
    known |= {node.operator for node in graph.nodes if node.operator}
    for name in sorted(keep - known):
        near = difflib.get_close_matches(name, sorted(known), SUGGESTIONS, cutoff=0.4)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise CompileError(
            f"cannot keep {name!r} in float: no layer or operator of the network has "
            f"this name (an activation belongs to the layer before it){hint}"
        )
