# SPDX-License-Identifier: Apache-2.0
"""An .n8 file, opened by the C library."""

import os
import time
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from neon8.errors import ModelError, SetupError
from neon8.files import read_file
from neon8.runtime import cut_file, library
from neon8.runtime.arrays import (
    Bounds,
    Memory,
    ModelFacts,
    StepInfo,
    TensorInfo,
    any_open,
    check_shapes,
)
from neon8.runtime.closable import Closable
from neon8.runtime.library import Library
from neon8.runtime.session import Session
from neon8.runtime.structs import (
    Fields,
    check,
    check_opened,
    isa_number,
    levels,
    memory_of,
    options_of,
    tensor_of,
    values_of,
)
from neon8.runtime.threads import ThreadPool, checked_threads

MAGIC = b"\x89N8\r\n\x1a\n\0"
"""The first bytes of every .n8 file."""

SHARING = ("own", "place", "view", "slice", "tail", "caller")
"""enum n8_sharing as words."""

WINOGRAD = ("", "whole", "half")
"""The forms of (23) as words."""

Shapes = Mapping[str, tuple[int, ...]]
"""The shape of each input, by name."""

CLOCK = "uint64_t (*)(void *)"
"""As in struct n8_session_options."""

MAX_BYTES = 2**63 - 1
"""The largest max_bytes: whatever the machine has."""

STEP_FIELDS = (
    *("name", "operation", "kernel", "macs", "cost", "packed", "stride", "groups"),
    *("acc_bound", "int16_depth", "chosen", "passed", "lack", "spared", "tables"),
)
"""The fields that StepInfo has from struct n8_step_info as they are."""


def usable_levels() -> tuple[str, ...]:
    """Those that this build has and this processor runs."""
    lib = library.load()

    def refused(isa: int) -> bool:
        options = lib.ffi.new("struct n8_model_options *", {"isa": isa})
        out = lib.ffi.new("struct n8_model **")
        status = lib.lib.n8_model_open(b"", 0, options, out, lib.ffi.NULL)
        return bool(status == lib.lib.N8_E_UNSUPPORTED)

    names = levels(lib)
    return tuple(name for name in names if name != "auto" and not refused(names[name]))


def read_model(path: str | Path) -> bytes:
    """The content of a .n8 file.  ModelError: it is unreadable, or no model."""
    try:
        content = read_file(path)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from error
    except (MemoryError, OverflowError) as error:  # the latter on 32 bits
        raise SetupError(f"{path}: is larger than the memory left") from error
    if cut_file.recognise(content):
        text = "describes a network that was cut: open it with CutModel"
        raise ModelError(f"{path}: {text}")
    return content


@final
class Model(Closable):
    """An opened .n8 file: immutable, and free to be shared by threads.

    Open it with Model.open; close it, or use it in a `with` statement.
    max_bytes: the most that it and one session may take.
    """

    def __init__(self, lib: Library, handle: Any, source: str, max_bytes: int) -> None:
        """Use Model.open."""
        self._library = lib
        self._handle = handle
        self.max_bytes = max_bytes
        self._users: weakref.WeakSet[Session | Model] = weakref.WeakSet()
        self.source = source
        self.inputs = self._describe(lib.lib.N8_INPUT)
        self.outputs = self._describe(lib.lib.N8_OUTPUT)
        self.bounds = self._bounds()

    def __repr__(self) -> str:
        """Name the file, and say if the model is closed."""
        return f"<Model {self.source!r}{'' if self._handle else ', closed'}>"

    @classmethod
    def open(
        cls, path: str | Path, isa: str | None = None, *, max_bytes: int | None = None
    ) -> "Model":
        """The model in the file `path`.

        isa: "c", "vector", "avx2" or "avx512", on ARM "neon", "dotprod", "i8mm" or
            "sme" allows no more; by default $N8_ISA, else the best.
        max_bytes: the most that the model and one session may take; 1 GiB by default.
        To fit, layers give up weights that are packed larger for speed, those first
        that a run transforms least often instead: StepInfo.spared.
        ModelError: the file is unreadable, damaged or refused. SetupError: no library,
        no memory, or no such instruction set here.
        """
        content = read_model(path)
        return cls.from_bytes(content, source=str(path), isa=isa, max_bytes=max_bytes)

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        *,
        source: str = "model",
        isa: str | None = None,
        max_bytes: int | None = None,
        build: library.Build = library.RUNTIME,
    ) -> "Model":
        """The model in `content`; `source` names it in errors.

        build: the library that opens it.
        """
        lib = library.load(build)
        if max_bytes is not None and not 0 < max_bytes <= MAX_BYTES:
            raise SetupError(f"{source}: max_bytes {max_bytes} is outside 1 .. 2^63-1")
        given = {"isa": isa_number(lib, isa), "max_bytes": max_bytes or 0}
        options = options_of(lib, "n8_model_options", given)
        out = lib.ffi.new("struct n8_model **")
        refusal = lib.ffi.new("struct n8_model_error *")
        data = lib.ffi.from_buffer(content)  # `refusal` may point into it
        status = lib.lib.n8_model_open(data, len(content), options, out, refusal)
        if status == lib.lib.N8_E_UNSUPPORTED:
            wanted = isa or os.environ.get("N8_ISA")
            remedy = "leave the choice to the library" if isa else "unset N8_ISA"
            raise SetupError(
                f"{source}: instruction set {wanted!r} is not one of this build's or "
                f"not one of this processor's; {remedy}"
            )
        limit = int(max_bytes or lib.lib.N8_DEFAULT_MAX_BYTES)
        if status == lib.lib.N8_E_LIMIT:
            least = measure(content, source=source, isa=isa, max_bytes=limit)
            raise ModelError(
                f"{source}: takes {described(least)}, more than the limit of {limit}; "
                "raise it (max_bytes, --max-bytes) if you trust the file"
            )
        if status == lib.lib.N8_E_ADDRESS:
            least = measure(content, source=source, isa=isa, max_bytes=limit)
            bits = 8 * lib.ffi.sizeof("void *")
            raise ModelError(
                f"{source}: takes at least {described(least)}, more than the "
                f"{2 ** (bits - 1) - 1} that a process of {bits} bits can address; use "
                "one of 64 bits, or compile the network for smaller inputs"
            )
        check_opened(lib, status, source, refusal)
        handle = lib.ffi.gc(out[0], lib.lib.n8_model_close)
        return cls(lib, handle, source, limit)

    @property
    def open_dimensions(self) -> bool:
        """True if inputs may have more shapes than one: `bounds`, `at`."""
        return any_open(self.bounds)

    def at(self, shapes: Shapes) -> "Model":
        """The model for inputs of these shapes, all by name, within `bounds`.

        It shares the packed weights of this one, is described as a model that was
        compiled for these shapes, and gives the same bytes.
        DataError: a shape is outside the bounds. ModelError: a layer cannot run at
        these shapes, or it takes more than max_bytes.
        """
        lib, source = self._library, self.source
        check_shapes(shapes, self.bounds, source=source)
        if not self.open_dimensions:
            return self
        rows = lib.ffi.new("int32_t[][8]", [list(shapes[name]) for name in self.inputs])
        out = lib.ffi.new("struct n8_model **")
        refusal = lib.ffi.new("struct n8_model_error *")
        handle = self.handle
        status = lib.lib.n8_model_reshape(handle, rows, out, refusal)
        text = ", ".join(
            f"{name} {'x'.join(map(str, s))}" for name, s in shapes.items()
        )
        if status == lib.lib.N8_E_LIMIT:
            remedy = "raise it (max_bytes, --max-bytes) if you trust the file"
            limit = f"takes more than the limit of {self.max_bytes}; {remedy}"
            raise ModelError(f"{source} at {text}: {limit}")
        check_opened(lib, status, f"{source} at {text}", refusal)

        def close(pointer: Any, kept: Any = handle) -> None:
            del kept  # bound as a default: the model that was opened outlives this one
            lib.lib.n8_model_close(pointer)

        model = Model(lib, lib.ffi.gc(out[0], close), source, self.max_bytes)
        self._users.add(model)
        return model

    @property
    def facts(self) -> ModelFacts:
        """The file that the model was opened from."""
        lib, facts = self._library, self._library.ffi.new("struct n8_model_facts *")
        check(lib, lib.lib.n8_model_describe(self.handle, facts), self.source)
        return ModelFacts(
            version=facts.version,
            size=facts.file_size,
            data_size=facts.data_size,
            checksum=facts.checksum,
            digest=bytes(facts.source_digest).hex(),
        )

    @property
    def memory(self) -> Memory:
        """What the model takes, and what each of its sessions will."""
        lib, memory = self._library, self._library.ffi.new("struct n8_memory *")
        check(lib, lib.lib.n8_model_memory(self.handle, memory), self.source)
        return memory_of(lib, memory)

    @property
    def steps(self) -> tuple[StepInfo, ...]:
        """The plan, in order of execution."""
        lib = self._library
        info = lib.ffi.new("struct n8_step_info *")
        steps: list[StepInfo] = []
        handle = self.handle
        while lib.lib.n8_model_step(handle, len(steps), info) == lib.lib.N8_OK:
            same = values_of(lib, info, self.source)
            output = self._tensor(info.output)
            inputs = info.inputs[0 : info.input_count]
            step = StepInfo(
                **{name: same[name] for name in STEP_FIELDS},
                **asdict(tensor_of(lib, output)),
                inputs=tuple(self._tensor(each)["name"] for each in inputs),
                output=output["name"],
                codes=(output["code_lo"], output["code_hi"]),
                sharing=SHARING[output["sharing"]],
                shared=self._tensor(output["shared"])["name"],
                offset=output["offset"],
                pitch=output["stride"],
                window=same["kernel_size"],
                weights=(info.weights_lo, info.weights_hi),
                winograd=WINOGRAD[info.winograd],
                reason=output["reason"],
                spread="" if info.spread < 0 else self._tensor(info.spread)["name"],
            )
            steps.append(step)
        return tuple(steps)

    def session(
        self,
        threads: int | None = None,
        *,
        pool: ThreadPool | None = None,
        profile: bool = False,
    ) -> Session:
        """A new session with its own threads, 1 to 64 and by default 1, or on a pool.

        The result depends on neither. profile: let Session.profile() tell where the
        time of the last run went.
        """
        lib, handle = self._library, self.handle
        if pool is not None and threads is not None:
            raise SetupError("a session has its own threads or a pool, not both")
        if pool is None:
            shared = lib.ffi.NULL
            count = checked_threads(1 if threads is None else threads)
        else:
            shared, count = pool.handle_in(lib), 0
        clock = lib.ffi.NULL
        if profile:
            clock = lib.ffi.callback(CLOCK, lambda _: time.perf_counter_ns())
        given = {"threads": count, "pool": shared, "clock": clock}
        options = options_of(lib, "n8_session_options", given)
        out = lib.ffi.new("struct n8_session **")
        check(lib, lib.lib.n8_session_create(handle, options, out), self.source)

        def destroy(pointer: Any, kept: Any = (handle, shared, clock)) -> None:
            del kept  # bound as a default, so all of these outlive the session
            lib.lib.n8_session_destroy(pointer)

        session = Session(self, lib, lib.ffi.gc(out[0], destroy), count, pool)
        self._users.add(session)
        if pool is not None:
            pool.serve(session)
        return session

    def close(self) -> None:
        """Free the model, its sessions and other shapes; closing twice is allowed."""
        for user in tuple(self._users):
            user.close()
        self._handle = None

    @property
    def handle(self) -> Any:
        """The struct n8_model, for modules that call the library themselves."""
        if self._handle is None:
            raise ModelError(f"{self.source}: the model has been closed")
        return self._handle

    def _describe(self, which: int) -> dict[str, TensorInfo]:
        lib = self._library
        info = lib.ffi.new("struct n8_tensor_info *")
        found: dict[str, TensorInfo] = {}
        while (
            lib.lib.n8_model_io(self._handle, which, len(found), info) == lib.lib.N8_OK
        ):
            values = values_of(lib, info, self.source)
            name = values["name"]
            if name in found:
                raise ModelError(f"{self.source}: two inputs or outputs named {name!r}")
            found[name] = tensor_of(lib, values)
        return found

    def _bounds(self) -> dict[str, tuple[Bounds, ...]]:
        """The bounds of each dimension of each input."""
        lib, names = self._library, list(self.inputs)
        row = lib.ffi.new("struct n8_dimension *")
        found: dict[str, tuple[Bounds, ...]] = {}
        for index, (name, info) in enumerate(self.inputs.items()):
            limits = []
            for axis in range(len(info.shape)):
                status = lib.lib.n8_model_bounds(self._handle, index, axis, row)
                check(lib, status, self.source)
                same = (names[row.same // 8], row.same % 8)
                limits.append(Bounds(lo=row.lo, hi=row.hi, step=row.step, same=same))
            found[name] = tuple(limits)
        return found

    def _tensor(self, number: int) -> Fields:
        """The fields of struct n8_tensor_info of a tensor by its number."""
        lib, info = self._library, self._library.ffi.new("struct n8_tensor_info *")
        status = lib.lib.n8_model_tensor(self.handle, number, info)
        check(lib, status, self.source)
        return values_of(lib, info, self.source)


def described(memory: Memory) -> str:
    """What it takes to open and run a model, as words."""
    return (
        f"{memory.total()} bytes of memory (packed weights {memory.packed}, "
        f"activations {memory.arena}, scratch {memory.scratch})"
    )


def measure(
    content: bytes,
    *,
    source: str = "model",
    isa: str | None = None,
    max_bytes: int | None = None,
    largest: bool = False,
) -> Memory:
    """What the model in `content` would take; nothing large is allocated to know.

    max_bytes: as of Model.open, or None for no limit. Beyond it, the least is told.
    largest: with open dimensions as large as they may be, not the usual ones.
    ModelError, SetupError: as Model.open, but the weights are not looked at.
    """
    lib = library.load()
    given = {"isa": isa_number(lib, isa), "max_bytes": max_bytes or 0}
    options = options_of(lib, "n8_model_options", given | {"largest": largest})
    memory = lib.ffi.new("struct n8_memory *")
    refusal = lib.ffi.new("struct n8_model_error *")
    data = lib.ffi.from_buffer(content)
    status = lib.lib.n8_model_measure(data, len(content), options, memory, refusal)
    check_opened(lib, status, source, refusal)
    return memory_of(lib, memory)
