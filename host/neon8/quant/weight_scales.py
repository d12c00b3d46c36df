# SPDX-License-Identifier: Apache-2.0
"""Weight scales: symmetric, one for each output channel."""

import numpy as np
import numpy.typing as npt

from neon8.errors import CalibrationError
from neon8.quant.scale_table import LayerScale

SMALLEST = 1e-30
BIAS_BITS = 29
"""|bias| / (scale_in * scale_w) stays below 2**29, so that B of numerics (5) fits int32
with room for the products."""

FloatArray = npt.NDArray[np.float32]


def weight_scales(
    layer: str,
    *,
    source: str,
    absmax: FloatArray,
    bias: FloatArray,
    input_scale: float,
    groups: int = 1,
) -> LayerScale:
    """absmax / 127 of each channel, enlarged where the bias would not fit int32.

    layer: its name; source: the tensor that it reads; absmax: (O,) the largest |weight|
    of each output channel; bias: (O,); groups: for the table only. A channel without
    weights, or with too small ones, takes the largest scale of the others.
    CalibrationError if a scale would not fit float32.
    """
    wanted = absmax.astype(np.float64) / 127
    # Below this, scale_in * scale_w would be no normal float32.
    floor = max(SMALLEST, SMALLEST / input_scale)
    small = wanted < floor
    usual = float(wanted.max()) if not small.all() else max(1 / 127, floor)
    chosen = np.where(small, usual, wanted)
    for_bias = np.abs(bias.astype(np.float64)) / (input_scale * 2.0**BIAS_BITS)
    scales = np.maximum(chosen, for_bias)
    if scales.max() > np.finfo(np.float32).max:
        text = "the bias is too large for the scale of the input"
        raise CalibrationError(f"layer {layer!r}: {text}")
    reasons = [
        f"{'dead' if wanted[channel] < SMALLEST else 'floor'}:{channel}"
        for channel in np.flatnonzero(small)
    ]
    reasons += [f"bias:{channel}" for channel in np.flatnonzero(for_bias > chosen)]
    return LayerScale(
        input=source,
        weight_scales=tuple(float(np.float32(scale)) for scale in scales),
        groups=groups,
        reasons=tuple(reasons),
    )
