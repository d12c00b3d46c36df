# SPDX-License-Identifier: Apache-2.0
"""Runs of an opened model, one after another in the same memory."""

import itertools
import queue
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from neon8.arrays import Array
from neon8.errors import ModelError
from neon8.runtime.arrays import checked
from neon8.runtime.closable import Closable
from neon8.runtime.library import Library
from neon8.runtime.structs import check, size_of
from neon8.runtime.threads import ThreadPool

if TYPE_CHECKING:  # it makes sessions
    from neon8.runtime.model import Model

SMALL = 2**14
"""Bytes of an input or output that a run copies."""

SHAPES_KEPT = 8
"""Sessions at other shapes that a session keeps for runs to come."""


@final
class Session(Closable):
    """The memory of one run at a time.  Made by Model.session.

    Threads may call `run` at the same time; they take turns. For runs side by side give
    each thread its own session.
    """

    def __init__(
        self,
        model: "Model",
        lib: Library,
        handle: Any,
        threads: int,
        pool: ThreadPool | None,
    ) -> None:
        """Use Model.session."""
        self._model = model
        self._threads = (threads or None, pool)
        self._others: dict[tuple[tuple[int, ...], ...], Session] = {}
        self._library = lib
        self._handle = handle
        # What a run takes and gives back, as a lock that costs less.
        self._turn: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._turn.put(None)
        self._given = lib.ffi.new("const void *[]", len(model.inputs))
        self._taken = lib.ffi.new("void *[]", len(model.outputs))
        check(lib, lib.lib.n8_session_bind(handle, self._given, self._taken), "session")
        # Getting the pointer of an array takes longer than copying some KB, so small
        # ones are copied to and from the session's own, whose pointers C has for good.
        small_inputs = []
        large_inputs = []
        for index, (name, info) in enumerate(model.inputs.items()):
            kind = (name, info.shape, np.dtype(info.dtype))
            if size_of(info) <= SMALL:
                self._given[index] = memory = lib.ffi.new("char[]", size_of(info))
                small_inputs.append((*kind, lib.ffi.buffer(memory)))
            else:
                large_inputs.append((*kind, index))
        small_outputs = []
        large_outputs = []
        for index, (name, info) in enumerate(model.outputs.items()):
            if size_of(info) <= SMALL:
                array = np.empty(info.shape, info.dtype)
                self._taken[index] = lib.ffi.from_buffer(array)
                small_outputs.append((name, array.copy))
            else:
                large_outputs.append((name, info.shape, np.dtype(info.dtype), index))
        self._small = (lib.lib.n8_session_run_bound, small_inputs, small_outputs)
        self._large = (large_inputs, large_outputs)
        self._count = len(model.inputs)
        self._has_large = bool(large_inputs or large_outputs)

    def __repr__(self) -> str:
        """Name the model's file, and say if the session is closed."""
        state = "" if self._handle else ", closed"
        return f"<Session of {self._model.source!r}{state}>"

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once.  inputs, result: name -> array, as the model describes them.

        Of a model with open dimensions the inputs may have any shapes within its
        bounds: a session at other shapes is made once and kept, while it is one of the
        last few.
        DataError: an input has another name, shape or type. The GIL is released.
        """
        turn = self._turn
        turn.get()
        try:
            handle = self._handle
            if handle is None:
                raise ModelError(f"{self._model.source}: the session has been closed")
            if type(inputs) is not dict or len(inputs) != self._count:
                inputs = self._checked(inputs)
            call, arguments, copies = self._small
            for name, shape, dtype, own in arguments:
                array = inputs.get(name)
                if (
                    type(array) is not ndarray
                    or array.dtype is not dtype
                    or array.shape != shape
                ):
                    other = self._other(inputs)
                    if other is not None:
                        return other.run(inputs)
                    inputs = self._checked(inputs)
                    array = inputs[name]
                own[:] = array.tobytes()
            if self._has_large:
                return self._run_large(handle, inputs)
            status = call(handle)
            if status:
                check(self._library, status, self._model.source)
            results = {}
            for name, copy in copies:
                results[name] = copy()
            return results
        finally:
            turn.put(None)

    def _run_large(self, handle: Any, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run it with arrays that C reads or writes where they are."""
        results: dict[str, Any] = dict.fromkeys(self._model.outputs)
        kept = []
        call, _, copies = self._small
        arguments, made = self._large
        for name, shape, dtype, index in arguments:
            array = inputs.get(name)
            if (
                type(array) is not ndarray
                or array.dtype is not dtype
                or array.shape != shape
                or not array.flags.carray
            ):
                other = self._other(inputs)
                if other is not None:
                    return other.run(inputs)
                inputs = self._checked(inputs)
                array = inputs[name]
            self._given[index] = buffer = self._library.ffi.from_buffer(array)
            kept.append(buffer)
        for name, shape, dtype, index in made:
            array = results[name] = np.empty(shape, dtype)
            self._taken[index] = buffer = self._library.ffi.from_buffer(array)
            kept.append(buffer)
        check(self._library, call(handle), self._model.source)
        for name, copy in copies:
            results[name] = copy()
        return results

    def _other(self, inputs: Mapping[str, Array]) -> "Session | None":
        """The session at the shapes of these inputs; None: this one, or none."""
        model = self._model
        if not model.open_dimensions or inputs.keys() != model.inputs.keys():
            return None
        shapes = {name: np.shape(inputs[name]) for name in model.inputs}
        if all(shapes[name] == info.shape for name, info in model.inputs.items()):
            return None
        key = tuple(shapes.values())
        session = self._others.pop(key, None)
        if session is None:
            threads, pool = self._threads
            session = model.at(shapes).session(
                threads, pool=pool, profile=bool(self._stamps())
            )
        self._others[key] = session  # the one that was used last stands last
        if len(self._others) > SHAPES_KEPT:
            self._others.pop(next(iter(self._others))).close()
        return session

    def profile(self) -> tuple[int, ...]:
        """Nanoseconds of the parts of the last run; () if it was not asked for.

        To copy inputs, of each of Model.steps, to copy outputs. Reading the clock takes
        a microsecond or two of each. Do not call it during a run.
        """
        stamps = max(each._stamps() for each in (self, *self._others.values()))  # noqa: SLF001
        return tuple(later - at for at, later in itertools.pairwise(stamps[1:]))

    def _stamps(self) -> tuple[int, ...]:
        """When the last run ended, then what its clock showed; () without a clock."""
        lib = self._library
        if self._handle is None:
            raise ModelError(f"{self._model.source}: the session has been closed")
        found = lib.lib.n8_session_profile(self._handle)
        if found == lib.ffi.NULL:
            return ()
        values = tuple(found[0 : len(self._model.steps) + 3])
        return (values[-1], *values)

    def _checked(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs as C reads them.  DataError: they cannot be."""
        model = self._model
        arrays = checked(inputs, model.inputs, source=model.source)
        return dict(zip(model.inputs, arrays, strict=True))

    def close(self) -> None:
        """Free the memory; closing twice is allowed."""
        self._turn.get()
        for other in self._others.values():
            other.close()
        self._others.clear()
        if self._handle is not None:
            self._library.ffi.release(self._handle)
            self._handle = None
        self._turn.put(None)
