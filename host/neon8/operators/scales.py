# SPDX-License-Identifier: Apache-2.0
"""What lowering takes from a ScaleTable, checked: people edit tables by hand."""

import math
from typing import Any

import numpy as np

from neon8.arrays import FloatArray
from neon8.errors import CompileError
from neon8.ir.graph import Activation, Graph
from neon8.ir.program import Tensor
from neon8.quant.grid import Grid, at_bits
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.scale_table import BITS, NARROW, SCHEMES, ScaleTable, TensorScale

SCALE_MAX = 1e30
MAX_SLOPE = 2.0**30


def check_digest(graph: Graph, table: ScaleTable) -> None:
    """CompileError unless the table was made from this very ONNX file."""
    if table.model_digest != graph.digest:
        raise CompileError(
            f"the scale table is of another model, {table.model_name} "
            f"({table.model_digest[:12]}..., not {graph.digest[:12]}...); calibrate "
            "again"
        )


def is_int16(table: ScaleTable, name: str) -> bool:
    """True if the table gives tensor `name` more bits than int8 has."""
    entry = table.tensors.get(name)
    return entry is not None and entry.bits > NARROW


def quantized(
    graph: Graph, table: ScaleTable, name: str, *, narrow: bool = False
) -> Tensor:
    """The int8 or int16 form of tensor `name` of the graph, under that name.

    narrow: of one with more bits than int8 has, the form that covers its range with 8.
    """
    entry = table.tensors.get(name)
    if entry is None:
        trouble = "has no scale in the table; calibrate again"
        if graph.quantized:
            trouble = "has no scale in the file, and is float there; use --io float"
        raise CompileError(f"tensor {name!r} {trouble}")
    usable_scale(entry.scale, f"tensor {name!r}")
    check_scheme(entry, name)
    if narrow and entry.bits > NARROW:
        entry = at_bits(entry, NARROW)
    scale = usable_scale(entry.scale, f"tensor {name!r}")
    lo, hi = check_scheme(entry, name)
    return Tensor(
        name=name,
        dims=graph.tensors[name].dims,
        dtype="int8" if entry.bits <= NARROW else "int16",
        scale=scale,
        zero_point=entry.zero_point,
        lo=lo,
        hi=hi,
    )


def clamp_of(activation: Activation, out: Tensor) -> tuple[int, int]:
    """lo and hi of a quantized result: the activation's clamp in its range."""

    def level(real: float) -> int:
        if math.isinf(real):
            return out.lo if real < 0 else out.hi
        q = np.rint(real / float(out.scale)) + out.zero_point
        return int(np.clip(q, out.lo, out.hi))

    return level(activation.lo), level(activation.hi)


def finish_of(layer: str, activation: Activation, out: Tensor) -> dict[str, Any]:
    """The fields of a Finished step that say what its activation does."""
    lo, hi = clamp_of(activation, out)
    return {"slope": slope_of(layer, activation), "lo": lo, "hi": hi}


def slope_of(layer: str, activation: Activation) -> np.float32:
    """The leaky slope as float32, or CompileError if it is absurd."""
    if not abs(activation.slope) <= MAX_SLOPE:
        raise CompileError(
            f"layer {layer!r}: leaky slope {activation.slope:.4g} is outside +-2**30"
        )
    slope: np.float32 = np.float32(activation.slope)
    return slope


def checked_slopes(layer: str, slopes: FloatArray) -> FloatArray:
    """The slopes of a PRelu, (C,), or CompileError if one is absurd."""
    for slope in slopes.tolist():
        slope_of(layer, Activation(slope=slope))
    return slopes


def usable_scale(value: float, what: str) -> np.float32:
    """(1): a scale is at least 1e-30, as ARMv7 flushes denormals, and at most 1e30."""
    if not SMALLEST_SCALE <= value <= SCALE_MAX:
        raise CompileError(
            f"{what}: scale {value!r} is outside {SMALLEST_SCALE} .. 1e30; "
            "correct the table"
        )
    scale: np.float32 = np.float32(value)
    return scale


def check_scheme(entry: TensorScale, name: str) -> tuple[int, int]:
    """The range of q that the scheme gives, once the zero point fits to it."""
    if entry.bits not in BITS:
        known = f"{min(BITS)} to {max(BITS)}"
        raise CompileError(
            f"tensor {name!r}: {entry.bits} bits are not {known}; correct the table"
        )
    if entry.scheme not in SCHEMES:
        raise CompileError(
            f"tensor {name!r}: scheme {entry.scheme!r} is not one of "
            f"{', '.join(SCHEMES)}"
        )
    grid = Grid(entry.scheme, entry.bits)
    fixed = {"symmetric": 0, "unsigned": grid.lowest}
    expected = fixed.get(entry.scheme, entry.zero_point)
    inside = grid.lowest <= entry.zero_point <= grid.highest
    if entry.zero_point != expected or not inside:
        raise CompileError(
            f"tensor {name!r}: zero point {entry.zero_point} does not fit scheme "
            f"{entry.scheme!r}; correct the table"
        )
    return grid.lowest, grid.highest
