# SPDX-License-Identifier: Apache-2.0
"""A network as a function on samples, whatever runs it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from neon8.arrays import Array
from neon8.calibrate.run.reference import Reference
from neon8.calibrate.run.shaped import AtShapes, shapes_of
from neon8.data.arrays import Arrays
from neon8.data.inputs import Input
from neon8.data.open_inputs import onnx_inputs
from neon8.errors import ModelError
from neon8.graph.maker import maker
from neon8.graph.onnx_file import OnnxFile, Shapes, open_onnx
from neon8.ir.program import Tensor
from neon8.machines import NATIVE
from neon8.operators.reference import centred, quantize
from neon8.runtime import TensorInfo
from neon8.runtime.arrays import QUANTIZED, StepInfo
from neon8.runtime.targets import HERE, is_model_file, open_model
from neon8.settings.shapes import is_open, settled
from neon8.settings.stages import TargetSettings

IMAGE_RANK = 4


@dataclass(frozen=True, slots=True)
class FloatRunner:
    """A network that is open.

    run: name -> array as `inputs` describes them to name -> real values, in the order
    of the network; several threads may call it at the same time.  most: how many of
    them have room in memory, None: any number; best: how many it wants.  maker: the
    ONNX operator that computes an output, "" if the file does not say.  steps: of int8
    and int16 outputs, the distance of two values.
    converted: inputs and outputs that lie N H W C where ONNX has N C H W, with the same
    dimensions.  stop: ends the runs of onnxruntime, which may take for ever.
    loose: the outputs of a cut network whose sizes depend on the data.
    """

    inputs: dict[str, Input]
    run: Callable[[Arrays], Arrays]
    maker: Callable[[str], str] = field(default=lambda _: "")
    steps: Mapping[str, float] = field(default_factory=dict)
    converted: frozenset[str] = frozenset()
    most: int | None = None
    best: int | None = None
    stop: Callable[[], None] = field(default=lambda: None)
    loose: frozenset[str] = frozenset()


@contextmanager
def open_float(
    path: Path, shapes: Shapes | None = None, where: TargetSettings = HERE
) -> Iterator[FloatRunner]:
    """An ONNX or .n8 file, or a cut network, that takes and gives real values.

    shapes: of inputs whose dimensions an ONNX file leaves open.  where: an .n8 file
    runs; its int8 and int16 inputs and outputs pass through its own scales, (2) and
    (1).  GraphError, ModelError, SetupError.
    """
    if not is_model_file(path):
        if where.target != NATIVE:
            raise ModelError(
                f"{path}: only an .n8 file runs on {where.target}; compile it"
            )
        if is_open(shapes):
            yield _open_float(path, shapes or {})
            return
        file = open_onnx(path, shapes=shapes)
        reference = Reference(file)
        yield FloatRunner(
            reference.inputs,
            reference.run,
            partial(maker, file),
            stop=reference.stop,
        )
        return
    with open_model(path, where) as runner:

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

        others = {
            name: dtype
            for name, dtype in runner.dtypes.items()
            if dtype not in (*QUANTIZED, "float32")
        }
        yield FloatRunner(
            runner.taken(others),
            run,
            steps={
                name: info.scale
                for name, info in runner.outputs.items()
                if info.quantized
            },
            converted=_hidden_conversions(runner.steps, runner.inputs | runner.outputs),
            most=runner.most,
            best=runner.best,
            stop=runner.stop,
            loose=runner.loose,
        )


def _open_float(path: Path, shapes: Shapes) -> FloatRunner:
    """An ONNX file whose samples have shapes of their own."""
    files: list[OnnxFile] = []

    def opened(sizes: dict[str, tuple[int, ...]]) -> Reference:
        files[:] = [open_onnx(path, shapes=settled(shapes, sizes))]
        return Reference(files[0])

    references = AtShapes(opened)

    def stop() -> None:
        for reference in references.kept:
            reference.stop()

    return FloatRunner(
        onnx_inputs(path, shapes),
        lambda arrays: references.at(shapes_of(arrays)).run(arrays),
        lambda name: maker(files[0], name),  # asked once there are outputs
        stop=stop,
    )


def _hidden_conversions(
    steps: Sequence[StepInfo], ends: Mapping[str, TensorInfo]
) -> frozenset[str]:
    """Name the ends that compile --io-layout nhwc converted, with equal dimensions.

    The step that converts an end has its name; what it makes or reads has a longer one.
    """
    found = set()
    for step in steps:
        shape = ends[step.name].shape if step.name in ends else ()
        hidden = len(shape) == IMAGE_RANK and len(set(shape[1:])) == 1
        if step.operation != "permute" or not hidden:
            continue
        given, made = step.inputs[0], step.output
        inner = made if given == step.name else given
        if step.name in (given, made) and inner.startswith(f"{step.name}_"):
            found.add(step.name)
    return frozenset(found)


def as_float32(array: Array) -> Array:
    """As an .n8 file takes it where the ONNX network takes other floats."""
    return array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array


def _quantized(array: Array, info: TensorInfo) -> Array:
    if info.quantized:
        return quantize(array.astype(np.float32), _tensor(info))
    return as_float32(array)


def _dequantized(array: Array, info: TensorInfo) -> Array:
    if not info.quantized:
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
