# SPDX-License-Identifier: Apache-2.0
"""Where an .n8 file runs: on this machine or in an emulated ARM process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from neon8.errors import DataError
from neon8.runtime.arrays import Array, StepInfo, TensorInfo
from neon8.runtime.emulate import EmulatedModel
from neon8.runtime.model import MAGIC, Model

TARGETS = ("native", "aarch64")


@dataclass(frozen=True, slots=True)
class Runner:
    """A network that is open.

    run: name -> array as `inputs` describes them to name -> array, in the order of the
    network.  outputs: those of an .n8 file that runs as it is, otherwise empty.
    """

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    run: Callable[[dict[str, Array]], dict[str, Array]]
    steps: tuple[StepInfo, ...] = ()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input, as in ONNX."""
        return {name: info.shape for name, info in self.inputs.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """The type of each input, as numpy calls it."""
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


@contextmanager
def open_model(
    path: Path,
    *,
    target: str = "native",
    cpu: str = "max",
    isa: str | None = None,
    max_bytes: int | None = None,
) -> Iterator[Runner]:
    """An .n8 file, run as it is.

    cpu: the core to emulate.  isa: as in Model.open.  max_bytes: see
    Model.open.
    ModelError, SetupError.
    """
    if target == "aarch64":
        with EmulatedModel(
            path, target=target, cpu=cpu, isa=isa, max_bytes=max_bytes
        ) as emulated:
            yield Runner(
                emulated.inputs, emulated.outputs, emulated.run, emulated.steps
            )
    elif target == "native":
        with (
            Model.open(path, isa=isa, max_bytes=max_bytes) as model,
            model.session() as session,
        ):
            yield Runner(model.inputs, model.outputs, session.run, model.steps)
    else:
        raise DataError(f"target {target!r} is not one of {', '.join(TARGETS)}")
