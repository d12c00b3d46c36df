# SPDX-License-Identifier: Apache-2.0
"""Which nodes run in float32, decided for the whole Graph before it is lowered.

Everything runs in int8 except float islands: nodes without an int8 form, those that
the user keeps in float, those for which the table has no scales, those that read or
must make a tensor that it has in float32, and what only moves or maps values between a
float result and readers that want floats. A softmax is one where its result is an
output of the network, or read by islands only. A convolution is no part of an island
that only reads it: it takes int8 and writes float32. So does an average pool.
"""

from collections import deque
from dataclasses import replace

from neon8.errors import CompileError
from neon8.ir.graph import Graph, Node, Quantization
from neon8.ir.names import unused
from neon8.operators.convolution import convolutions, takes_in
from neon8.operators.quantization import FakeQuantize
from neon8.operators.registry import LOWER
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.masks import masked_scores, up_to, with_masks
from neon8.text import suggested

ONLY_FLOAT = "its operator has no int8 form"
HIDDEN = "it is a part of an operator, whose inner values nobody observes"
KEPT = "kept in float32 by request"
BETWEEN = "between float32 values, which it moves or maps"
RESULT = "its result is read in float32"

NO_SCALES = ScaleTable(
    model_name="", model_digest="", method="", scheme="", samples=0, engine=""
)


def float_nodes(graph: Graph) -> dict[str, str]:
    """The nodes that run in float32 once all have scales, by name, with the reason.

    As lower() decides it without options.
    """
    scores = {name: up_to(1.0) for _, name, _ in masked_scores(graph)}
    graph, table = with_masks(graph, replace(NO_SCALES, tensors=scores))
    islands = islands_of(
        graph,
        table,
        consumers_of(graph),
        float_io=True,
        keep=frozenset(),
        partial=False,
    )
    return {n.name: islands[n.output] for n in graph.nodes if n.output in islands}


def consumers_of(graph: Graph) -> dict[str, list[Node]]:
    """Tensor to the nodes that read it; one that reads it twice is there twice."""
    consumers: dict[str, list[Node]] = {name: [] for name in graph.tensors}
    for node in graph.nodes:
        for name in node.inputs:
            consumers[name].append(node)
    return consumers


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
    are float32.  keep, partial: as for lower().
    CompileError: a name in `keep` is none of the network.
    """
    check_names(graph, keep)
    forced: dict[str, str] = {}
    sums = taken_in(graph, table, consumers) if graph.quantized else frozenset()
    for node in graph.nodes:
        reason = forced_float(graph, table, node, keep, sums, partial=partial)
        if reason is not None:
            forced |= dict.fromkeys(node.outputs, reason)
    # All that could follow does, until something that it needs turns out to be int8: a
    # chain of such nodes after a convolution is float32 as a whole or not at all.
    makers = {node.output: node for node in graph.nodes}
    islands = forced | {
        node.output: BETWEEN if node.follows else RESULT
        for node in graph.nodes
        if (node.follows or node.prefers_float) and node.output not in forced
        if _real(graph, node)
    }
    int8_readers = {
        name: sum(reader.output not in islands for reader in readers)
        for name, readers in consumers.items()
    }

    def wanted(name: str) -> bool:
        """True if nothing reads tensor `name` as int8, or the file says that it is."""
        if not graph.tensors[name].real:
            return True
        if graph.quantized:
            return name not in table.tensors
        if int8_readers[name]:
            return False
        return float_io if name in outputs else bool(consumers[name])

    def exists(name: str) -> bool:
        """True if tensor `name` is made as float32."""
        maker = makers.get(name)
        mixed = maker is not None and maker.gives_float
        return (
            name in islands or not graph.tensors[name].real or (mixed and wanted(name))
        )

    def follows(node: Node) -> bool:
        if node.prefers_float:
            end = node.output in outputs and not graph.quantized
            return end or wanted(node.output)
        if node.sign or node.weighted:  # a convolution before it takes it in
            found = all(name in islands for name in node.inputs)
        else:
            found = all(exists(name) for name in node.inputs)
        among = node.joins and any(n in certain and n in islands for n in node.inputs)
        return wanted(node.output) and (found or among)

    outputs = frozenset(graph.outputs)
    certain = forced.keys() | {n.output for n in graph.nodes if n.prefers_float}
    doubtful = deque(name for name in islands if name not in forced)
    queued = set(doubtful)
    while doubtful:
        name = doubtful.popleft()
        queued.discard(name)
        node = makers[name]
        if follows(node):
            continue
        del islands[name]
        near = [reader.output for reader in consumers[name]]
        for source in node.inputs:
            int8_readers[source] += 1
            if int8_readers[source] == 1:  # so far it was wanted, by all that read it
                near += [source, *(reader.output for reader in consumers[source])]
        for other in near:
            if other in islands and other not in forced and other not in queued:
                doubtful.append(other)
                queued.add(other)
    return islands


def _real(graph: Graph, node: Node) -> bool:
    """True if some tensor of the node is of real numbers."""
    return any(graph.tensors[name].real for name in (*node.inputs, *node.outputs))


def forced_float(
    graph: Graph,
    table: ScaleTable,
    node: Node,
    keep: frozenset[str],
    sums: frozenset[str],
    *,
    partial: bool,
) -> str | None:
    """Why `node` runs in float32 whatever is around it; None if it need not.

    sums: tensors that need no scale, see taken_in().
    """
    if type(node) not in LOWER:
        return ONLY_FLOAT
    unseen = [name for name in node.inputs if name not in table.tensors]
    if any(graph.tensors[name].hidden for name in (*unseen, *node.outputs)):
        return HIDDEN
    if not node.fits_int8(graph):
        return "its constant has no int8 form"
    if node.quantization is not None:  # it makes int8 of whatever it finds
        return None
    if node.name in keep or node.operator in keep:
        return KEPT
    ends = (*node.inputs, *(() if node.gives_float else node.outputs))
    for name in ends:
        if name in table.tensors and table.tensors[name].float32:
            return f"tensor {name!r} is float32 in the table"
    if partial:
        if node.weighted and node.name not in table.layers:
            return "the table has no weight scales for it"
        free = node.weighted or node.gives_float
        tensors = node.inputs if free else (*node.inputs, node.output)
        for name in tensors:
            real = graph.tensors[name].real
            if real and name not in table.tensors and name not in sums:
                return f"tensor {name!r} has no scale in the table"
    return None


def taken_in(
    graph: Graph, table: ScaleTable, consumers: dict[str, list[Node]]
) -> frozenset[str]:
    """The sums of a quantized network that a convolution gives to what it takes in.

    They have no scale, as nothing ever rounds them: what follows, an Add or a PRelu, is
    computed along with the convolution and has one.
    """
    found: set[str] = set()
    at = dict.fromkeys(graph.inputs, -1)
    at |= {node.output: number for number, node in enumerate(graph.nodes)}

    def reader(name: str) -> Node | None:
        """What alone reads a tensor that is not rounded."""
        free = name not in table.tensors and name not in graph.outputs
        return consumers[name][0] if free and len(consumers[name]) == 1 else None

    for node in convolutions(graph):
        if not node.activation.identity:
            continue
        if node.name not in table.layers or node.inputs[0] not in table.tensors:
            continue
        sums, last = [node.output], reader(node.output)
        if last is not None and last.sign:
            rest = [name for name in last.inputs if name != node.output]
            known = all(name in table.tensors for name in rest)
            ready = known and all(at[name] < at[node.output] for name in rest)
            if len(rest) != 1 or not ready or not takes_in(graph, node, last):
                continue
            if last.output not in table.tensors and last.activation.identity:
                sums.append(last.output)
                last = reader(last.output)
                last = None if last is None or last.leaky_slopes is None else last
        elif last is None or last.leaky_slopes is None:
            continue
        if last is not None and last.output in table.tensors:
            found.update(sums)
    return frozenset(found)


def with_pairs(
    graph: Graph,
    table: ScaleTable,
    consumers: dict[str, list[Node]],
    keep: frozenset[str],
) -> Graph:
    """A quantized network in which all that float nodes give stays unrounded.

    What its file rounds, a FakeQuantize rounds after them.
    """
    nodes: list[Node] = []
    sums = taken_in(graph, table, consumers)
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        reason = forced_float(graph, table, node, keep, sums, partial=True)
        forced = reason is not None
        if not forced or node.output not in table.tensors:
            nodes.append(node)
            continue
        inner = unused(f"{node.output}_unrounded", tensors)
        tensors[inner] = replace(tensors[node.output], name=inner)
        given = table.tensors[node.output]
        nodes.append(replace(node, output=inner))
        nodes.append(
            FakeQuantize(
                name=f"{node.name}_rounded",
                inputs=(inner,),
                output=node.output,
                quantization=Quantization(given.scale, given.zero_point),
            )
        )
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def check_names(graph: Graph, keep: frozenset[str]) -> None:
    """CompileError for what is neither a layer nor an operator of the network."""
    known = {node.name for node in graph.nodes}
    known |= {node.operator for node in graph.nodes if node.operator}
    for name in sorted(keep - known):
        raise CompileError(
            f"cannot keep {name!r} in float: no layer or operator of the network has "
            f"this name (an activation belongs to the layer before it)"
            f"{suggested(name, sorted(known))}"
        )
