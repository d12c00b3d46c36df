# SPDX-License-Identifier: Apache-2.0
"""From an image to the float32 array that a network takes, as a TOML file says."""

import functools
import math
import threading
import warnings
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from neon8.arrays import Array, FloatArray
from neon8.data.inputs import Input, at_size
from neon8.data.sources import MAX_PIXELS
from neon8.errors import LOG, DataError
from neon8.files import open_regular, unreadable
from neon8.settings.toml_file import read_toml

RESIZES = ("none", "stretch", "short")
COLORS = ("rgb", "bgr", "gray")
FORMATS = ("JPEG", "PNG")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocess:
    """value = (raw * scale - mean) / std, in N C H W, raw being 0 to 255 in an image.

    size: height, width of the result, None for those that the network takes.  resize:
    "none" (centre crop only), "stretch" (to size), "short" (the short side to `short`
    pixels, then centre crop).  color: "rgb", "bgr" or "gray".  mean, std: one value, or
    one for each channel in the order of color.
    """

    size: tuple[int, int] | None = None
    resize: str = "none"
    short: int | None = None
    color: str = "rgb"
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        """Check every field.  DataError."""
        if self.size is not None and (len(self.size) != 2 or min(self.size) < 1):
            raise DataError(f"size: {list(self.size)} is not [height, width]")
        if self.resize not in RESIZES:
            raise DataError(f"resize: expected one of {', '.join(RESIZES)}")
        if self.color not in COLORS:
            raise DataError(f"color: expected one of {', '.join(COLORS)}")
        if (self.resize == "short") != (self.short is not None):
            raise DataError('short: goes with resize = "short" and only with it')
        if self.short is not None and self.short < min(self.size or (1,)):
            raise DataError(f"short: {self.short} pixels are fewer than the size has")
        channels = 1 if self.color == "gray" else 3
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, channels):
                text = f"{len(values)} values for {channels} channels"
                raise DataError(f"{name}: {text}")
        if not all(math.isfinite(v) for v in (self.scale, *self.mean, *self.std)):
            raise DataError("scale, mean and std must be finite")
        if 0 in self.std or self.scale == 0:
            raise DataError("scale and std must not be zero")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Preprocess":
        """The settings in the TOML file `path`.  DataError: file, key and cause."""
        data = read_toml(path)
        known = [field.name for field in fields(cls)]
        for key in data:
            if key not in known:
                text = f"key {key!r} is unknown; there are {', '.join(known)}"
                raise DataError(f"{path}: {text}")
        try:
            return cls(**{key: _value(key, value) for key, value in data.items()})
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    def apply(self, raw: Array, size: tuple[int, int]) -> FloatArray:
        """raw: (H, W), (H, W, 1) or (H, W, 3) in RGB -> (C, h, w).  DataError.

        size: height, width that the network takes, used where self.size is None.
        """
        return self.values(self.pixels(raw, size))

    def values(self, pixels: Array) -> FloatArray:
        """(h, w, C), what pixels() gives -> (C, h, w)."""
        if pixels.dtype == np.uint8:
            return _looked_up(pixels.astype(np.uint8, copy=False), _table(self))
        return np.ascontiguousarray(_values(self, pixels).transpose(2, 0, 1))

    def table(self) -> FloatArray:
        """(C, 256): what values() makes of every byte, in each channel."""
        return _table(self)

    def at(self, raw: Array, wanted: Input) -> Input:
        """The input at the size to which an image comes, where it may have several.

        That is the largest that can be cropped out of it once it is resized, but with
        "stretch" the nearest to the image's own.
        """
        if not wanted.bounds or raw.ndim not in (2, 3):
            return wanted
        if self.size is not None:
            here = at_size(self.size, wanted, nearest=False)
            if here.image_size != self.size:
                text = f"size: {list(self.size)} is none that the network takes"
                raise DataError(f"{text}, {wanted.may_be}")
            return here
        height, width = raw.shape[:2]
        if self.short is not None:
            factor = self.short / min(height, width)
            height, width = (max(round(s * factor), 1) for s in (height, width))
        return at_size((height, width), wanted, nearest=self.resize == "stretch")

    def pixels(self, raw: Array, size: tuple[int, int]) -> Array:
        """As apply(), up to the arithmetic: (h, w, C), of the type of raw."""
        size = self.size or size
        if raw.ndim == 3 and raw.shape[2] == 1:
            raw = raw[:, :, 0]
        if raw.ndim != 2 and not (raw.ndim == 3 and raw.shape[2] == 3):
            text = f"shape {list(raw.shape)} is no image of height, width, channels"
            raise DataError(text)
        if raw.dtype == np.uint8:
            raw = self._image(raw, size)
        elif self.resize != "none":
            raise DataError(f"resize needs uint8 images, not {raw.dtype}")
        elif raw.ndim != (2 if self.color == "gray" else 3):
            text = f"shape {list(raw.shape)} does not match color {self.color!r}"
            raise DataError(text)
        top, left = ((raw.shape[axis] - size[axis]) // 2 for axis in (0, 1))
        if top < 0 or left < 0:
            text = f"image of {raw.shape[0]} x {raw.shape[1]} is smaller than the size"
            raise DataError(f"{text} {size[0]} x {size[1]}")
        pixels = raw[top : top + size[0], left : left + size[1]].reshape(*size, -1)
        if self.color == "bgr":
            pixels = pixels[:, :, ::-1]
        return pixels

    def _image(self, raw: Array, size: tuple[int, int]) -> Array:
        """uint8 pixels resized, (H, W) if gray, else (H, W, 3)."""
        mode, rank = ("L", 2) if self.color == "gray" else ("RGB", 3)
        if self.resize == "none" and raw.ndim == rank:
            return raw
        image = Image.fromarray(np.ascontiguousarray(raw)).convert(mode)
        return np.asarray(self._resized(image, size))

    def _resized(self, image: Image.Image, size: tuple[int, int]) -> Image.Image:
        height, width = size
        if self.short is not None:
            factor = self.short / min(image.size)
            width, height = (max(round(side * factor), 1) for side in image.size)
        if self.resize == "none" or image.size == (width, height):
            return image
        if width * height > MAX_PIXELS:
            raise DataError(f"resizing to {height} x {width} makes too many pixels")
        return image.resize((width, height), Image.Resampling.BILINEAR)


@dataclass(frozen=True, kw_only=True)
class Nearest(Preprocess):
    """Images as they are, but for a size that a network does not take.

    Such are resized to the nearest one, and the first of them is told of.
    """

    resize: str = "stretch"
    where: str = ""
    untold: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def at(self, raw: Array, wanted: Input) -> Input:
        """As of Preprocess."""
        here = super().at(raw, wanted)
        (height, width), size = raw.shape[:2], here.image_size
        if (height, width) != size and self.untold.acquire(blocking=False):
            text = "%s: images are resized to what the network takes, the first %s"
            first = f"from {height} x {width} to {size[0]} x {size[1]}"
            LOG.warning(text, self.where, first)
        return here


def _values(preprocess: Preprocess, pixels: Array) -> FloatArray:
    """The formula on (..., C), in float64, rounded once."""
    mean, std = np.array(preprocess.mean), np.array(preprocess.std)
    with np.errstate(all="ignore"):  # what is not finite then is refused as such
        exact = (pixels.astype(np.float64) * preprocess.scale - mean) / std
        values: FloatArray = exact.astype(np.float32)
    return values


@functools.lru_cache(maxsize=4)
def _table(preprocess: Preprocess) -> FloatArray:
    """(C, 256): what the formula makes of every byte, in each channel."""
    channels = 1 if preprocess.color == "gray" else 3
    every = np.broadcast_to(np.arange(256)[:, np.newaxis], (256, channels))
    return np.ascontiguousarray(_values(preprocess, every).T)


def _looked_up(pixels: npt.NDArray[np.uint8], table: FloatArray) -> FloatArray:
    """(H, W, C) -> (C, H, W): eight times as fast as the formula on every pixel."""
    height, width, channels = pixels.shape
    planes = np.empty((channels, height, width), np.float32)
    for channel, plane in enumerate(planes):
        # Every byte is in the table; of the modes, "clip" needs no buffer.
        np.take(table[channel], pixels[:, :, channel], out=plane, mode="clip")
    return planes


def _value(key: str, value: Any) -> Any:
    """A TOML value as the type of the field; DataError if it is of another."""
    number = (int, float)
    if key in ("size", "mean", "std"):
        kind = (int,) if key == "size" else number
        if isinstance(value, list) and all(type(item) in kind for item in value):
            return tuple(value)
        raise DataError(f"{key}: expected a list of numbers, not {value!r}")
    wanted = {"scale": number, "short": (int,)}.get(key, (str,))
    if type(value) not in wanted:
        raise DataError(f"{key}: {value!r} is of the wrong type")
    return value


ORIENTATION, UPRIGHT = 0x0112, 1
"""An EXIF tag, and the value of a camera that was held upright."""


def open_image(path: Path, *, gray: bool = False) -> Array:
    """The pixels of an image file: (H, W, 3) RGB or, if gray, (H, W); uint8.

    Upright, if it has EXIF data.  DataError names the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _pixels(path, "L" if gray else "RGB")
    except Image.DecompressionBombError as error:
        raise DataError(f"{path}: has too many pixels for an image") from error
    except Exception as error:  # every decoder of Pillow has its own
        raise unreadable(path, "an image (JPEG or PNG)", error) from error


def _pixels(path: Path, mode: str) -> Array:
    with open_regular(path) as file, Image.open(file, formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:  # nothing is decoded yet
            raise Image.DecompressionBombError
        upright = _upright(image)
        if upright.mode.startswith("I"):  # 16 bits of grey, which convert() would clip
            scaled = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
            return np.asarray(scaled.convert(mode))
        return np.asarray(upright.convert(mode))


def _upright(image: Image.Image) -> Image.Image:
    """The image as its EXIF data say that the camera was held, and viewers show it."""
    try:
        held = image.getexif().get(ORIENTATION, UPRIGHT)
    except Exception:  # noqa: BLE001 - damaged EXIF data are no reason to refuse it
        held = UPRIGHT
    return image if held == UPRIGHT else ImageOps.exif_transpose(image)
