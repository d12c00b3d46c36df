# SPDX-License-Identifier: Apache-2.0
"""Float islands: what runs in float32 between the layers of a network that multiply."""

from dataclasses import dataclass

from neon8.ir.program import Op, Program
from neon8.operators.convolution import Conv2dOp
from neon8.operators.matmul import MatmulOp


@dataclass(frozen=True, slots=True)
class Island:
    """Steps that hand float32 to one another, int8 before and after them.

    reasons: why their layers run in float32, as the compiler says.
    """

    steps: tuple[Op, ...]
    reasons: tuple[str, ...] = ()

    @property
    def operations(self) -> str:
        """What is computed, e.g. "sigmoid, mul"."""
        return ", ".join(dict.fromkeys(op.operation.lower() for op in self.steps))

    @property
    def text(self) -> str:
        """What and why."""
        reasons = "; ".join(self.reasons)
        return f"{self.operations} ({reasons})" if reasons else self.operations


def islands(program: Program, products: set[str]) -> list[Island]:
    """Those with a product before and one after them.

    products: names of the ONNX network's Conv, ConvTranspose and MatMul nodes; what a
    Gemm became is none.  A step belongs to an island if it reads and writes float32, so
    the conversions at its shores do not count.
    """
    tensors = program.tensors
    known = [op.name for op in program.ops if isinstance(op, Conv2dOp | MatmulOp)]
    if not products.intersection(known):
        raise ValueError("none of the products is a step of the program")
    makers = {op.output: op for op in program.ops}
    before: dict[str, bool] = dict.fromkeys(program.inputs, False)
    for op in program.ops:
        before[op.output] = op.name in products or any(before[i] for i in op.inputs)
    after: dict[str, bool] = {}
    for op in reversed(program.ops):
        here = after.get(op.output, False) or op.name in products
        after |= {i: after.get(i, False) or here for i in op.inputs}

    def floats(op: Op) -> bool:
        return all(tensors[t].dtype == "float32" for t in (*op.inputs, op.output))

    groups: dict[int, set[int]] = {}
    number = {id(op): index for index, op in enumerate(program.ops)}
    for op in program.ops:
        if not (floats(op) and before[op.output] and after.get(op.output, False)):
            continue
        mine = {number[id(op)]}
        for name in op.inputs:
            maker = makers.get(name)
            if maker is not None:
                mine |= groups.get(number[id(maker)], set())
        for member in mine:
            groups[member] = mine
    found = {id(group): group for group in groups.values()}
    return [
        island(program, tuple(program.ops[index] for index in sorted(group)))
        for group in found.values()
    ]


def island(program: Program, steps: tuple[Op, ...]) -> Island:
    """These steps and why they run in float32."""
    known = (program.islands[op.name] for op in steps if op.name in program.islands)
    return Island(steps, tuple(dict.fromkeys(known)))
