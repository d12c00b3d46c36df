# SPDX-License-Identifier: Apache-2.0
"""What to do about operators that neon8 cannot run, and the refusal of a network."""

from neon8.errors import CompileError
from neon8.ir.graph import Graph
from neon8.operators.opaque import opaque_nodes
from neon8.text import counted, printable

MAX_LINES = 40
"""Nodes that a refusal names; a damaged file may have thousands."""

QUANTIZED = (
    "is already quantized: neon8 compile takes it as it is; for all else give the "
    "float network"
)
SEQUENCE = "sequences are not supported; export it with Split and Concat, on tensors"
SEQUENCES = (
    *("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty"),
    *("SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap"),
    *("SplitToSequence",),
)
ELSE = "is not supported; export it as other operators, or cut the network before it"
DEPENDS = (
    "gives as much as the data wants, and neon8 has fixed shapes; compile --cut leaves "
    "it to onnxruntime"
)
SIZE = (
    "is of a tensor whose size only a run shows, and neon8 has fixed shapes; compile "
    "--cut leaves it to onnxruntime"
)
REMEDIES = {
    "DequantizeLinear": QUANTIZED,
    "QuantizeLinear": QUANTIZED,
    "If": "the branch depends on values; export the one that is taken",
    "Loop": "loops are not supported; export the network unrolled",
    "Scan": "loops are not supported; export the network unrolled",
    **dict.fromkeys(
        ("Compress", "ConstantOfShape", "NonZero", "Range", "Unique"), DEPENDS
    ),
    **dict.fromkeys(("Shape", "Size"), SIZE),
    **dict.fromkeys(SEQUENCES, SEQUENCE),
}


def remedy(operator: str) -> str:
    """Why nothing runs `operator`, and the way round."""
    if operator in REMEDIES:
        return REMEDIES[operator]
    if "." in operator:
        return "is not an operator of ONNX itself; export it as standard operators"
    return ELSE


def refusal(graph: Graph) -> CompileError | None:
    """Why the network cannot be compiled: a line for each node; None if it can."""
    opaque = opaque_nodes(graph)
    if not opaque:
        return None
    lines = [
        f"  node {printable(node.name)!r} (operator {printable(node.operator)}): "
        f"{printable(node.reason)}"
        for node in opaque[:MAX_LINES]
    ]
    if len(opaque) > MAX_LINES:
        lines.append(f"  and {len(opaque) - MAX_LINES} more; neon8 inspect names all")
    lines.append(
        "  calibrate and convert work, and so does compile --cut, with onnxruntime for "
        "these; or export it without them"
    )
    whole = counted(len(graph.nodes), "node")
    return CompileError(f"{len(opaque)} of {whole} cannot run in neon8:", lines)
