# SPDX-License-Identifier: Apache-2.0
"""From a histogram to scale and zero point: schemes, methods and their guards."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.statistics.patches import Patches
from neon8.calibrate.thresholds import guards, methods
from neon8.calibrate.thresholds.aciq import aciq
from neon8.calibrate.thresholds.guards import MAX_CLIPPED_ENERGY, clipped_energy, widen
from neon8.calibrate.thresholds.kl import kl, kl2017, too_narrow
from neon8.calibrate.thresholds.methods import Method
from neon8.calibrate.thresholds.mse import expected_error, mse
from neon8.calibrate.thresholds.output import Judge, best, eq, judge
from neon8.calibrate.thresholds.range import legacy, minmax, percentile
from neon8.errors import CalibrationError
from neon8.quant.grid import SMALLEST_SCALE, Grid
from neon8.quant.scale_table import BITS, TABLE_SCHEMES, TensorScale

__all__ = [
    "MAX_CLIPPED_ENERGY",
    "METHODS",
    "SCHEMES",
    "check",
    "clipped_energy",
    "scheme_of",
    "solve",
    "tensor_scale",
]

METHODS = methods.NAMES
SCHEMES = TABLE_SCHEMES
RIVALS = ("mse", "kl", "percentile", "aciq", "legacy", "kl2017", "minmax")
"""Those that auto compares. Not eq: with the least error of all it tried on the very
rows that auto looks at, it would win by definition."""

Range = tuple[float, float]


def solve(
    histogram: Histogram,
    *,
    method: str = "mse",
    scheme: str = "auto",
    bits: int = 8,
    layers: Sequence[Patches] = (),
) -> TensorScale:
    """Scale and zero point for the values in `histogram`.

    method: see methods.parse.  scheme: one of SCHEMES; "auto" is unsigned where no
    value is negative, else asymmetric; "symmetric_with_uint8" the same with symmetric.
    bits: 8 or 16.  layers: those that read the tensor, for eq and auto.
    CalibrationError: an unknown method, scheme or number of bits.
    """
    check(method, scheme, bits)
    codes = ["nonfinite"] if histogram.nans + histogram.infs else []
    if guards.dead(histogram):
        grid = Grid("symmetric", bits)
        return tensor_scale(histogram, grid, (-1.0, 1.0), ("dead", *codes))
    kind = scheme_of(scheme, negative=histogram.minimum < 0)
    if scheme == "unsigned" and kind != scheme:
        codes.append("signed")
    grid = Grid(kind, bits)
    wanted = methods.parse(method)
    limits, used, more = _limits(histogram, grid, wanted, layers)
    found = tensor_scale(histogram, grid, limits, (*more, *codes))
    return found if used == wanted else replace(found, method=str(used))


def check(method: str, scheme: str, bits: int) -> None:
    """CalibrationError unless there are such a method, scheme and number of bits."""
    methods.parse(method)
    for what, value, known in (("scheme", scheme, SCHEMES), ("bits", bits, BITS)):
        if value not in known:
            text = f"expected one of {', '.join(map(str, known))}"
            raise CalibrationError(f"{what} {value!r} is unknown: {text}")


def scheme_of(scheme: str, *, negative: bool) -> str:
    """The scheme of a tensor that has negative values, or has none."""
    if scheme in ("symmetric", "asymmetric"):
        return scheme
    if not negative:
        return "unsigned"
    return "asymmetric" if scheme == "auto" else "symmetric"


def _limits(
    histogram: Histogram, grid: Grid, method: Method, layers: Sequence[Patches]
) -> tuple[Range, Method, tuple[str, ...]]:
    """(lo, hi), the method that they are from, the codes of guards."""
    full = minmax(histogram, grid.scheme)
    if method.name == "minmax":
        return full, method, ()
    lacking = guards.few(histogram)
    if lacking is not None:
        return full, method, (lacking,)
    if method.name not in ("eq", "auto"):
        return _guarded(histogram, grid, method)
    error = judge(histogram, layers, metric=method.metric)
    if method.name == "auto":
        return _auto(histogram, grid, error)
    if error is None:
        limits, _, codes = _guarded(histogram, grid, Method(name="mse"))
        return limits, method, (*codes, "unread")
    return eq(histogram, grid, error), method, ()


def _guarded(
    histogram: Histogram, grid: Grid, method: Method
) -> tuple[Range, Method, tuple[str, ...]]:
    """What a method that needs nothing but the histogram says, widened if need be."""
    narrow = method.name in ("kl", "kl2017") and too_narrow(
        histogram, grid.scheme, grid.bits
    )
    if narrow:
        return minmax(histogram, grid.scheme), method, ("few:bins",)
    chosen = _by_histogram(histogram, grid, method)
    limits = widen(histogram, grid.scheme, chosen)
    return limits, method, (("guard",) if limits != chosen else ())


def _by_histogram(histogram: Histogram, grid: Grid, method: Method) -> Range:
    scheme, bits = grid.scheme, grid.bits
    match method.name:
        case "mse":
            return mse(histogram, scheme, bits=bits)
        case "kl":
            return kl(histogram, scheme, bits=bits)
        case "kl2017":
            return kl2017(histogram, scheme, bits=bits)
        case "aciq":
            return aciq(histogram, scheme, bits=bits)
        case "percentile":
            zeros = method.of == "all"
            keep = method.percent / 100
            return percentile(histogram, scheme, keep=keep, zeros=zeros)
        case "legacy":
            keep = method.percent / 100
            return legacy(histogram, scheme, keep=keep, cutoff=method.cutoff)
        case _:
            return minmax(histogram, scheme)


def _auto(
    histogram: Histogram, grid: Grid, error: Judge | None
) -> tuple[Range, Method, tuple[str, ...]]:
    """The rival with the least error at a layer's output, or else in the histogram."""
    all_of_them = (_guarded(histogram, grid, Method(name=name)) for name in RIVALS)
    # Without enough bins kl and kl2017 are minmax, which is among them anyway.
    found = [each for each in all_of_them if "few:bins" not in each[2]]
    ranges = [limits for limits, _, _ in found]
    if error is not None:
        errors = [error(grid, limits) for limits in ranges]
    else:
        covers = [grid.cover(*limits) for limits in ranges]
        errors = [expected_error(histogram, grid, float(s), z) for s, z in covers]
    limits, method, codes = found[ranges.index(best(ranges, errors))]
    return limits, method, (*codes, *(() if error is not None else ("unread",)))


def tensor_scale(
    histogram: Histogram, grid: Grid, limits: Range, reasons: tuple[str, ...]
) -> TensorScale:
    """The scale of `grid` that covers `limits`; real 0 is on it."""
    step, zero_point = grid.cover(*limits)
    if step < SMALLEST_SCALE:
        step, reasons = SMALLEST_SCALE, (*reasons, "floor")
    seen = histogram.total > 0
    return TensorScale(
        scale=float(step),
        zero_point=zero_point,
        scheme=grid.scheme,
        threshold=(
            float(step * np.float32(grid.lowest - zero_point)),
            float(step * np.float32(grid.highest - zero_point)),
        ),
        min=histogram.minimum if seen else 0.0,
        max=histogram.maximum if seen else 0.0,
        bits=grid.bits,
        reasons=reasons,
    )
