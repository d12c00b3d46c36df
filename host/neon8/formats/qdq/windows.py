# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools of either type as ONNX nodes, on float values."""

from neon8.compile import program
from neon8.compile.program import Tensor
from neon8.formats.qdq.nodes import Nodes

Convolution = program.Conv2d | program.Conv2dF32
AnyPool = program.Pool | program.PoolF32

DILATED = 19
"""The first opset whose average pools have dilations."""


def opset_of(op: program.Op, least: int) -> int:
    """The first opset, from `least` on, that has a node for the step."""
    if isinstance(op, AnyPool) and op.kind == "average" and op.dilations != (1, 1):
        return max(least, DILATED)
    return least


def convolve(n: Nodes, op: Convolution, x: str, parameters: tuple[str, str]) -> str:
    """Conv of float value `x`, which is input 0 of the step, with weights and bias.

    Gemm between vectors, where the weights are (O, I).
    """
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    if between_vectors(n, op):
        return n.node("Gemm", [x, *parameters], name=op.name, transB=1)
    if source.rank != 4:
        x = n.reshape(x, source.shape)
    value = n.node(
        "Conv",
        [x, *parameters],
        name=op.name,
        kernel_shape=list(kernel_of(op)),
        strides=list(op.strides),
        pads=list(op.pads),
        dilations=list(op.dilations),
        group=op.groups,
    )
    return value if out.rank == 4 else n.reshape(value, out.dims)


def between_vectors(n: Nodes, op: Convolution) -> bool:
    """True of a fully connected layer."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    return source.rank == out.rank == 2 and kernel_of(op) == (1, 1) and op.groups == 1


def kernel_of(op: Convolution) -> tuple[int, int]:
    """Rows and columns of the kernel."""
    if isinstance(op, program.Conv2dF32):
        return op.kernel
    return op.weights.shape[1], op.weights.shape[2]


def pool(n: Nodes, op: AnyPool, x: str) -> str:
    """The pool of float value `x`, which is input 0 of the step."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    if source.rank != 4:
        x = n.reshape(x, source.shape)
    if op.kind == "min":  # ONNX has no such pool
        x = n.node("Neg", [x])
    kind = "Average" if op.kind == "average" else "Max"
    whole = op.kernel == source.shape[2:] and out.shape[2:] == (1, 1)
    if whole and op.pads == (0, 0, 0, 0) and op.dilations == (1, 1):
        value = n.node(f"Global{kind}Pool", [x], name=op.name)
    else:
        extra: dict[str, int | list[int]] = {}
        if op.kind == "average":
            extra["count_include_pad"] = int(op.count_pad)
        if op.kind != "average" or op.dilations != (1, 1):
            extra["dilations"] = list(op.dilations)
        value = n.node(
            f"{kind}Pool",
            [x],
            name=op.name,
            kernel_shape=list(op.kernel),
            strides=list(op.strides),
            pads=list(op.pads),
            ceil_mode=int(_ceils(op, source, out)),
            **extra,  # type: ignore[arg-type]
        )
    if op.kind == "min":
        value = n.node("Neg", [value])
    return value if out.rank == 4 else n.reshape(value, out.dims)


def _ceils(op: AnyPool, source: Tensor, out: Tensor) -> bool:
    """True if the output has a window that rounding down would leave out."""
    for axis in (0, 1):
        reach = op.dilations[axis] * (op.kernel[axis] - 1) + 1
        room = source.shape[2 + axis] + op.pads[axis] + op.pads[2 + axis] - reach
        if room // op.strides[axis] + 1 != out.shape[2 + axis]:
            return True
    return False
