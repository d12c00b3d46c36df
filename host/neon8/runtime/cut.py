# SPDX-License-Identifier: Apache-2.0
"""A network that was cut, run whole: onnxruntime before and after the .n8 file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError, ModelError, SetupError
from neon8.runtime import cut_file
from neon8.runtime.arrays import TensorInfo, checked
from neon8.runtime.closable import Closable
from neon8.runtime.cut_file import End
from neon8.runtime.model import Model
from neon8.runtime.session import Session
from neon8.runtime.threads import ThreadPool

Arrays = dict[str, Array]


class _OnnxPart:
    """An ONNX file beside the .n8 file, opened."""

    def __init__(self, path: Path, data: bytes) -> None:
        """ModelError: onnxruntime refuses it."""
        # Only this needs it.
        from neon8.onnx_session import (  # noqa: PLC0415
            TYPES,
            OnnxSession,
            one_line,
        )

        self._path, self._one_line = path, one_line
        try:
            self._session: OnnxSession = OnnxSession(data)
        except Exception as error:  # onnxruntime has no public base class of errors
            text = f"onnxruntime refuses it: {one_line(error)}"
            raise ModelError(f"{path}: {text}") from error
        inputs = self._session.session.get_inputs()
        self.inputs = {each.name: TYPES.get(each.type, "") for each in inputs}
        outputs = self._session.session.get_outputs()
        self.outputs = {each.name: _known(each.shape) for each in outputs}

    def run(self, values: Arrays) -> Arrays:
        """Make its outputs of the tensors in `values`.  DataError."""
        given = {name: _as(values[name], kind) for name, kind in self.inputs.items()}
        try:
            return self._session.run(self.outputs, given)
        except KeyboardInterrupt:
            self._session.resume()  # it has ended this one
            raise
        except Exception as error:  # as above
            text = f"onnxruntime: {self._one_line(error)}"
            raise DataError(f"{self._path}: {text}") from error

    def stop(self) -> None:
        """Make all runs end with an error."""
        self._session.stop()


def _known(dims: Sequence[object]) -> tuple[int, ...] | None:
    """The dimensions that onnxruntime gives, None unless it knows all of them."""
    found = tuple(dim for dim in dims if isinstance(dim, int))
    return found if len(found) == len(dims) else None


def _as(value: Array, dtype: str) -> Array:
    """Numbers as another type, which holds them; all else as it is."""
    if not dtype or not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        return value
    with np.errstate(over="ignore"):
        return value.astype(dtype, copy=False)


class Around:
    """A cut network but for the opened .n8 file: what stands before and after it.

    inputs, outputs: of the whole network; the shape of an output is () if only a run
    shows it, and its type "" if it is no tensor of numbers.
    loose: the outputs of such a shape.  path: of the .n8 file, which is checked.
    """

    def __init__(self, source: Path) -> None:
        """Read the description and all parts.

        ModelError: one is missing, damaged or another one.  SetupError: onnxruntime is
        not installed.
        """
        file = cut_file.load(source)
        self._source = source
        self.inputs = {name: _info(end) for name, end in file.inputs.items()}
        inside = file.parts["inside"]
        self.path = source.parent / inside.file
        inside.read(source)
        try:
            self._parts = {
                name: _OnnxPart(source.parent / part.file, part.read(source))
                for name, part in file.parts.items()
                if name != "inside"
            }
        except ImportError as error:
            text = "onnxruntime, which runs what stands before and after the .n8 file,"
            remedy = f"pip install onnxruntime, or run {inside.file} alone"
            raise SetupError(f"{source}: {text} is not installed; {remedy}") from error
        shapes = {
            n: d for part in self._parts.values() for n, d in part.outputs.items()
        }
        self._ends = {
            name: replace(end, shape=shapes.get(name)) if end.shape is None else end
            for name, end in file.outputs.items()
        }
        self.outputs = {name: _info(end) for name, end in self._ends.items()}
        self.loose = frozenset(n for n, end in self._ends.items() if end.shape is None)

    def check(
        self, inputs: Mapping[str, TensorInfo], outputs: Mapping[str, TensorInfo]
    ) -> None:
        """ModelError: a part takes what nothing gives.

        inputs, outputs: of the .n8 file.
        """
        there = set(self.inputs)
        for name in cut_file.PARTS:
            part = self._parts.get(name)
            takes: Iterable[str] = part.inputs if part else ()
            gives: Iterable[str] = part.outputs if part else ()
            if name == "inside":
                takes, gives = inputs, outputs
            self._check_there(takes, there, f"what stands {name} takes")
            there.update(gives)
        self._check_there(self.outputs, there, "the network gives")

    def _check_there(self, names: Iterable[str], there: set[str], what: str) -> None:
        for name in names:
            if name not in there:
                text = f"{what} {name!r}, which no part makes"
                raise ModelError(f"{self._source}: {text}; compile with --cut again")

    def run(
        self,
        inputs: Mapping[str, Array],
        inside: Callable[[Arrays], Arrays],
        takes: Mapping[str, TensorInfo],
    ) -> Arrays:
        """Run the whole network.

        inside: runs the .n8 file.  takes: its inputs.  DataError: an input has another
        name, shape or type; floats are cast to the type of the input.
        """
        cast = inputs
        if isinstance(inputs, Mapping):
            cast = {name: self._cast(name, array) for name, array in inputs.items()}
        arrays = checked(cast, self.inputs, source=str(self._source))
        values: Arrays = dict(zip(self.inputs, arrays, strict=True))
        if "before" in self._parts:
            values |= self._parts["before"].run(values)
        given = {name: values[name] for name in takes}
        values |= inside(
            {
                name: _as(array, "float32") if array.dtype.kind == "f" else array
                for name, array in given.items()
            }
        )
        if "after" in self._parts:
            values |= self._parts["after"].run(values)
        return {name: _as(values[name], end.dtype) for name, end in self._ends.items()}

    def _cast(self, name: str, value: Array) -> Array:
        """A float as the type of float that the input has."""
        array = np.asarray(value)
        wanted = np.dtype(self.inputs[name].dtype) if name in self.inputs else None
        if wanted is None or not wanted.kind == array.dtype.kind == "f":
            return array
        return _as(array, wanted.name)

    def stop(self) -> None:
        """Make the runs of onnxruntime end with an error."""
        for part in self._parts.values():
            part.stop()


def _info(end: End) -> TensorInfo:
    lo, hi = -128, 127
    if end.dtype == "int16":
        lo, hi = -(2**15), 2**15 - 1
    return TensorInfo(shape=end.shape or (), dtype=end.dtype, lo=lo, hi=hi)


@final
class CutModel(Closable):
    """A network that `neon8 compile --cut` has cut, opened: to be used as a Model.

    inputs, outputs: of the whole network, as the ONNX network has them; the shape of an
    output is () if only a run shows it, and its type "" if it is no tensor of numbers.
    inside: the part that neon8 runs.
    """

    def __init__(self, around: Around, inside: Model, source: str) -> None:
        """Use CutModel.open."""
        self._around = around
        self.inside = inside
        self.source = source
        self.inputs, self.outputs = around.inputs, around.outputs

    def __repr__(self) -> str:
        """Name the file."""
        return f"<CutModel {self.source!r}>"

    @classmethod
    def open(
        cls, path: str | Path, isa: str | None = None, *, max_bytes: int | None = None
    ) -> "CutModel":
        """The network that the description `path`, NAME.cut.json, tells of.

        isa, max_bytes: of the part that neon8 runs, see Model.open.
        ModelError: a file is unreadable, damaged or not of this network. SetupError:
        onnxruntime is not installed; or as Model.open.
        """
        around = Around(Path(path))
        model = Model.open(around.path, isa, max_bytes=max_bytes)
        around.check(model.inputs, model.outputs)
        return cls(around, model, str(path))

    def session(
        self, threads: int | None = None, *, pool: ThreadPool | None = None
    ) -> "CutSession":
        """A new session; the threads are those of the .n8 file, see Model.session."""
        return CutSession(
            self._around, self.inside, self.inside.session(threads, pool=pool)
        )

    def close(self) -> None:
        """Free the model and its sessions; closing twice is allowed."""
        self.inside.close()


@final
class CutSession(Closable):
    """The memory of one run at a time.  Made by CutModel.session."""

    def __init__(self, around: Around, model: Model, inside: Session) -> None:
        """Use CutModel.session."""
        self._around, self._model, self._inside = around, model, inside

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once.  inputs, result: name -> array, as the model describes them.

        DataError: an input has another name, shape or type.
        """
        return self._around.run(inputs, self._inside.run, self._model.inputs)

    def close(self) -> None:
        """Free the memory; closing twice is allowed."""
        self._inside.close()
