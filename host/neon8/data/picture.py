# SPDX-License-Identifier: Apache-2.0
"""Small pictures of samples, for people."""

import io

import numpy as np
from PIL import Image

from neon8.arrays import Array

SIDE = 192
"""The most pixels of a side."""
QUALITY = 80


def picture(image: Array, *, bgr: bool = False) -> bytes:
    """A small JPEG of an image (H, W, 1) or (H, W, 3).

    Values that are no pixels are spread from black to white.  bgr: the order of its
    channels.
    """
    if image.dtype != np.uint8:
        values = image.astype(np.float64)
        low, high = values.min(), values.max()
        image = (values - low) * (255 / max(high - low, 1e-30)) + 0.5
        image = image.astype(np.uint8)
    image = image[:, :, ::-1] if bgr and image.shape[2] == 3 else image
    shown = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image.copy())
    shown.thumbnail((SIDE, SIDE), Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    shown.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()
