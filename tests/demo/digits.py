# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's handwritten digits, split once and for all."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

TEST = 600


class Part(NamedTuple):
    """x: (N, 8, 8, 1) uint8, N H W C, grey levels 0 to 16; y: (N,) int64 labels."""

    x: npt.NDArray[np.uint8]
    y: npt.NDArray[np.int64]


def split() -> tuple[Part, Part]:
    """1197 digits to train and to calibrate with, and 600 that nothing ever saw."""
    digits = load_digits()
    order = np.random.default_rng(8).permutation(len(digits.target))
    x = digits.images[order].astype(np.uint8)[..., np.newaxis]
    y = digits.target[order].astype(np.int64)
    return Part(x[:-TEST], y[:-TEST]), Part(x[-TEST:], y[-TEST:])
