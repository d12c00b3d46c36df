# SPDX-License-Identifier: Apache-2.0
"""The inputs of a network, and how the arrays of a sample become them.

The rules, for one sample:

* Dimensions of 1 may be missing or be there; all others are those of the network.
* Where a network leaves dimensions open, a sample has its own, within their bounds. All
  dimensions are there then; only the axis of samples, of 1, and channels of 1 may be
  missing.
* uint8 arrays are images of height, width, channels wherever they fit so, and are moved
  to the order of the network.
* An input of floats takes every kind of number, cast to its type; an input of integers
  takes integers that its type can hold, and no others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError
from neon8.ir.graph import Graph
from neon8.settings.shapes import Open

if TYPE_CHECKING:  # loads Pillow, which running a model does not need
    from neon8.data.preprocess import Preprocess

Shape = tuple[int, ...]

COLORS = (1, 3)
"""Channels by which an image's axis of channels is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input of a network.

    shape: of one run, as in ONNX.  dtype: numpy's name.  rows: how many samples the
    first axis holds, None if it is no axis of samples.  bounds: what each dimension may
    be where samples have shapes of their own, () if all have `shape`; `shape` is the
    smallest then.  symbols: for each bound a name; dimensions of one are always equal.
    """

    shape: Shape
    dtype: str = "float32"
    rows: int | None = 1
    bounds: tuple[int | Open, ...] = ()
    symbols: tuple[str, ...] = ()

    @property
    def may_be(self) -> str:
        """Its shapes, as --shape takes them."""
        return "x".join(map(str, self.bounds or self.shape))

    @property
    def sample_shape(self) -> Shape:
        """Shape of one sample, without the axis of samples."""
        return self.shape if self.rows is None else self.shape[1:]

    @property
    def channels_last(self) -> bool:
        """True for images of height, width, channels."""
        dims = self.bounds or self.shape
        return len(dims) == 4 and dims[1] not in COLORS and dims[3] in COLORS

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width, of an input of four dimensions."""
        first = 1 if self.channels_last else 2
        return self.shape[first], self.shape[first + 1]

    @property
    def gray(self) -> bool:
        """True for images of one channel."""
        dims = self.bounds or self.shape
        return len(dims) == 4 and dims[3 if self.channels_last else 1] == 1


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


def with_bounds(
    inputs: Mapping[str, Input],
    bounds: Mapping[str, Sequence[int | Open]],
    symbols: Mapping[str, Sequence[str]],
) -> dict[str, Input]:
    """The inputs, of which samples have shapes of their own within these bounds.

    symbols: what dimensions that are always equal share.  The axis of samples is as
    long as it can be least: samples run one by one.
    """
    found = dict(inputs)
    for name, limits in bounds.items():
        least = tuple(n if isinstance(n, int) else n.lo for n in limits)
        given = tuple(limits)
        if found[name].rows is not None:
            given = (*least[:1], *given[1:])
        rows = None if found[name].rows is None else least[0]
        found[name] = replace(found[name], shape=least, rows=rows)
        if any(isinstance(limit, Open) for limit in given):
            known = tuple(symbols[name])
            found[name] = replace(found[name], bounds=given, symbols=known)
    return found


def check_equal(inputs: Mapping[str, Input], shapes: Mapping[str, Shape]) -> None:
    """DataError: dimensions of a sample differ that are always equal."""
    seen: dict[str, tuple[str, int, int]] = {}
    for name, wanted in inputs.items():
        for axis, symbol in enumerate(wanted.symbols):
            size = shapes[name][axis]
            other, at, first = seen.setdefault(symbol, (name, axis, size))
            if first != size and isinstance(wanted.bounds[axis], Open):
                text = f"input {name!r} has {size} as dimension {axis}, which must"
                raise DataError(f"{text} equal dimension {at} of {other!r}, {first}")


def of_sample(
    inputs: Mapping[str, Input], arrays: Mapping[str, Array]
) -> dict[str, Input]:
    """The inputs at the shapes that a sample has."""
    return {
        name: replace(each, shape=arrays[name].shape, bounds=(), symbols=())
        if each.bounds
        else each
        for name, each in inputs.items()
    }


def at_shape(shape: Shape, dtype: np.dtype[np.generic], wanted: Input) -> Input:
    """The input at the shape that a sample like this has, if it is not preprocessed.

    DataError: it is outside the bounds.
    """
    if not wanted.bounds:
        return wanted
    own = next(_own(shape, dtype, wanted), None)
    if own is None:
        raise DataError(mismatch(shape, dtype, wanted))
    return _fixed(own, wanted)


def at_size(size: tuple[int, int], wanted: Input, *, nearest: bool) -> Input:
    """The input for an image of a size that is cropped or, if `nearest`, resized.

    It is the largest that is no larger, or the nearest.  DataError: there is none.
    """
    first = 1 if wanted.channels_last else 2
    dims = list(wanted.shape)
    for axis, have in zip((first, first + 1), size, strict=True):
        limit = wanted.bounds[axis]
        if isinstance(limit, Open):
            dims[axis] = limit.near(have) if nearest else limit.below(have)
    if wanted.symbols[first] == wanted.symbols[first + 1]:
        dims[first] = dims[first + 1] = min(dims[first : first + 2])
    return _fixed(tuple(dims if wanted.rows is None else dims[1:]), wanted)


def _fixed(own: Shape, wanted: Input) -> Input:
    """The input with one shape.  own: of a sample."""
    shape = own if wanted.rows is None else (wanted.rows, *own)
    return replace(wanted, shape=shape, bounds=(), symbols=())


def _own(shape: Shape, dtype: np.dtype[np.generic], wanted: Input) -> Iterator[Shape]:
    """The shapes within bounds that an array can have as one sample."""
    limits = wanted.bounds if wanted.rows is None else wanted.bounds[1:]
    yield from (
        each
        for each in _readings(shape, dtype, len(limits))
        if all(map(_within, each, limits))
    )


def _readings(shape: Shape, dtype: np.dtype[np.generic], rank: int) -> Iterator[Shape]:
    """The shapes of this rank that an array can have."""
    image = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
    if dtype == np.uint8 and len(image) == rank == 3:
        yield (image[2], *image[:2])
    if len(shape) == rank:
        yield shape
    if len(shape) == rank + 1 and shape[0] == 1:
        yield shape[1:]
    if len(shape) == rank - 1:
        yield (1, *shape)


def _within(size: int, limit: int | Open) -> bool:
    return size == limit if isinstance(limit, int) else size in limit.values


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
    if wanted.bounds:
        return next(_own(shape, dtype, wanted), None) is not None
    if dtype == np.uint8 and _image_axes(shape, wanted.sample_shape):
        return True
    return _dims(shape) == _dims(wanted.sample_shape)


def to_input(
    raw: Array, wanted: Input, preprocess: "Preprocess | None"
) -> tuple[Array, Array | None]:
    """Convert one sample to an input, and return the pixels it was made of, if any.

    The former is of the type of the input and of the shape of a sample, which of an
    input with bounds is its own; the latter uint8 (H, W, C).
    DataError: it does not fit, or holds NaN or infinity.
    """
    if raw.dtype.kind not in "fiub":
        raise DataError(f"values are {raw.dtype}; expected numbers")
    if preprocess is None or len(wanted.shape) != 4:
        here = at_shape(raw.shape, raw.dtype, wanted)
        return _cast(_arranged(raw, here), here), None
    if raw.ndim == 4 and raw.shape[0] == 1:
        raw = raw[0]
    wanted = preprocess.at(raw, wanted)
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
    if wanted.bounds:
        return _outside(shape, dtype, wanted)
    if dtype == np.uint8 and len(want) == 4:
        text = f"a uint8 image of H W C {list(shape)}, but the network takes {want}"
        return f"{text}; crop or resize it by preprocessing"
    many = f", {wanted.rows} samples" if (wanted.rows or 1) > 1 else ""
    return f"shape {list(shape)}, but the network takes {want}{many}"


def _outside(shape: Shape, dtype: np.dtype[np.generic], wanted: Input) -> str:
    """The same where dimensions are open: which of them is outside its bounds."""
    limits = wanted.bounds if wanted.rows is None else wanted.bounds[1:]
    before = len(wanted.bounds) - len(limits)
    for own in _readings(shape, dtype, len(limits)):
        for axis, (size, limit) in enumerate(zip(own, limits, strict=True), before):
            if not _within(size, limit):
                text = f"has {size} as dimension {axis}, which is {limit}"
                remedy = "resize or crop it, or give wider bounds by --shape"
                return f"{text} ({wanted.may_be}); {remedy}"
    return f"shape {list(shape)}, but the network takes {wanted.may_be}"


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
