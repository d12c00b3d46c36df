# SPDX-License-Identifier: Apache-2.0
"""Statistics of the tensors, one sample at a time: nothing of a sample is kept."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from neon8.calibrate.histogram import Histogram, merge, of
from neon8.errors import CalibrationError

Array = npt.NDArray[np.generic]


def observe(
    histograms: Mapping[str, Histogram], values: Mapping[str, Array], *, sample: str
) -> dict[str, Histogram]:
    """The histograms with one sample more.

    histograms, values: by tensor name.  CalibrationError: a value is NaN or infinite.
    """
    return {
        name: merge(histogram, of(_finite(name, values[name], sample)))
        for name, histogram in histograms.items()
    }


def _finite(name: str, values: Array, sample: str) -> npt.NDArray[np.float32]:
    floats = np.asarray(values, dtype=np.float32)
    # A NaN makes both of them NaN; this is much cheaper than looking at each value.
    if np.isfinite(floats.min()) and np.isfinite(floats.max()):
        return floats
    nans = int(np.count_nonzero(np.isnan(floats)))
    infinite = int(np.count_nonzero(np.isinf(floats)))
    text = f"{nans} NaN and {infinite} infinite values of {floats.size}"
    raise CalibrationError(f"tensor {name!r}: {text} in sample {sample}")
