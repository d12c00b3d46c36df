# SPDX-License-Identifier: Apache-2.0
"""One way to run a network: FP32, int8 on this machine, or int8 under emulation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neon8.calibrate.reference import Reference
from neon8.compile.program import Tensor
from neon8.errors import DataError, ModelError
from neon8.inspection import model_file
from neon8.quantize.oracle import centred, quantize
from neon8.runtime import Model
from neon8.runtime.emulate import EmulatedModel

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]
TARGETS = ("native", "aarch64")


@dataclass(frozen=True, slots=True)
class Runner:
    """A network that is open.

    shapes: of the inputs, as in ONNX; dtypes: "int8" or "float32"; run: name -> array
    of that shape and type, inputs and outputs; outputs in the order of the network.
    """

    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    run: Callable[[Arrays], Arrays]


def is_model_file(path: Path) -> bool:
    """True for an .n8 file, by its name or by its first bytes."""
    if path.suffix == ".n8":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(model_file.MAGIC)) == model_file.MAGIC
    except OSError:
        return False


@contextmanager
def open_int8(
    path: Path, *, target: str = "native", cpu: str = "max", isa: str | None = None
) -> Iterator[Runner]:
    """An .n8 file, run as it is.  ModelError, SetupError."""
    if target == "aarch64":
        with EmulatedModel(path, target=target, cpu=cpu, isa=isa) as emulated:
            yield _runner(emulated, emulated.run)
    elif target == "native":
        with Model.open(path, isa=isa) as model, model.session() as session:
            yield _runner(model, session.run)
    else:
        raise DataError(f"target {target!r} is not one of {', '.join(TARGETS)}")


def _runner(model: Model | EmulatedModel, run: Callable[[Arrays], Arrays]) -> Runner:
    return Runner(
        {name: tuple(info.shape) for name, info in model.inputs.items()},
        {name: info.dtype for name, info in model.inputs.items()},
        run,
    )


@contextmanager
def open_real(
    path: Path, *, target: str = "native", cpu: str = "max", isa: str | None = None
) -> Iterator[Runner]:
    """An ONNX or .n8 file that takes and gives real values, float32.

    int8 inputs and outputs pass through the model's own scales, (2) and (1).
    """
    if not is_model_file(path):
        if target != "native":
            raise ModelError(f"{path}: only an .n8 file runs on {target}; compile it")
        reference = Reference(path)
        shapes = {name: tuple(dims) for name, dims in reference.input_shapes.items()}
        yield Runner(shapes, dict.fromkeys(shapes, "float32"), reference.run)
        return
    with open_int8(path, target=target, cpu=cpu, isa=isa) as runner:
        contents = model_file.load(path)
        inputs = {tensor.name: _quantized(tensor) for tensor in contents.inputs}
        outputs = {tensor.name: _quantized(tensor) for tensor in contents.outputs}

        def run(real: Arrays) -> Arrays:
            results = runner.run(
                {name: _to_model(array, inputs[name]) for name, array in real.items()}
            )
            return {
                name: _from_model(array, outputs[name])
                for name, array in results.items()
            }

        yield Runner(runner.shapes, dict.fromkeys(runner.shapes, "float32"), run)


def _quantized(tensor: model_file.FileTensor) -> Tensor:
    return Tensor(
        name=tensor.name,
        shape=(1, 1, 1, 1),
        rank=len(tensor.shape),
        dtype=tensor.dtype,
        scale=np.float32(tensor.scale),
        zero_point=tensor.zero_point,
        lo=tensor.lo,
        hi=tensor.hi,
    )


def _to_model(array: Array, tensor: Tensor) -> Array:
    real = array.astype(np.float32)
    return quantize(real, tensor) if tensor.dtype == "int8" else real


def _from_model(array: Array, tensor: Tensor) -> Array:
    return centred(array, tensor) * tensor.scale if tensor.dtype == "int8" else array
