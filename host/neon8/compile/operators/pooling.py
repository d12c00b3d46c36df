# SPDX-License-Identifier: Apache-2.0
"""Pool: max, min and average over windows, with their activation."""

from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import (
    FLOAT,
    INT8,
    INT16,
    Build,
    Lower,
    levels_mean_the_same,
    ratio,
)
from neon8.compile.operators.arithmetic import activate
from neon8.compile.operators.movement import reshape
from neon8.compile.scales import clamp_of
from neon8.errors import CompileError
from neon8.graph.graph import Node, Pool, Shape

MAX_TAPS = 2**23
"""2**23 * 255 < 2**31: the sum of an average pool fits int32."""
MAX_WIDE_TAPS = 2**15
"""2**15 * 65535 < 2**31: and so it does of int16."""


def lower_pool(b: Build, node: Pool) -> None:
    """(9).  A scale changed under max and a leaky slope need a step of their own.

    An average that nothing reads as integers is float32.
    """
    source, out = ends(b, node)
    windows = node.windows(source.shape, out.shape)
    check_windows(b, node, windows)
    whole = out
    if windows != out.shape:
        whole = b.temporary(replace(out, dims=windows), "windows")
    if node.kind == "min":
        lower_min(b, node, source, whole)
        reshape(b, node.name, whole, out)
        return
    if node.kind == "average" and out.dtype == INT16:
        source = widened(b, node.name, source)
    narrows = source.dtype == INT16 and out.dtype == INT8
    rescales = node.kind == "max" and not levels_mean_the_same(source, out)
    if narrows or rescales or node.activation.slope != 1.0:
        pooled = b.temporary(replace(source, dims=whole.dims), "pooled")
        append_pool(b, node, source, pooled, (pooled.lo, pooled.hi))
        activate(b, node, pooled, whole)
    else:
        append_pool(b, node, source, whole, clamp_of(node.activation, out))
    reshape(b, node.name, whole, out)


def ends(b: Build, node: Pool) -> tuple[program.Tensor, program.Tensor]:
    """What the pool reads and what it gives."""
    name = node.inputs[0]
    average = node.kind == "average"
    narrow = node.kind == "min"  # a table flips it
    narrow |= average and node.kernel[0] * node.kernel[1] > MAX_WIDE_TAPS
    source = b.int8(name) if narrow else b.own(name)
    if average and node.activation.identity and b.wants_float(node.output):
        return source, b.declare(node.output, FLOAT)
    return source, b.declare(node.output, INT8) if narrow else b.result(node.output)


def widened(b: Build, layer: str, source: program.Tensor) -> program.Tensor:
    """`source` as int16, exactly: with the same scale and zero point."""
    if source.dtype == INT16:
        return source
    wide = replace(source, dtype=INT16, lo=-(2**15), hi=2**15 - 1)
    wide = b.temporary(wide, "wide")
    b.requantize(layer, source, wide, clamp=(wide.lo, wide.hi))
    return wide


def lower_min(
    b: Build, node: Pool, source: program.Tensor, out: program.Tensor
) -> None:
    """The largest of -1 - q, which is a level as well, is -1 - the least q."""
    flipped = replace(source, zero_point=-1 - source.zero_point, lo=-128, hi=127)
    flipped = b.temporary(flipped, "flipped")
    largest = b.temporary(replace(flipped, dims=out.dims), "largest")
    flip(b, node.name, source, flipped, (-128, 127))
    append_pool(b, replace(node, kind="max"), flipped, largest, (-128, 127))
    if levels_mean_the_same(source, out) and node.activation.slope == 1.0:
        flip(b, node.name, largest, out, clamp_of(node.activation, out))
    else:
        least = b.temporary(replace(source, dims=out.dims), "least")
        flip(b, node.name, largest, least, (least.lo, least.hi))
        activate(b, node, least, out)


def flip(
    b: Build,
    layer: str,
    source: program.Tensor,
    out: program.Tensor,
    clamp: tuple[int, int],
) -> None:
    """Appends -1 - q within the clamp."""
    table = np.clip(np.arange(127, -129, -1), *clamp).astype(np.int8)
    inputs = (source.name,)
    step = program.Table(name=layer, inputs=inputs, output=out.name, table=table)
    b.ops.append(step)


def append_pool(
    b: Build,
    node: Pool,
    source: program.Tensor,
    out: program.Tensor,
    clamp: tuple[int, int],
) -> None:
    """One pooling op; the runtime derives an average's multiplier from the scales."""
    if node.kind == "average":
        for count in (1, node.kernel[0] * node.kernel[1]):
            ratio(node.name, source, out, count=count)  # the scale of a float is 1
    b.ops.append(
        program.Pool(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            kind=node.kind,
            kernel=node.kernel,
            strides=node.strides,
            dilations=node.dilations,
            pads=node.pads,
            count_pad=node.count_pad,
            lo=clamp[0],
            hi=clamp[1],
        )
    )


def check_windows(b: Build, node: Pool, windows: Shape) -> None:
    """CompileError for a window without a single tap, or with too many for int32."""
    in_shape = b.graph.tensors[node.inputs[0]].shape
    if node.kernel[0] * node.kernel[1] > MAX_TAPS:
        raise CompileError(
            f"layer {node.name!r}: a window of {node.kernel} overflows int32"
        )
    for axis in (0, 1):
        out = np.arange(windows[2 + axis])[:, np.newaxis]
        taps = np.arange(node.kernel[axis]) * node.dilations[axis]
        at = out * node.strides[axis] - node.pads[axis] + taps
        inside = (at >= 0) & (at < in_shape[2 + axis])
        if not inside.any(axis=1).all():
            raise CompileError(
                f"layer {node.name!r}: a pooling window lies outside its input"
            )


LOWER: dict[type[Node], Lower] = {Pool: lower_pool}
