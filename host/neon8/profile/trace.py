# SPDX-License-Identifier: Apache-2.0
"""Which kernels another processor would call, how often, and with which sizes.

The library neon8_trace plans, chooses and packs as that processor does, and writes down
the calls of its kernels instead of computing anything: host/native/trace.
"""

import threading
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neon8.errors import SetupError
from neon8.runtime import library
from neon8.runtime.arrays import StepInfo
from neon8.runtime.model import Model, Shapes

_TRACING = threading.Lock()
"""There is one record in the library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """What plans and kernels depend on.

    level: of instruction sets, as $N8_ISA names it. in_order: how the core runs them.
    cache: bytes of its second-level cache. limit: multiply-accumulates of int8 in a
    cycle, if it did nothing else.
    """

    level: str
    in_order: bool
    cache: int
    limit: int


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel's symbol and the sizes that it was called with, so many times."""

    kernel: str
    sizes: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a run: a step, or the copy of an input or an output.

    name: of the layer, or of what is copied. operation: of the step, or "input" or
    "output". step: None of a copy. shape, dtype: of what is made or copied. operands:
    their shapes. calls: of kernels.
    """

    name: str
    operation: str
    step: StepInfo | None
    shape: tuple[int, ...]
    dtype: str
    operands: tuple[tuple[int, ...], ...]
    calls: tuple[Call, ...]

    @property
    def bytes_read(self) -> int:
        """The size of its operands, if they have the type of the result."""
        return sum(map(prod, self.operands)) * np.dtype(self.dtype).itemsize

    @property
    def bytes_written(self) -> int:
        """The size of its result."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def trace(
    content: bytes,
    processor: Processor,
    *,
    shapes: Shapes | None = None,
    source: str = "model",
) -> tuple[Part, ...]:
    """The parts of a run of a .n8 file, in their order.

    shapes: of the inputs of one with open dimensions; the usual ones by default.
    ModelError: the file is refused. SetupError: no library, or no such level.
    """
    with _TRACING:
        lib = library.load(library.TRACE)
        level = processor.level.encode()
        if not lib.lib.n8_trace_processor(level, processor.in_order, processor.cache):
            raise SetupError(f"{lib.path}: has no instruction set {processor.level!r}")
        with (
            Model.from_bytes(
                content, source=source, isa=processor.level, build=library.TRACE
            ) as opened,
            opened.at(shapes) if shapes else opened as model,
            model.session() as session,
        ):
            inputs = {
                name: np.full(info.shape, info.lo, info.dtype)
                for name, info in model.inputs.items()
            }
            lib.lib.n8_trace_begin()
            session.run(inputs)
            return parts_of(lib, model)


def parts_of(lib: library.Library, model: Model) -> tuple[Part, ...]:
    """What the record holds of a run of a model."""
    count = lib.ffi.new("size_t *")
    recorded = lib.lib.n8_trace_count(count)
    if recorded == 2 ** (8 * lib.ffi.sizeof("size_t")) - 1:
        raise SetupError(f"{model.source}: out of memory while it was traced")
    calls: list[list[Call]] = [[] for _ in range(count[0])]
    rows = lib.lib.n8_trace_calls()
    for row in rows[0:recorded] if recorded else ():
        kernel = lib.ffi.string(row.kernel).decode()
        calls[row.part].append(Call(kernel, tuple(row.sizes), row.count))
    shapes = {name: info.shape for name, info in model.inputs.items()}
    shapes.update((step.output, step.shape) for step in model.steps)
    bare = [
        *copies(lib, model, "input"),
        *(
            Part(
                name=step.name,
                operation=step.operation,
                step=step,
                shape=step.shape,
                dtype=step.dtype,
                operands=tuple(shapes.get(name, ()) for name in step.inputs),
                calls=(),
            )
            for step in model.steps
        ),
        *copies(lib, model, "output"),
    ]
    return tuple(
        replace(part, calls=tuple(of_part))
        for part, of_part in zip(bare, calls, strict=True)
    )


def copies(lib: library.Library, model: Model, which: str) -> list[Part]:
    """The inputs or outputs that are copied; others stay where the caller has them."""
    info = lib.ffi.new("struct n8_tensor_info *")
    number = {"input": lib.lib.N8_INPUT, "output": lib.lib.N8_OUTPUT}[which]
    found = []
    for index, (name, tensor) in enumerate(getattr(model, f"{which}s").items()):
        lib.lib.n8_model_io(model.handle, number, index, info)
        if info.sharing != lib.lib.N8_SHARES_CALLER:
            part = Part(
                name=name,
                operation=which,
                step=None,
                shape=tensor.shape,
                dtype=tensor.dtype,
                operands=(tensor.shape,),
                calls=(),
            )
            found.append(part)
    return found
