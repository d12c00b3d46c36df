# SPDX-License-Identifier: Apache-2.0
"""The FP32 network, run by onnxruntime."""

import copy
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.data.inputs import Input, of_shapes
from neon8.errors import DataError, GraphError
from neon8.graph.extend import with_outputs
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.ir.graph import Tensor
from neon8.onnx_session import TYPES, OnnxSession, one_line

CPU_CLASSES = ("avx512f", "avx2", "avx", "sve")
"""Flags by which onnxruntime chooses its matrix kernels, the strongest first."""


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor, like "x86_64 avx2", or its architecture alone if unsure.

    Other vector instructions add, and so round, in another order.
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

    inputs: by name; a free first dimension is 1.  output_names: the outputs of the file
    that are tensors of numbers.  GraphError: onnxruntime refuses the file.
    """

    def __init__(
        self,
        model: ModelLike,
        extra_outputs: Iterable[str] = (),
        *,
        inside: bool = False,
        fixed: bool = True,
        tensors: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Load the network.

        extra_outputs: inner tensors to return as well.  inside: return only these, and
        reuse their memory from run to run, which is faster.  fixed: False if shapes may
        differ between samples, so that memory cannot be reused.  tensors: those of the
        Graph, for extra outputs that the file does not declare.
        """
        file, extra_outputs = open_onnx(model), tuple(extra_outputs)
        self._path = path = file.path
        try:
            data = with_outputs(file, extra_outputs, tensors)
            self._session = OnnxSession(data, file.weights)
        except Exception as error:  # onnxruntime has no public base class of errors
            text = f"onnxruntime cannot run it: {one_line(error)}"
            raise GraphError(f"{path}: {text}") from error
        self.inputs = _inputs(path, self._session.session.get_inputs())
        outputs = self._session.session.get_outputs()
        self.output_names = tuple(v.name for v in outputs if v.type in TYPES)
        self._reuse = inside and fixed
        self._wanted = tuple(extra_outputs) if inside else self.output_names
        self._buffer: tuple[Any, dict[str, Array]] | None = None

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one sample; outputs and extra outputs by name.  DataError.

        inputs: of the shapes of self.inputs; floats are cast to floats, and integers to
        integers, which are int32 where an .n8 file takes them.
        """
        given = {n: self._cast(n, array) for n, array in inputs.items()}
        try:
            return self._run(given)
        except Exception as error:  # as above
            raise DataError(f"{self._path}: onnxruntime: {one_line(error)}") from error

    def another(self) -> "Reference":
        """The same network for another thread, to run at the same time."""
        twin = copy.copy(self)
        twin._buffer = None  # noqa: SLF001 - of this class
        return twin

    def stop(self) -> None:
        """Make all runs end with an error, those of another() too; for Ctrl-C."""
        self._session.stop()

    def _cast(self, name: str, array: Array) -> Array:
        """Cast to the type of the input, which may be float16 or int64."""
        dtype = np.dtype(self.inputs[name].dtype) if name in self.inputs else None
        for kinds in ("f", "iub"):
            if dtype is not None and dtype.kind in kinds and array.dtype.kind in kinds:
                return array.astype(dtype, copy=False)
        return array

    def _run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if not self._wanted:
            return {}
        if self._buffer is None:
            found = self._session.run(self._wanted, inputs)
            outputs = {name: np.asarray(value) for name, value in found.items()}
            if self._reuse:
                self._buffer = _buffer(self._session.session, outputs)
            return outputs
        binding, outputs = self._buffer
        for name, array in inputs.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(array))
        self._session.run_bound(binding)
        return dict(outputs)


def _buffer(session: Any, like: Mapping[str, Array]) -> tuple[Any, dict[str, Array]]:
    """Memory for results, and onnxruntime's binding of them to it."""
    binding = session.io_binding()
    outputs = {name: np.empty_like(array) for name, array in like.items()}
    for name, array in outputs.items():
        place = array.ctypes.data
        binding.bind_output(name, "cpu", 0, array.dtype, list(array.shape), place)
    return binding, outputs


def _inputs(path: Path, values: Iterable[Any]) -> dict[str, Input]:
    """The inputs as onnxruntime describes them.  GraphError."""
    shapes: dict[str, tuple[int, ...]] = {}
    dtypes, free = {}, set()
    for value in values:
        name, dims = value.name, list(value.shape)
        if dims and not isinstance(dims[0], int):
            free.add(name)
            dims[0] = 1
        if not all(isinstance(dim, int) for dim in dims):
            text = f"input {name!r} has dimensions {dims}; give them by --shape,"
            text += " in Python by shapes"
            raise GraphError(f"{path}: {text}")
        if value.type not in TYPES:
            text = f"input {name!r} is a {value.type}; expected a tensor of numbers;"
            text += " cut the network after it"
            raise GraphError(f"{path}: {text}")
        shapes[name], dtypes[name] = tuple(dims), TYPES[value.type]
    return of_shapes(shapes, dtypes, free=free)
