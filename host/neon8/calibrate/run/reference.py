# SPDX-License-Identifier: Apache-2.0
"""The FP32 network run by onnxruntime, the only module that imports it."""

import copy
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.errors import DataError, GraphError
from neon8.graph.extend import with_outputs
from neon8.graph.onnx_file import ModelLike, open_onnx

# From 1.31 on, importing it writes a device ID for telemetry into the user's home.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

Array = npt.NDArray[np.generic]

FACTS = {
    "engine": "onnxruntime",
    "version": str(onnxruntime.__version__),
    "provider": "CPUExecutionProvider",
    "optimization": "ORT_ENABLE_ALL",
}
"""Other builds, providers and levels round differently; thread count and batch do not
matter."""
SILENT = 4
TENSOR = "tensor("
NUMBERS = {
    "float": "float32",
    "double": "float64",
    **{name: name for name in ("float16", "bool", "int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64")},
}
"""onnxruntime's names of types, and numpy's."""
CPU_CLASSES = ("avx512f", "avx2", "avx", "sve")
"""Flags by which onnxruntime chooses its matrix kernels, the strongest first."""


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Like "x86_64 avx2"; the architecture alone where the rest is not known.

    Processors with other vector instructions sum, and so round, in another order.
    """
    name = platform.machine() or "unknown"
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return name
    flags: set[str] = set()
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            flags.update(value.split())
    return " ".join([name, *(flag for flag in CPU_CLASSES if flag in flags)][:2])


class Reference:
    """The network in an ONNX file, in FP32, on one thread.

    input_shapes: name -> shape, a free batch being 1.  output_names: those of the file
    that are tensors.  GraphError if onnxruntime does not take the file.
    """

    def __init__(
        self,
        model: ModelLike,
        extra_outputs: Iterable[str] = (),
        *,
        reuse: bool = False,
    ) -> None:
        """extra_outputs: names of tensors inside the network to hand out as well.

        reuse: every result lies where the one before did, which saves the time that
        new memory costs; for networks whose results always have the same shapes.
        """
        file = open_onnx(model)
        self._path = path = file.path
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = SILENT
        self._weights = file.weights  # onnxruntime may read them where they are
        try:
            if file.weights:
                arrays = file.weights.values()
                values = [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in arrays]
                options.add_external_initializers(list(file.weights), values)
            self._session = onnxruntime.InferenceSession(
                with_outputs(file, extra_outputs),
                options,
                providers=["CPUExecutionProvider"],
            )
        except Exception as error:  # onnxruntime has no public base class of errors
            text = f"onnxruntime cannot run it: {_one_line(error)}"
            raise GraphError(f"{path}: {text}") from error
        inputs = self._session.get_inputs()
        self.input_shapes = {v.name: _shape(path, v.name, v.shape) for v in inputs}
        self._types = {v.name: _type(path, v.name, v.type) for v in inputs}
        outputs = self._session.get_outputs()
        self.output_names = tuple(v.name for v in outputs if v.type.startswith(TENSOR))
        self._reuse = reuse
        self._buffer: _Buffer | None = None

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs and extra outputs, by name.  DataError if it fails.

        inputs: numbers of any type, which become those that the network takes.
        """
        try:
            return self._run(
                {
                    name: np.ascontiguousarray(array, self._types.get(name))
                    for name, array in inputs.items()
                }
            )
        except Exception as error:  # as above
            raise DataError(f"{self._path}: onnxruntime: {_one_line(error)}") from error

    def another(self) -> "Reference":
        """The same network, to be run at the same time by another thread."""
        twin = copy.copy(self)
        twin._buffer = None  # noqa: SLF001 - of this class
        return twin

    def _run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if self._buffer is None:
            names = list(self.output_names)
            values = map(np.asarray, self._session.run(names, dict(inputs)))
            outputs = dict(zip(self.output_names, values, strict=True))
            if self._reuse:
                self._buffer = _buffer(self._session, outputs)
            return outputs
        for name, array in inputs.items():
            self._buffer.binding.bind_cpu_input(name, array)
        self._session.run_with_iobinding(self._buffer.binding)
        return dict(self._buffer.outputs)


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Results of a run, bound to their memory."""

    binding: Any
    outputs: dict[str, Array]


def _buffer(session: Any, like: Mapping[str, Array]) -> _Buffer:
    binding = session.io_binding()
    outputs = {name: np.empty_like(array) for name, array in like.items()}
    for name, array in outputs.items():
        place = array.ctypes.data
        binding.bind_output(name, "cpu", 0, array.dtype, list(array.shape), place)
    return _Buffer(binding, outputs)


def _shape(path: Path, name: str, dims: Iterable[int | str | None]) -> tuple[int, ...]:
    shape = list(dims)
    if shape and not isinstance(shape[0], int):
        shape[0] = 1
    sizes = tuple(dim for dim in shape if isinstance(dim, int))
    if len(sizes) != len(shape):
        text = f"input {name!r} has dimensions {shape}; give them by --shape"
        raise GraphError(f"{path}: {text}")
    return sizes


def _type(path: Path, name: str, kind: str) -> np.dtype[Any]:
    """The type of an input, "tensor(double)", as numpy has it."""
    word = kind.removeprefix(TENSOR).removesuffix(")")
    known = NUMBERS.get(word)
    if known is None or not kind.startswith(TENSOR):
        text = f"input {name!r} is {kind}; samples are tensors of numbers"
        raise GraphError(f"{path}: {text}")
    return np.dtype(known)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
