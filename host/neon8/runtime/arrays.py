# SPDX-License-Identifier: Apache-2.0
"""What models take and give, and the check of the arrays that callers hand over."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError

QUANTIZED = ("int8", "int16")
"""The types of quantized tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """An input or output.

    shape: as in the ONNX network, unless it was compiled to lie N H W C; dtype:
    "float32", "int8" or "int16"; "uint8" of an image that the model preprocesses,
    "int32" of token ids, masks and other integers.
    real = scale * (q - zero_point), lo <= q <= hi, for int8 and int16; the defaults
    otherwise.
    """

    shape: tuple[int, ...]
    dtype: str
    scale: float = 1.0
    zero_point: int = 0
    lo: int = -128
    hi: int = 127

    @property
    def quantized(self) -> bool:
        """True if its values are integers that a scale makes real."""
        return self.dtype in QUANTIZED


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a dimension of an input may be: lo, lo + step .. hi, or lo alone.

    same: the first (input, dimension) that it is always equal to, or itself.
    """

    lo: int
    hi: int
    step: int
    same: tuple[str, int]

    @property
    def open(self) -> bool:
        """True if the caller may choose."""
        return self.lo < self.hi

    def __contains__(self, size: int) -> bool:
        """Whether it may be `size`."""
        return self.lo <= size <= self.hi and (size - self.lo) % self.step == 0

    def __str__(self) -> str:
        """As --shape takes it: 3, 1..8 or 32..1280:32."""
        if not self.open:
            return str(self.lo)
        return f"{self.lo}..{self.hi}" + (f":{self.step}" if self.step > 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """One step of the plan.

    kernel: the chosen symbol; macs: of one run; cost: of one run, in int8 MACs, what it
    takes to move its bytes included.
    inputs, output: tensor names; shape, dtype, scale, zero_point, lo, hi: of the
    output; codes: the smallest and the largest integer that an output can have, as
    follows from the steps before; packed: bytes of the weights and other arrays.
    sharing, shared: what the output's memory is to it, and the tensor that it shares
    with; offset, pitch: its first byte in the arena, and bytes from pixel to pixel.
    spread: the tensor that is moved into its part of a concatenation before, or "".
    window, stride: height and width, (1, 1) where there is none.
    weights: smallest and largest; acc_bound (12) and int16_depth (11): the proofs,
    checked against the weights. All are 0 for steps without weights.
    winograd: "whole" or "half", the form of (23) that the weights prove, or "".
    reason: why it computes in float32, "" where the file does not say.
    chosen: what decided for the kernel of a convolution; passed, lack: a kernel that
    would be preferred to it, and what the layer lacks for that; "" where there is none.
    spared: bytes of packed weights that the layer gave up to fit max_bytes, and speed.
    tables: (8) of a function or an image, one for all channels or some for each.
    """

    name: str
    operation: str
    kernel: str
    macs: int
    cost: int
    inputs: tuple[str, ...]
    output: str
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero_point: int
    lo: int
    hi: int
    codes: tuple[int, int]
    packed: int
    sharing: str
    shared: str
    offset: int
    pitch: int
    window: tuple[int, int]
    stride: tuple[int, int]
    groups: int
    weights: tuple[int, int]
    acc_bound: int
    int16_depth: int
    spread: str
    winograd: str = ""
    reason: str = ""
    chosen: str = ""
    passed: str = ""
    lack: str = ""
    spared: int = 0
    tables: int = 0

    @property
    def quantized(self) -> bool:
        """True if the output's values are integers that a scale makes real."""
        return self.dtype in QUANTIZED


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model file as a whole; sizes in bytes.

    checksum: CRC-32, correct; digest: SHA-256 of the ONNX file, hex.
    """

    version: int
    size: int
    data_size: int
    checksum: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a model takes, in bytes.

    An opened model takes tables + packed, the weights in the order of the kernels. Each
    session takes arena, the activations, and scratch for each of its threads.
    arena_least: what is in use at the same time; no placement needs less.  The arena
    depends on the file alone, the rest on the processor and its kernels, too.
    """

    tables: int
    packed: int
    arena: int
    arena_least: int
    scratch: int

    def total(self, threads: int = 1) -> int:
        """What the model and one session take."""
        return self.tables + self.packed + self.arena + threads * self.scratch

    def sessions(self, limit: int) -> int:
        """How many sessions of one thread a model has room for, at least the first."""
        one = max(self.arena + self.scratch, 1)
        return max((limit - self.tables - self.packed) // one, 1)


def checked(
    inputs: Mapping[str, Array], expected: Mapping[str, TensorInfo], *, source: str
) -> list[Array]:
    """The arrays in the order of `expected`, contiguous and aligned.

    An input of int32 takes integers of any type, and bool, that fit. Other values are
    not looked at: NaN is quantized to the zero point  (2).
    DataError: a name, a shape or a type is not what the model wants.
    """
    if not isinstance(inputs, Mapping):
        raise DataError(f"{source}: the inputs must be a dict from name to array")
    for name in inputs:
        if name not in expected:
            raise DataError(
                f"{source}: no input {name!r}; the inputs are {', '.join(expected)}"
            )
    arrays = []
    for name, info in expected.items():
        if name not in inputs:
            raise DataError(f"{source}: input {name!r} is missing")
        try:
            array = np.asarray(inputs[name])
        except ValueError as error:  # lists of different lengths
            raise DataError(f"{source}: input {name!r} is no array") from error
        if info.dtype == "int32" and array.dtype.kind in "iub":
            array = as_int32(array, name, source)
        if array.dtype != np.dtype(info.dtype):
            raise DataError(
                f"{source}: input {name!r} has type {array.dtype}, "
                f"expected {info.dtype}"
            )
        if array.shape != info.shape:
            raise DataError(
                f"{source}: input {name!r} has shape {array.shape}, "
                f"expected {info.shape}"
            )
        arrays.append(np.require(array, requirements=("C", "A")))
    return arrays


def as_int32(array: Array, name: str, source: str) -> Array:
    """Integers or bool as int32.  DataError: one does not fit."""
    limits = np.iinfo(np.int32)
    for value in (array.min(), array.max()) if array.size else ():
        if not limits.min <= int(value) <= limits.max:
            raise DataError(
                f"{source}: input {name!r} has {int(value)}, which is outside int32"
            )
    return array.astype(np.int32)


def any_open(bounds: Mapping[str, tuple[Bounds, ...]]) -> bool:
    """True if inputs may have more shapes than one."""
    return any(limit.open for limits in bounds.values() for limit in limits)


def check_shapes(
    shapes: Mapping[str, tuple[int, ...]],
    bounds: Mapping[str, tuple[Bounds, ...]],
    *,
    source: str,
) -> None:
    """Whether inputs of these shapes are within the bounds of a model, all of it.

    DataError: which dimension of which input is not.
    """
    if shapes.keys() != bounds.keys():
        text = f"shapes of {list(shapes)}, and the inputs are {list(bounds)}"
        raise DataError(f"{source}: {text}")
    for name, limits in bounds.items():
        shape = shapes[name]
        may_be = "x".join(map(str, limits))
        if len(shape) != len(limits):
            text = f"has {len(shape)} dimensions, and is {may_be}"
            raise DataError(f"{source}: input {name!r} {text}")
        for axis, (size, limit) in enumerate(zip(shape, limits, strict=True)):
            if size not in limit:
                text = f"has {size} as dimension {axis}, which is {limit} ({may_be})"
                raise DataError(f"{source}: input {name!r} {text}")
            other, at = limit.same
            if shapes[other][at] != size:
                text = f"has {size} as dimension {axis}, which must equal"
                text = f"{text} dimension {at} of {other!r}, {shapes[other][at]}"
                raise DataError(f"{source}: input {name!r} {text}")


def at_shapes(
    inputs: Mapping[str, Array],
    infos: Mapping[str, TensorInfo],
    bounds: Mapping[str, tuple[Bounds, ...]],
    *,
    source: str,
) -> Mapping[str, TensorInfo]:
    """What the inputs of a model are, at the shapes of these where its own are open.

    DataError: they are outside the bounds.
    """
    if not any_open(bounds) or inputs.keys() != infos.keys():
        return infos
    shapes = {name: np.shape(inputs[name]) for name in infos}
    check_shapes(shapes, bounds, source=source)
    return {n: replace(info, shape=shapes[n]) for n, info in infos.items()}
