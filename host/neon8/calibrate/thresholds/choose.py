# SPDX-License-Identifier: Apache-2.0
"""From a histogram to scale and zero point: schemes, methods and their guards."""

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np

from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.statistics.patches import Patches
from neon8.calibrate.thresholds import guards
from neon8.calibrate.thresholds.eq import eq, output_error
from neon8.calibrate.thresholds.guards import Range
from neon8.calibrate.thresholds.minmax import minmax
from neon8.errors import CalibrationError
from neon8.quant.grid import Grid
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.scale_table import TensorScale
from neon8.settings import methods
from neon8.settings.methods import Method


def solve(
    histogram: Histogram,
    *,
    method: str = "mse",
    scheme: str = "auto",
    bits: int = 8,
    layers: Sequence[Patches] = (),
) -> TensorScale:
    """Scale and zero point for the values in `histogram`.

    method: see methods.parse.  scheme: one of TABLE_SCHEMES; "auto" is unsigned where
    no value is negative, else asymmetric; "symmetric_with_uint8" the same with
    symmetric.  layers: those that read the tensor, for eq.  CalibrationError: an
    unknown method, or a range that float32 cannot hold.
    """
    chosen = methods.parse(method)
    codes = ["nonfinite"] if histogram.nans + histogram.infs else []
    if guards.dead(histogram):
        grid = Grid("symmetric", bits)
        return tensor_scale(histogram, grid, (-1.0, 1.0), ("dead", *codes))
    kind = scheme_of(scheme, negative=histogram.minimum < 0)
    if scheme == "unsigned" and kind != scheme:
        codes.append("signed")
    grid = Grid(kind, bits)
    limits, more = _limits(histogram, grid, chosen, layers)
    return tensor_scale(histogram, grid, limits, (*more, *codes))


def scheme_of(scheme: str, *, negative: bool) -> str:
    """The scheme of a tensor, by whether it has negative values."""
    if scheme in ("symmetric", "asymmetric"):
        return scheme
    if not negative:
        return "unsigned"
    return "asymmetric" if scheme == "auto" else "symmetric"


def _limits(
    histogram: Histogram, grid: Grid, method: Method, layers: Sequence[Patches]
) -> tuple[Range, tuple[str, ...]]:
    """(lo, hi), and the reason codes of guards that fired."""
    full = minmax(histogram, grid)
    if method.name == "minmax":
        return full, ()
    lacking = guards.few(histogram)
    if lacking is not None:
        return full, (lacking,)
    if method.name != "eq":
        return _guarded(histogram, grid, method)
    metric = str(method.settings.get("metric", "error"))
    error = output_error(histogram, layers, metric=metric)
    if error is None:
        limits, codes = _guarded(histogram, grid, methods.parse("mse"))
        return limits, (*codes, "unread")
    return eq(histogram, grid, error), ()


def _guarded(
    histogram: Histogram, grid: Grid, method: Method
) -> tuple[Range, tuple[str, ...]]:
    """The range of a method that needs only the histogram, widened if necessary."""
    module = import_module(f"{__package__}.{methods.ROWS[method.name].module}")
    function: Callable[..., Range | None] = getattr(module, method.name)
    chosen = function(histogram, grid, **method.settings)
    if chosen is None:
        return minmax(histogram, grid), ("few:bins",)
    limits = guards.widen(histogram, grid, chosen)
    return limits, (("guard",) if limits != chosen else ())


def tensor_scale(
    histogram: Histogram, grid: Grid, limits: Range, reasons: tuple[str, ...]
) -> TensorScale:
    """The scale with which `grid` covers `limits`; 0.0 is on it.

    CalibrationError: an end of the grid exceeds float32.
    """
    step, zero_point = grid.cover(*limits)
    least = np.float32(SMALLEST_SCALE)
    if step < least:
        step, reasons = least, (*reasons, "floor")
    with np.errstate(over="ignore"):
        lowest = float(step * np.float32(grid.lowest - zero_point))
        highest = float(step * np.float32(grid.highest - zero_point))
    if not np.isfinite([lowest, highest]).all():
        raise CalibrationError(
            f"the range {limits[0]:.6g} .. {limits[1]:.6g} does not fit float32 once "
            "it is quantized: set a smaller one with --override"
        )
    seen = histogram.total > 0
    return TensorScale(
        scale=float(step),
        zero_point=zero_point,
        scheme=grid.scheme,
        threshold=(lowest, highest),
        min=histogram.minimum if seen else 0.0,
        max=histogram.maximum if seen else 0.0,
        bits=grid.bits,
        reasons=reasons,
    )
