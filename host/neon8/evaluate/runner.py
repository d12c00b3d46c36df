# SPDX-License-Identifier: Apache-2.0
"""A network as a function on float32 arrays, whatever runs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from neon8.calibrate.run.reference import Reference
from neon8.compile.oracle import centred, quantize
from neon8.compile.program import Tensor
from neon8.data.arrays import Array, Arrays
from neon8.errors import ModelError
from neon8.runtime import TensorInfo
from neon8.runtime.targets import Runner, is_model_file, open_model


@contextmanager
def open_float(
    path: Path,
    *,
    target: str = "native",
    cpu: str = "max",
    isa: str | None = None,
    max_bytes: int | None = None,
) -> Iterator[Runner]:
    """An ONNX or .n8 file that takes and gives float32.

    int8 inputs and outputs pass through the model's own scales, (2) and (1).
    GraphError, ModelError, SetupError.
    """
    if not is_model_file(path):
        if target != "native":
            raise ModelError(f"{path}: only an .n8 file runs on {target}; compile it")
        reference = Reference(path)
        yield Runner(float_inputs(reference.input_shapes), {}, reference.run)
        return
    with open_model(
        path, target=target, cpu=cpu, isa=isa, max_bytes=max_bytes
    ) as runner:

        def run(arrays: Arrays) -> Arrays:
            results = runner.run(
                {
                    name: _quantized(array, runner.inputs[name])
                    for name, array in arrays.items()
                }
            )
            return {
                name: _dequantized(array, runner.outputs[name])
                for name, array in results.items()
            }

        yield Runner(float_inputs(runner.shapes), {}, run)


def float_inputs(shapes: dict[str, tuple[int, ...]]) -> dict[str, TensorInfo]:
    """Inputs of these shapes that are float32."""
    return {
        name: TensorInfo(shape=tuple(shape), dtype="float32")
        for name, shape in shapes.items()
    }


def _quantized(array: Array, info: TensorInfo) -> Array:
    values = array.astype(np.float32)
    return quantize(values, _tensor(info)) if info.dtype == "int8" else values


def _dequantized(array: Array, info: TensorInfo) -> Array:
    if info.dtype != "int8":
        return array
    values: Array = centred(array, _tensor(info)) * np.float32(info.scale)
    return values


def _tensor(info: TensorInfo) -> Tensor:
    """As the oracle takes it; the name and the shape are not looked at."""
    return Tensor(
        name="",
        dims=(1,),
        dtype=info.dtype,
        scale=np.float32(info.scale),
        zero_point=info.zero_point,
        lo=info.lo,
        hi=info.hi,
    )
