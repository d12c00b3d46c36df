# SPDX-License-Identifier: Apache-2.0
"""The samples in a file or folder as they are stored, one at a time.

Shapes and types are checked by the headers before anything else is read.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import Array
from neon8.data.columns import choose
from neon8.data.inputs import Input, fits, mismatch, only
from neon8.data.npz import Rows, iterate, open_npy, open_npz
from neon8.errors import DataError
from neon8.files import MAX_TEXT_BYTES, read_file, reading

if TYPE_CHECKING:  # loads Pillow, which running a model does not need
    from neon8.data.preprocess import Preprocess


IMAGES = (".jpg", ".jpeg", ".png")
MAX_PIXELS = 1 << 27
"""The largest image that is read or resized to: 400 MB in RGB."""
LABELS = "labels.txt"
_CLASS = re.compile(r"[0-9]{1,18}")
CHOOSE = ".npz:"
"""Between a file and the name of the array in it that is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One sample.  name: for messages.  arrays: by input, as stored.

    label: its class, None if unknown.
    """

    name: str
    arrays: dict[str, Array]
    label: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The samples of a file or folder.

    rows: yields those at positions a .. b.  apart: any of them can be read without
    those before it.
    """

    count: int
    rows: Callable[[int, int], Iterator[Row]]
    apart: bool = False


def open_source(
    path: Path, inputs: Mapping[str, Input], preprocess: "Preprocess | None"
) -> Source:
    """Open `path`.  DataError names file and sample, at once or while reading."""
    if preprocess is not None and all(len(i.shape) != 4 for i in inputs.values()):
        shapes = ", ".join(str(list(each.shape)) for each in inputs.values())
        text = f"preprocessing is for images; the network takes {shapes}"
        raise DataError(f"{path}: {text}")
    if path.is_dir():
        return _open_folder(path, inputs, preprocess)
    file, array = chosen(path)
    if file.suffix == ".npz":
        return _open_npz(file, array, inputs, preprocess)
    if file.suffix == ".npy":
        return _open_npy(file, inputs, preprocess)
    if file.suffix.lower() in IMAGES and file.exists():
        return _open_image(file, inputs)
    what = "a file of another kind" if file.exists() else "missing"
    text = f"is {what}; expected .npz, .npy, an image, a folder of .npy or of images"
    raise DataError(f"{file}: {text}")


def chosen(path: Path) -> tuple[Path, str | None]:
    """Split FILE.npz:ARRAY into file and array, None without one."""
    head, mark, array = str(path).rpartition(CHOOSE)
    if not mark or path.exists():
        return path, None
    return Path(head + CHOOSE.removesuffix(":")), array


def _open_npz(
    path: Path,
    array: str | None,
    inputs: Mapping[str, Input],
    preprocess: "Preprocess | None",
) -> Source:
    arrays = open_npz(path)
    remedy = f"Choose one: {path}:ARRAY"
    names, label = choose(
        str(path), arrays, inputs, array=array, any_name=True, remedy=remedy
    )
    columns = {
        name: _column(str(path), arrays[names[name]], each, preprocess)
        for name, each in inputs.items()
    }
    counts = {rows.shape[0] for rows in columns.values()}
    if len(counts) != 1:
        each = ", ".join(f"{name!r} {rows.shape[0]}" for name, rows in columns.items())
        text = f"its arrays have different numbers of samples: {each}"
        raise DataError(f"{path}: {text}")
    count = counts.pop()
    labels = None if label is None else _classes(arrays[label], count)

    def rows(start: int, stop: int) -> Iterator[Row]:
        raw = [iterate(each, start, stop) for each in columns.values()]
        classes = _labels(labels, start, stop)
        for index, (each, *values) in enumerate(zip(classes, *raw, strict=True), start):
            arrays = dict(zip(columns, values, strict=True))
            yield Row(name=f"{path}[{index}]", arrays=arrays, label=each)

    return Source(count=count, rows=rows)


def _open_npy(
    path: Path, inputs: Mapping[str, Input], preprocess: "Preprocess | None"
) -> Source:
    name = only(str(path), inputs, "an .npy file")
    column = _column(str(path), open_npy(path), inputs[name], preprocess)

    def rows(start: int, stop: int) -> Iterator[Row]:
        for index, raw in enumerate(iterate(column, start, stop), start):
            yield Row(name=f"{path}[{index}]", arrays={name: raw})

    return Source(count=column.shape[0], rows=rows)


def _open_image(path: Path, inputs: Mapping[str, Input]) -> Source:
    name = only(str(path), inputs, "an image")
    from neon8.data.preprocess import open_image  # noqa: PLC0415 - loads Pillow

    def rows(start: int, stop: int) -> Iterator[Row]:
        for _ in range(start, stop):
            pixels = open_image(path, gray=inputs[name].gray)
            yield Row(name=str(path), arrays={name: pixels})

    return Source(count=1, rows=rows, apart=True)


def has_images(path: Path) -> bool:
    """True for an image and for a folder of them."""
    if not path.is_dir():
        return path.suffix.lower() in IMAGES
    return _list_folder(path)[0][0].suffix.lower() in IMAGES


def _column(
    where: str, array: Rows, wanted: Input, preprocess: "Preprocess | None"
) -> Rows:
    """The array with the samples along its first axis.

    It may hold batches, along its first two axes, or a single sample.
    """
    if not array.shape and wanted.sample_shape:
        text = "is a single number; the first axis is the samples"
        raise DataError(f"{array.where} {text}")
    single = fits(array.shape[1:], array.dtype, wanted)
    if not single and preprocess is None:
        shape = array.shape
        if shape[1:] and not array.fortran and fits(shape[2:], array.dtype, wanted):
            return replace(array, shape=(shape[0] * shape[1], *shape[2:]))
        if fits(shape, array.dtype, wanted):
            return replace(array, shape=(1, *shape))
    if array.shape[0]:
        _check(f"{where}[0]", array.shape[1:], array.dtype, wanted, preprocess)
    return array


def _check(
    where: str,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    wanted: Input,
    preprocess: "Preprocess | None",
) -> None:
    """Raise DataError for an array that is no sample, or too large to read."""
    if dtype.kind not in "fiub":
        raise DataError(f"{where}: values are {dtype}; expected numbers")
    if preprocess is None or len(wanted.shape) != 4:
        if not fits(shape, dtype, wanted):
            raise DataError(f"{where}: {mismatch(shape, dtype, wanted)}")
    elif math.prod(shape) > 3 * MAX_PIXELS:
        text = f"shape {list(shape)}, but the network takes {list(wanted.shape)}"
        raise DataError(f"{where}: {text}; crop or resize it before")


def _classes(labels: Rows, count: int) -> Rows:
    """The classes of `count` samples, (count,) or (count, 1).  DataError."""
    shapes = ((count,), (count, 1))
    if labels.shape not in shapes or labels.dtype.kind not in "iu":
        text = f"is {labels.dtype} {list(labels.shape)}; expected {count} integers"
        raise DataError(f"{labels.where} {text}")
    return replace(labels, shape=(count,), fortran=False)


def _labels(rows: Rows | None, start: int, stop: int) -> Iterator[int | None]:
    if rows is None:
        yield from (None for _ in range(start, stop))
    else:
        for index, value in enumerate(iterate(rows, start, stop), start):
            if int(value) < 0:
                raise DataError(f"{rows.where} is negative at {index}: {int(value)}")
            yield int(value)


def _open_folder(
    path: Path, inputs: Mapping[str, Input], preprocess: "Preprocess | None"
) -> Source:
    name = only(str(path), inputs, "a folder")
    wanted = inputs[name]
    from neon8.data.preprocess import open_image  # noqa: PLC0415 - loads Pillow

    entries = _list_folder(path)
    if len({entry.suffix.lower() == ".npy" for entry, _ in entries}) > 1:
        raise DataError(f"{path}: holds both images and .npy files; expected one kind")
    arrays = entries[0][0].suffix.lower() == ".npy"
    batch = 1  # samples in a file
    if arrays and preprocess is None:
        first = open_npy(entries[0][0])
        single = not first.shape or fits(first.shape, first.dtype, wanted)
        if not single and fits(first.shape[1:], first.dtype, wanted):
            batch = first.shape[0]

    def npy(file: Path, start: int, stop: int) -> Iterator[Array]:
        rows = open_npy(file)
        if batch == 1:
            rows = replace(rows, shape=(1, *rows.shape))
        elif rows.shape[:1] != (batch,):
            text = f"shape {list(rows.shape)}; other files hold {batch} samples each"
            raise DataError(f"{file}: {text}")
        _check(str(file), rows.shape[1:], rows.dtype, wanted, preprocess)
        yield from iterate(rows, start, stop)

    def rows(start: int, stop: int) -> Iterator[Row]:
        for number in range(start // batch, -(-stop // batch)):
            file, label = entries[number]
            first = number * batch
            a, b = max(start - first, 0), min(stop - first, batch)
            found = npy(file, a, b) if arrays else [open_image(file, gray=wanted.gray)]
            for index, raw in enumerate(found, a):
                place = f"{file}[{index}]" if batch > 1 else str(file)
                yield Row(name=place, arrays={name: raw}, label=label)

    return Source(count=len(entries) * batch, rows=rows, apart=True)


def _list_folder(path: Path) -> list[tuple[Path, int | None]]:
    """Files and classes, in the order of labels.txt or else of their names.

    labels.txt may also name files of the subfolder images.
    """
    known = (*IMAGES, ".npy")
    listing = path / LABELS
    if not listing.exists():
        with reading(path, DataError):
            files = sorted(f for f in path.iterdir() if f.suffix.lower() in known)
        entries: list[tuple[Path, int | None]] = [(file, None) for file in files]
        if not entries:
            raise DataError(f"{path}: holds no {', '.join(known)} file")
        return entries
    try:
        lines = read_file(listing, most=MAX_TEXT_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{listing}: cannot be read as text") from error
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, *label = line.strip().rsplit(maxsplit=1)
        if not label or not _CLASS.fullmatch(label[0]):
            raise DataError(f"{listing}:{number}: expected a file name and its class")
        places = (path / name, path / "images" / name)
        file = next((place for place in places if place.is_file()), places[0])
        if file.suffix.lower() not in known or not file.is_file():
            text = f"names {name!r}, which is no {', '.join(known)} file here"
            raise DataError(f"{listing}:{number}: {text}")
        entries.append((file, int(label[0])))
    if not entries:
        raise DataError(f"{listing}: names no files")
    return entries
