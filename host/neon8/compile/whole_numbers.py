# SPDX-License-Identifier: Apache-2.0
"""Which layers compute integers that may leave int32, in which they wrap  (27)."""

from neon8.ir.graph import Graph
from neon8.ir.program import Bounds, Program

INT32: Bounds = (-(2**31), 2**31 - 1)
SMALL: dict[str, Bounds] = {
    "bool": (0, 1),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
}
LARGER = ("int64", "uint64", "uint32")
"""Types of ONNX that have values which int32 has not."""


def wrapping(program: Program, graph: Graph) -> tuple[str, ...]:
    """The layers, of types of more values, that bounds do not keep inside int32.

    Nothing is known of inputs but their type, nor of what floats become.
    """
    kinds = {n.name: {graph.tensors[o].dtype for o in n.outputs} for n in graph.nodes}
    known = {name: SMALL.get(graph.tensors[name].dtype, INT32) for name in graph.inputs}
    found: dict[str, None] = {}
    for op in program.ops:
        if program.tensors[op.output].dtype != "int32":
            continue
        given = [known.get(name, INT32) for name in op.inputs]
        low, high = op.bounds(given) or INT32
        if low < INT32[0] or high > INT32[1]:
            if not kinds.get(op.name, set()).isdisjoint(LARGER):
                found[op.name] = None
            low, high = INT32
        known[op.output] = low, high
    return tuple(found)
