# SPDX-License-Identifier: Apache-2.0
"""Samples for calibration and evaluation, from a path or from any iterable.

A path is an .npz (x, optional y; or one array for each input of the network), an .npy,
a folder of .npy files or a folder of images; a folder may hold a labels.txt. uint8
arrays are images, H W C; anything else is float as the network takes it. One sample is
in memory at a time.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.data.image_folder import list_folder
from neon8.data.npz import Rows, iterate, open_npy, open_npz, read
from neon8.data.preprocess import MAX_PIXELS, Preprocess, open_image
from neon8.errors import DataError
from neon8.graph.graph import Graph

Array = npt.NDArray[np.generic]
FloatArray = npt.NDArray[np.float32]
Shapes = Mapping[str, tuple[int, ...]]
Data = str | Path | Iterable[Any]
"""What gather() takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """name: for messages.  inputs: by input name, batch 1 first.  label: the class.

    pixels: of inputs that preprocessing makes of them, uint8 (H, W, C).
    """

    name: str
    inputs: dict[str, FloatArray]
    label: int | None
    pixels: dict[str, Array] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of what the network gets, in hex; name and label do not matter.

        Of each input, in order of their names: a line of JSON [name, type, shape] and
        the values, little-endian. Of an image its pixels are taken, a fourth of the
        bytes: what is made of them is in the settings, which have their own digest.
        """
        digest = hashlib.sha256()
        for name in sorted(self.inputs):
            array = self.pixels.get(name, self.inputs[name])
            kind = "|u1" if array.dtype == np.uint8 else "<f4"
            array = np.ascontiguousarray(array, dtype=kind)
            digest.update(json.dumps([name, kind, array.shape]).encode() + b"\n")
            digest.update(array.data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Samples start .. stop of some data, made anew each time they are iterated over.

    make: gives samples a .. b of the data.
    """

    start: int
    stop: int
    make: Callable[[int, int], Iterator[Sample]]

    def __len__(self) -> int:
        """How many there are."""
        return self.stop - self.start

    def __iter__(self) -> Iterator[Sample]:
        """From the first to the last."""
        return self.make(self.start, self.stop)

    def part(self, start: int, stop: int) -> "Samples":
        """Those from `start` to `stop`, counted from the first of these."""
        return replace(self, start=self.start + start, stop=self.start + stop)


def gather(
    data: Data,
    inputs: Shapes | Graph,
    *,
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
) -> Iterable[Sample]:
    """Samples of `data` for a network with these inputs, one at a time.

    data: a path, or an iterable of arrays, of dicts from input name to array, or of
    Sample.  preprocess: for files
    only.  limit: the most that are taken; skip: how many are left out before them.
    """
    if isinstance(data, str | Path):
        return open_samples(
            Path(data), inputs, preprocess=preprocess, limit=limit, skip=skip
        )
    if preprocess is not None:
        raise DataError(
            "preprocessing is for files; arrays come as the network takes them"
        )
    if skip < 0 or (limit is not None and limit < 1):
        raise DataError("data: limit must be positive and skip not negative")
    stop = None if limit is None else skip + limit
    return islice(iter(as_samples(data, inputs)), skip, stop)


def open_samples(
    path: str | PathLike[str],
    inputs: Shapes | Graph,
    *,
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
) -> Samples:
    """The samples in `path` for a network with these inputs.

    inputs: name -> shape with the batch.  limit, skip: as in gather().  DataError names
    file and sample, at once or while iterating.
    """
    shapes = input_shapes(inputs)
    file = Path(path)
    if skip < 0 or (limit is not None and limit < 1):
        raise DataError(f"{file}: limit must be positive and skip not negative")
    if file.is_dir():
        count, items = _open_folder(file, shapes, preprocess)
    elif file.suffix == ".npz":
        count, items = _open_npz(file, shapes, preprocess)
    elif file.suffix == ".npy":
        count, items = _open_npy(file, shapes, preprocess)
    else:
        what = "a file of another kind" if file.exists() else "missing"
        text = f"is {what}; expected .npz, .npy, a folder of .npy or of images"
        raise DataError(f"{file}: {text}")
    stop = count if limit is None else min(count, skip + limit)
    if stop <= skip:
        text = f"holds {count} samples" + (f", {skip} are skipped" if skip else "")
        raise DataError(f"{file}: {text}: nothing is left")

    def make(first: int, last: int) -> Iterator[Sample]:
        for name, raw, label in items(first, last):
            yield _sample(name, raw, shapes, preprocess=preprocess, label=label)

    return Samples(start=skip, stop=stop, make=make)


def as_samples(data: Iterable[Any], inputs: Shapes | Graph) -> Iterator[Sample]:
    """Samples from an iterable of arrays, of dicts from input to array, or of Samples.

    The arrays are as in files, with or without a batch axis of 1.  DataError names the
    sample by its number.
    """
    shapes = input_shapes(inputs)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise DataError("data: expected an iterable of arrays or of dicts")
    for number, item in enumerate(data):
        if isinstance(item, Sample):
            yield item
            continue
        name = f"sample {number}"
        arrays = item if isinstance(item, Mapping) else {_single(name, shapes): item}
        try:
            raw = {key: np.asarray(value) for key, value in arrays.items()}
        except ValueError as error:  # lists of different lengths
            raise DataError(f"{name}: is no array") from error
        yield _sample(name, raw, shapes, preprocess=None, label=None)


def input_shapes(inputs: Shapes | Graph) -> dict[str, tuple[int, ...]]:
    """Name -> shape as in ONNX, of a Graph or as given."""
    if not isinstance(inputs, Graph):
        return dict(inputs)
    tensors = (inputs.tensors[name] for name in inputs.inputs)
    return {tensor.name: tensor.dims for tensor in tensors}


def _single(where: str, shapes: Shapes) -> str:
    if len(shapes) != 1:
        names = ", ".join(map(repr, shapes))
        text = f"the network has {len(shapes)} inputs; name one array for each: {names}"
        raise DataError(f"{where}: {text}")
    return next(iter(shapes))


def _sample(
    name: str,
    raw: Mapping[str, Array],
    shapes: Shapes,
    *,
    preprocess: Preprocess | None,
    label: int | None,
) -> Sample:
    if set(raw) != set(shapes):
        have, want = (", ".join(map(repr, sorted(keys))) for keys in (raw, shapes))
        raise DataError(f"{name}: has the inputs {have}; the network takes {want}")
    values, pixels = {}, {}
    for key, shape in shapes.items():
        try:
            source = _pixels(raw[key], shape, preprocess)
            value = _to_input(source, shape, preprocess)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
        bad = value.size - int(np.count_nonzero(np.isfinite(value)))
        if bad:
            text = (
                f"{bad} of {value.size} values are NaN or infinite; repair the sample"
            )
            raise DataError(f"{name}: input {key!r}: {text} or leave it out")
        values[key] = value
        if preprocess is not None and source.dtype == np.uint8:
            pixels[key] = source
    return Sample(name=name, inputs=values, label=label, pixels=pixels)


def _pixels(raw: Array, shape: tuple[int, ...], preprocess: Preprocess | None) -> Array:
    """One sample; an image without its batch axis, cut to size if that is wanted."""
    if raw.dtype != np.uint8 and raw.dtype.kind != "f":
        raise DataError(f"values are {raw.dtype}; expected float32, or uint8 images")
    if len(shape) != 4:
        if preprocess is not None:
            text = f"preprocessing is for images; the network takes {list(shape)}"
            raise DataError(text)
        return raw
    if preprocess is None and raw.dtype != np.uint8:
        return raw
    if raw.ndim == 4 and raw.shape[0] == 1:
        raw = raw[0]
    return raw if preprocess is None else preprocess.pixels(raw, (shape[2], shape[3]))


def _to_input(
    raw: Array, shape: tuple[int, ...], preprocess: Preprocess | None
) -> FloatArray:
    """What _pixels() gives as float32 of `shape`."""
    image = len(shape) == 4 and raw.dtype == np.uint8
    if preprocess is not None:
        raw = preprocess.values(raw)
    elif image and raw.ndim == 2:
        raw = raw[np.newaxis]
    elif image and raw.ndim == 3:
        raw = raw.transpose(2, 0, 1)
    if raw.shape not in (shape, shape[1:]):
        text = f"shape {list(raw.shape)}, but the network takes {list(shape)}"
        if image and preprocess is None:
            text = f"a uint8 image of C H W {list(raw.shape)}, but the network takes"
            text += f" {list(shape[1:])}; crop or resize it by preprocessing"
        raise DataError(text)
    with np.errstate(over="ignore", invalid="ignore"):  # is refused as not finite
        return np.ascontiguousarray(raw.reshape(shape), dtype=np.float32)


_Item = tuple[str, dict[str, Array], int | None]
_Items = Callable[[int, int], Iterator[_Item]]
"""Samples a .. b of some data: their names, raw arrays and classes."""


def _check_size(
    where: str,
    have: tuple[int, ...],
    want: tuple[int, ...],
    preprocess: Preprocess | None,
) -> None:
    """DataError for arrays too large to be samples, before one is read."""
    limit = math.prod(want) if preprocess is None else 3 * MAX_PIXELS
    if math.prod(have) > limit:
        text = f"shape {list(have)}, but the network takes {list(want)}; crop or resize"
        text += " it by preprocessing" if preprocess is None else " it before"
        raise DataError(f"{where}: {text}")


def _columns(
    arrays: Mapping[str, Rows], shapes: Shapes, preprocess: Preprocess | None
) -> Callable[[int, int], Iterator[dict[str, Array]]]:
    """Samples a .. b of arrays whose first axes run over the samples together."""

    def rows(start: int, stop: int) -> Iterator[dict[str, Array]]:
        for key, each in arrays.items():
            where = f"{each.path}[{start}]"
            _check_size(where, each.shape[1:], shapes[key], preprocess)
        columns = [iterate(each, start, stop) for each in arrays.values()]
        for row in zip(*columns, strict=True):
            yield dict(zip(arrays, row, strict=True))

    return rows


def _open_npz(
    path: Path, shapes: Shapes, preprocess: Preprocess | None
) -> tuple[int, _Items]:
    arrays = open_npz(path)
    labels = arrays.pop("y", None) if "y" not in shapes else None
    if len(shapes) == 1 and set(arrays) == {"x"}:
        arrays = {next(iter(shapes)): arrays["x"]}
    if set(arrays) != set(shapes):
        names = " and ".join(map(repr, shapes))
        text = "expected x and perhaps y, or" if len(shapes) == 1 else "expected"
        have = ", ".join(arrays)
        raise DataError(f"{path}: holds the arrays {have}; {text} {names}")
    counts = {rows.shape[0] if rows.shape else 0 for rows in arrays.values()}
    if len(counts) != 1:
        raise DataError(f"{path}: its arrays have different numbers of samples")
    count = counts.pop()
    if labels is not None and (
        labels.shape != (count,) or labels.dtype.kind not in "iu"
    ):
        text = f"y is {labels.dtype} {list(labels.shape)}; expected {count} integers"
        raise DataError(f"{path}: {text}")
    rows = _columns(arrays, shapes, preprocess)

    def items(start: int, stop: int) -> Iterator[_Item]:
        both = zip(rows(start, stop), _labels(labels, start, stop), strict=True)
        for index, (row, label) in enumerate(both, start):
            yield f"{path}[{index}]", row, label

    return count, items


def _labels(rows: Rows | None, start: int, stop: int) -> Iterator[int | None]:
    if rows is None:
        yield from (None for _ in range(start, stop))
    else:
        for index, value in enumerate(iterate(rows, start, stop), start):
            if int(value) < 0:
                raise DataError(f"{rows.path}: y[{index}] is negative: {int(value)}")
            yield int(value)


def _open_npy(
    path: Path, shapes: Shapes, preprocess: Preprocess | None
) -> tuple[int, _Items]:
    key = _single(str(path), shapes)
    array = open_npy(path)
    if not array.shape:
        raise DataError(f"{path}: is a single number; the first axis is the samples")
    rows = _columns({key: array}, shapes, preprocess)

    def items(start: int, stop: int) -> Iterator[_Item]:
        for index, row in enumerate(rows(start, stop), start):
            yield f"{path}[{index}]", row, None

    return array.shape[0], items


def _open_folder(
    path: Path, shapes: Shapes, preprocess: Preprocess | None
) -> tuple[int, _Items]:
    key = _single(str(path), shapes)
    gray = shapes[key][1:2] == (1,)
    entries = list_folder(path)
    if len({name.suffix.lower() == ".npy" for name, _ in entries}) > 1:
        raise DataError(f"{path}: holds both images and .npy files; expected one kind")

    def items(start: int, stop: int) -> Iterator[_Item]:
        for file, label in entries[start:stop]:
            if file.suffix.lower() == ".npy":
                rows = open_npy(file)
                _check_size(str(file), rows.shape, shapes[key], preprocess)
                yield str(file), {key: read(rows)}, label
            else:
                yield str(file), {key: open_image(file, gray=gray)}, label

    return len(entries), items
