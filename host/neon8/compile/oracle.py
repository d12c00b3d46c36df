# SPDX-License-Identifier: Apache-2.0
"""The oracle: docs/numerics.md in numpy, which every back end equals byte for byte.

Written for the reader who wants to check the arithmetic: one equation, one function. It
shares no code with the C side, nor with what computes the constants of a Program but
for the elementary functions (15), which stand in a module of their own. All float32
operations are on float32 arrays, one at a time, so each is rounded once.
"""

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.reference import Operand
from neon8.operators.registry import STEPS
from neon8.runtime.arrays import as_int32


def run(program: Program, inputs: dict[str, Array]) -> dict[str, Array]:
    """Run once.  inputs, outputs: by name, shaped as in ONNX.

    DataError: an input is missing, or of another shape or type.
    """
    values = {name: taken(program.tensors[name], inputs) for name in program.inputs}
    for op in program.ops:
        out = program.tensors[op.output]
        result = step(program, op, out, [values[name] for name in op.inputs])
        if result.shape != out.shape or result.dtype != np.dtype(out.dtype):
            raise AssertionError(f"{op.name}: {result.dtype}{result.shape}, not {out}")
        values[op.output] = result
    return {
        name: values[name].reshape(program.tensors[name].dims)
        for name in program.outputs
    }


def taken(tensor: Tensor, inputs: dict[str, Array]) -> Array:
    """One input as N C H W, checked; integers of any type that fit are int32."""
    expected = tensor.dims
    value = inputs.get(tensor.name)
    if tensor.dtype == "int32" and value is not None and value.dtype.kind in "iub":
        value = as_int32(value, tensor.name, "a sample")
    if (
        value is None
        or value.shape != expected
        or value.dtype != np.dtype(tensor.dtype)
    ):
        given = "nothing" if value is None else f"{value.dtype} {value.shape}"
        raise DataError(
            f"input {tensor.name!r}: {given} given, {tensor.dtype} {expected} expected"
        )
    array: Array = np.reshape(value, tensor.shape)
    return array


def step(program: Program, op: Op, out: Tensor, operands: list[Array]) -> Array:
    """The result of one op, N C H W."""
    sources = (program.tensors[name] for name in op.inputs)
    return STEPS[type(op)](op, out, *map(Operand, sources, operands))
