# SPDX-License-Identifier: Apache-2.0
"""What the time of a kernel, and of the C around it, is proportional to.

A kernel is loops in loops, so its instructions are a sum of terms: once for a call, for
each panel of channels, for each tile, for each step in the depth of a tile, and so on.
The terms are here; how many instructions and cycles one of each takes was counted and
modelled, for each kernel, and is in the tables of costs.py. Loops go by 16, 8, 4 or
fewer, so counts are taken apart into such pieces.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from neon8.profile.trace import Call, Part

Terms = tuple[float, ...]
Sizes = Sequence[int]


def pieces(count: int) -> Terms:
    """How many 64s, 16s, 8s, 4s and ones there are in it."""
    return (
        count // 64,
        count % 64 // 16,
        count % 16 // 8,
        count % 8 // 4,
        count % 4,
    )


def values(sizes: Sizes) -> Terms:
    """Terms of `count` values one after another; flags: of slopes and scales."""
    count, slope, scales, *_ = sizes
    return (1, *pieces(count), slope * count, scales * count)


def rows(sizes: Sizes) -> Terms:
    """Terms of `pixels` times `count` values."""
    pixels, count, *flags = sizes
    inner = (1, *pieces(count), -(-count // 16), -(-count // 8))
    flagged = (flag * pixels * count for flag in flags[:3])
    halves, fours = pixels // 2, pixels // 4
    return (
        *inner,
        *(n * each for n in (pixels, halves, fours) for each in inner),
        *flagged,
    )


def pool(sizes: Sizes) -> Terms:
    """Pixels, each of `taps` times `channels` values."""
    taps, channels, pixels, *none = sizes
    return tuple(pixels * term for term in rows((taps, channels, 0, *none)))


GROUP, PARTS = 32, 4
"""Bytes of the depth of a group of products, and the parts of it that may be deep."""


def igemm(sizes: Sizes, *, pairs: bool = False) -> Terms:
    """Terms of tiles of pixels and channels; the last pixels may be half a tile.

    pairs: or a quarter of one.
    """
    pixels, channels, taps, depth, epilogue, deep, mr, nr = sizes
    across = -(-channels // nr)
    rest, odd = pixels % mr, channels % nr
    pair = pairs and 0 < rest <= mr // 4
    half = 0 < rest <= mr // 2 and not pair
    whole = -(-pixels // mr) - half - pair
    steps = (depth // 32, depth % 32 // 16, depth % 16 // 8, depth % 8 // 4)
    found = [1.0, across]
    for tiles in (whole, half):
        each, four = tiles * across, tiles * deep / PARTS
        shallow = each * taps * -(-depth // GROUP) - four
        found += (
            tiles,
            each,
            four,
            shallow,
            *(each * flag for flag in flags(epilogue)),
        )
        found += (each * taps, *(each * taps * step for step in steps))
        found += (each * taps * (depth % 4 // 2), each * taps * (depth % 8 > 0))
        found += (tiles * (odd > 0), *(tiles * (odd >> bit & 1) for bit in range(4)))
    found += (across * (rest > 0), across * rest)
    if pairs:
        found += (pair * across, pair * across * taps, pair * across * taps * depth)
    return tuple(found)


def flags(epilogue: int) -> Terms:
    """Whether it is the general one, and what kernels.c says that it does."""
    return (1 - epilogue % 2, *(epilogue >> bit & 1 for bit in range(1, 6)))


def depthwise(sizes: Sizes) -> Terms:
    """Terms of blocks of channels, and of pixels of one row of outputs or two."""
    pixels, channels, height, width, epilogue, edges, two, _ = sizes
    blocks = channels // 8
    kinds = (1, *flags(epilogue)[:4], two, two * (1 - epilogue % 2))
    return (
        1,
        *(blocks * kind for kind in kinds),
        *(blocks * (pixels // 4) * kind for kind in kinds),
        *(blocks * -(-pixels // 4) * kind for kind in kinds),
        *(blocks * (pixels % 4 // 2) * kind for kind in kinds),
        *(blocks * (pixels % 2) * kind for kind in kinds),
        blocks * edges,
        *(
            blocks * each * taps
            for each in (1, -(-pixels // 4), pixels // 4, pixels % 4 // 2, pixels % 2)
            for taps in (height, width, height * width)
        ),
    )


def depthwise_s16(sizes: Sizes) -> Terms:
    """Terms of blocks of channels, pixels and taps."""
    pixels, channels, height, width, *_ = sizes
    blocks = channels // 8
    return (
        1,
        blocks,
        blocks * pixels,
        blocks * pixels * height,
        blocks * pixels * height * width,
        blocks * (pixels % 2),
        blocks * (pixels % 2) * height * width,
    )


def winograd(sizes: Sizes) -> Terms:
    """Terms of rows of tiles."""
    tiles, depth, pairs, *_ = sizes
    steps = depth // 8
    return (1, tiles, tiles * steps, tiles * (steps % 2), pairs * tiles * steps)


def winograd_input(sizes: Sizes) -> Terms:
    """Terms of one tile."""
    return (1, sizes[0] // 8)


def winograd_weights(sizes: Sizes) -> Terms:
    """Terms of one pair of rows of planes."""
    depth, pair, *_ = sizes
    return (1, *(depth * (pair == each) for each in range(3)))


def winograd_gemm(sizes: Sizes) -> Terms:
    """Terms of planes of tiles."""
    tiles, planes, depth, *_ = sizes
    steps = depth // 8
    found = [1.0, planes]
    for each in (tiles // 8, tiles % 8 // 4, tiles % 4 // 2, tiles % 2):
        found += (planes * each, planes * each * steps)
    return tuple(found)


def winograd_output(sizes: Sizes) -> Terms:
    """Terms of tiles of 16 pixels."""
    tiles, channels, slope, residual, *_ = sizes
    fours = -(-channels // 4)
    shapes = (1, slope, residual)
    return (
        1,
        tiles,
        *(tiles * fours * shape for shape in shapes),
        *(tiles * (channels % 4 > 0) * shape for shape in shapes),
        tiles * (channels % 4),
    )


TERMS: dict[str, Callable[[Sizes], Terms]] = {
    "igemm": igemm,
    "depthwise_s16_s32": depthwise_s16,
    "depthwise": depthwise,
    "winograd_s8": winograd,
    "winograd_weights_s8": winograd_weights,
    "winograd_input_s8": winograd_input,
    "winograd_gemm_s32": winograd_gemm,
    "winograd_output_s8": winograd_output,
    "output_s32_s16": rows,
    "dequantize_s32_f32": rows,
    "requantize_s32_s8": rows,
    "table_s8": rows,
    "affine_s8": rows,
    "maxpool_s8": pool,
    "avgpool_s8": pool,
    "interleave_s8": rows,
    "deinterleave_s8": rows,
    "transpose_f32": rows,
    "lrn_s8": rows,
}
"""By the beginning of a kernel's name without n8_; `values` of all others."""


def terms_of(call: Call) -> Terms:
    """Terms of one call of a kernel."""
    name = call.kernel.removeprefix("n8_")
    if name.startswith("igemm") and "_a55" in name:  # last pixels go two by two
        return igemm(call.sizes, pairs=True)
    for slot, terms in TERMS.items():
        if name.startswith(slot):
            return terms(call.sizes)
    return values(call.sizes)


def around(part: Part) -> Terms:
    """Terms of the C around the kernels of a part."""
    calls = sum(call.count for call in part.calls)
    values, pixels = prod(part.shape), prod(part.shape[2:])
    first, *others = part.operands or ((),)
    read = prod(first)
    height, width = part.step.window if part.step else (1, 1)
    groups = part.step.groups if part.step else 1
    own = part.shape[1] == groups if len(part.shape) > 1 else False
    pixels *= 1 if own else groups
    edges = sum(part.shape[2:4]) if height * width > 1 else 0
    made = pointed = kept = 0
    for call in part.calls:
        points, channels, taps, depth, *_ = call.sizes
        made += call.count * points
        if call.kernel.startswith("n8_igemm"):
            pointed += call.count * points * taps
            kept += call.count * points * taps * depth
        else:
            kept += call.count * points * channels
    unfolded = made == pointed and height * width > 1
    columns = prod(part.shape[2:3]) * prod(first[3:])  # copied once for all windows
    return (
        1,
        calls,
        values,
        read,
        sum(map(prod, others)),
        pixels,
        made,
        kept,
        pixels * height * width * (not unfolded),
        edges * height * width,
        edges * values / max(pixels, 1),
        *(unfolded * each for each in (columns, columns * height)),
        unfolded * pixels * height * width,
    )


def keys(part: Part) -> tuple[str, ...]:
    """What the C around a part is known by, the most exact first."""
    if not part.calls:
        return (f"{part.operation} {part.dtype}", f"{part.operation} without kernels")
    return (f"{part.operation} {part.calls[0].kernel}", part.operation)


def split_terms(call: Call) -> tuple[Terms, Terms]:
    """Terms of one call: those of its inner loops, and what is left without a depth."""
    found = terms_of(call)
    if not call.kernel.startswith("n8_igemm"):
        return found, (0,) * len(found)
    sizes = (*call.sizes[:2], 0, 0, call.sizes[4], 0, *call.sizes[6:])
    alone = terms_of(replace(call, sizes=sizes))
    return tuple(a - b for a, b in zip(found, alone, strict=True)), alone
