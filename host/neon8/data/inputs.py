# SPDX-License-Identifier: Apache-2.0
"""The inputs of a network, and how the arrays of a sample become them.

The rules, for one sample:

* Dimensions of 1 may be missing or be there; all others are those of the network.
* uint8 arrays are images of height, width, channels wherever they fit so, and are moved
  to the order of the network.
* An input of floats takes every kind of number, cast to its type; an input of integers
  takes integers that its type can hold, and no others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError
from neon8.ir.graph import Graph

if TYPE_CHECKING:  # loads Pillow, which running a model does not need
    from neon8.data.preprocess import Preprocess

Shape = tuple[int, ...]

COLORS = (1, 3)
"""Channels by which an image's axis of channels is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input of a network.

    shape: of one run, as in ONNX.  dtype: numpy's name.  rows: how many samples the
    first axis holds, None if it is no axis of samples.
    """

    shape: Shape
    dtype: str = "float32"
    rows: int | None = 1

    @property
    def sample_shape(self) -> Shape:
        """Shape of one sample, without the axis of samples."""
        return self.shape if self.rows is None else self.shape[1:]

    @property
    def channels_last(self) -> bool:
        """True for images of height, width, channels."""
        shape = self.shape
        return len(shape) == 4 and shape[1] not in COLORS and shape[3] in COLORS

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width, of an input of four dimensions."""
        first = 1 if self.channels_last else 2
        return self.shape[first], self.shape[first + 1]

    @property
    def gray(self) -> bool:
        """True for images of one channel."""
        return len(self.shape) == 4 and self.shape[3 if self.channels_last else 1] == 1


Inputs = Mapping[str, Input | Shape] | Graph
"""What as_inputs() takes: inputs, their shapes, or a network that has them."""


def as_inputs(inputs: Inputs) -> dict[str, Input]:
    """The inputs by name; of those given by their shape float32."""
    if isinstance(inputs, Graph):
        tensors = (inputs.tensors[name] for name in inputs.inputs)
        shapes = {each.name: each.dims for each in tensors}
        return of_shapes(shapes, {name: inputs.tensors[name].dtype for name in shapes})
    shapes = {
        name: each for name, each in inputs.items() if not isinstance(each, Input)
    }
    made = of_shapes(shapes)
    return {
        name: each if isinstance(each, Input) else made[name]
        for name, each in inputs.items()
    }


def of_shapes(
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, str] | None = None,
    *,
    free: Iterable[str] = (),
) -> dict[str, Input]:
    """Inputs by name.

    dtypes: those that are not float32.  free: the inputs whose first dimension may be
    anything and is 1 in `shapes`: it holds the samples, and where it is fixed it does
    not. Without free ones the first dimension of all holds the samples if it is the
    same, and else that of those where it is 1.
    """
    free = set(free)
    first = {shape[0] if shape else None for shape in shapes.values()}

    def rows(name: str, shape: Shape) -> int | None:
        if free:
            return 1 if name in free else None
        if len(first) == 1 or shape[:1] == (1,):
            return shape[0] if shape else None
        return None

    return {
        name: Input(
            shape=shape,
            dtype=(dtypes or {}).get(name, "float32"),
            rows=rows(name, shape),
        )
        for name, shape in shapes.items()
    }


def batch_of(inputs: Mapping[str, Input]) -> int:
    """How many samples the network takes at once."""
    return max((each.rows or 1 for each in inputs.values()), default=1)


def only(where: str, inputs: Mapping[str, Input], what: str) -> str:
    """The name of the only input.  DataError: there are others.

    what: that can only be for one input, for the message.
    """
    if len(inputs) != 1:
        names = ", ".join(map(repr, inputs))
        text = f"{what} is for one input, and the network has {len(inputs)}"
        text += f"; give one array for each, as in an .npz: {names}"
        raise DataError(f"{where}: {text}")
    return next(iter(inputs))


def fits(shape: Shape, dtype: np.dtype[np.generic], wanted: Input) -> bool:
    """True if an array like this is one sample, if it is not preprocessed."""
    if dtype == np.uint8 and _image_axes(shape, wanted.sample_shape):
        return True
    return _dims(shape) == _dims(wanted.sample_shape)


def to_input(
    raw: Array, wanted: Input, preprocess: "Preprocess | None"
) -> tuple[Array, Array | None]:
    """Convert one sample to an input, and return the pixels it was made of, if any.

    The former is of wanted.sample_shape and of its type, the latter uint8 (H, W, C).
    DataError: it does not fit, or holds NaN or infinity.
    """
    if raw.dtype.kind not in "fiub":
        raise DataError(f"values are {raw.dtype}; expected numbers")
    if preprocess is None or len(wanted.shape) != 4:
        return _cast(_arranged(raw, wanted), wanted), None
    if raw.ndim == 4 and raw.shape[0] == 1:
        raw = raw[0]
    pixels = preprocess.pixels(raw, wanted.image_size)
    if wanted.dtype == "uint8":  # its arithmetic is in the network
        return _cast(_arranged(pixels, wanted), wanted), None
    value: Array = preprocess.values(pixels)
    if wanted.channels_last:
        value = value.transpose(1, 2, 0)
    value = _cast(_arranged(value, wanted), wanted)
    return value, pixels if pixels.dtype == np.uint8 else None


def _dims(shape: Shape) -> Shape:
    return tuple(dim for dim in shape if dim != 1)


def _image_axes(have: Shape, want: Shape) -> bool:
    """True if `have` is H W C, after an axis of 1 or not, and `want` C H W."""
    if len(have) == 4 and have[0] == 1:
        have = have[1:]
    return len(have) == len(want) == 3 and (have[2], *have[:2]) == want


def mismatch(shape: Shape, dtype: np.dtype[np.generic], wanted: Input) -> str:
    """The message for an array that does not fit."""
    want = list(wanted.shape)
    if dtype == np.uint8 and len(want) == 4:
        text = f"a uint8 image of H W C {list(shape)}, but the network takes {want}"
        return f"{text}; crop or resize it by preprocessing"
    many = f", {wanted.rows} samples" if (wanted.rows or 1) > 1 else ""
    return f"shape {list(shape)}, but the network takes {want}{many}"


def _arranged(raw: Array, wanted: Input) -> Array:
    """A view of wanted.sample_shape.  DataError."""
    want = wanted.sample_shape
    if raw.dtype == np.uint8 and _image_axes(raw.shape, want):
        image: Array = raw.reshape(raw.shape[-3:]).transpose(2, 0, 1)
        return image
    if _dims(raw.shape) == _dims(want):
        return raw.reshape(want)
    raise DataError(mismatch(raw.shape, raw.dtype, wanted))


def _cast(values: Array, wanted: Input) -> Array:
    """Cast to the network's type, contiguous.  DataError: a value that it cannot be."""
    dtype = np.dtype(wanted.dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # is refused as not finite
            cast: Array = values.astype(dtype, order="C", copy=False)
        bad = cast.size - int(np.count_nonzero(np.isfinite(cast)))
        if bad:
            text = f"{bad} of {cast.size} values are NaN or infinite"
            text += f" as {dtype}" if np.isfinite(values).all() else ""
            raise DataError(f"{text}; repair the sample or leave it out")
        return cast
    if values.dtype.kind == "f":
        raise DataError(f"values are {values.dtype}; expected {dtype}")
    least, most = _range(dtype)
    if values.size and not (least <= int(values.min()) <= int(values.max()) <= most):
        text = f"values from {values.min()} to {values.max()}"
        raise DataError(f"{text} do not fit {dtype}, which the network takes")
    integers: Array = values.astype(dtype, order="C", copy=False)
    return integers


def _range(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype.name)
    return int(limits.min), int(limits.max)
