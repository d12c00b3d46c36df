# SPDX-License-Identifier: Apache-2.0
"""One way to run a network: FP32, int8 on this machine, or int8 under emulation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neon8.calibrate.run.reference import Reference
from neon8.compile.oracle import centred, quantize
from neon8.compile.program import Tensor
from neon8.errors import DataError, ModelError
from neon8.runtime import Model, TensorInfo
from neon8.runtime.emulate import EmulatedModel
from neon8.runtime.model import MAGIC

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]
TARGETS = ("native", "aarch64")


@dataclass(frozen=True, slots=True)
class Runner:
    """A network that is open.

    run: name -> array as `inputs` says to name -> array, in the order of the network.
    outputs: of an .n8 file that is run as it is; else empty.
    """

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    run: Callable[[Arrays], Arrays]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs, as in ONNX."""
        return {name: info.shape for name, info in self.inputs.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """Of the inputs: "int8" or "float32"."""
        return {name: info.dtype for name, info in self.inputs.items()}


def is_model_file(path: Path) -> bool:
    """True for an .n8 file, by its name or by its first bytes."""
    if path.suffix == ".n8":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def float_inputs(reference: Reference) -> dict[str, TensorInfo]:
    """What an FP32 network takes."""
    return {
        name: TensorInfo(shape=tuple(dims), dtype="float32")
        for name, dims in reference.input_shapes.items()
    }


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
    return Runner(model.inputs, model.outputs, run)


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
        yield Runner(float_inputs(reference), {}, reference.run)
        return
    with open_int8(path, target=target, cpu=cpu, isa=isa) as runner:

        def run(real: Arrays) -> Arrays:
            results = runner.run(
                {
                    name: _to_model(array, runner.inputs[name])
                    for name, array in real.items()
                }
            )
            return {
                name: _from_model(array, runner.outputs[name])
                for name, array in results.items()
            }

        inputs = {
            name: TensorInfo(shape=info.shape, dtype="float32")
            for name, info in runner.inputs.items()
        }
        yield Runner(inputs, {}, run)


def _tensor(info: TensorInfo) -> Tensor:
    """As the oracle takes it; the name and the shape are not looked at."""
    return Tensor(
        name="",
        shape=(1, 1, 1, 1),
        rank=1,
        dtype=info.dtype,
        scale=np.float32(info.scale),
        zero_point=info.zero_point,
        lo=info.lo,
        hi=info.hi,
    )


def _to_model(array: Array, info: TensorInfo) -> Array:
    real = array.astype(np.float32)
    return quantize(real, _tensor(info)) if info.dtype == "int8" else real


def _from_model(array: Array, info: TensorInfo) -> Array:
    if info.dtype != "int8":
        return array
    real: Array = centred(array, _tensor(info)) * np.float32(info.scale)
    return real
