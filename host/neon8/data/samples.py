# SPDX-License-Identifier: Apache-2.0
"""Samples for calibration and evaluation, from a path or from Python.

A path is an .npz, an .npy, a folder of .npy files or a folder of images, which may hold
a labels.txt. From Python come arrays, dicts from input to array, or objects that
provide them, such as a data reader for onnxruntime. inputs.py converts single arrays,
columns.py tells them apart by their names. One sample is in memory at a time.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neon8.arrays import Array
from neon8.data.columns import choose
from neon8.data.inputs import (
    Input,
    Inputs,
    as_inputs,
    batch_of,
    check_equal,
    fits,
    only,
    to_input,
)
from neon8.data.sources import Row, open_source
from neon8.errors import LOG, DataError
from neon8.settings.reader import takes
from neon8.settings.stages import DEFAULTS, Settings
from neon8.text import counted

if TYPE_CHECKING:  # loads Pillow, which running a model does not need
    from neon8.data.preprocess import Preprocess

Data = str | Path | Iterable[Any] | Any
"""What gather() takes; the last are data readers: objects with get_next()."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a network takes in one run: one sample, or as many as its batch is fixed to.

    name: for messages.  inputs: by input name, as the network takes them.  labels:
    classes of its rows, empty if unknown.  pixels: of inputs that preprocessing made,
    uint8 (H, W, C), or (N, H, W, C) in a batch.
    """

    name: str
    inputs: dict[str, Array]
    labels: tuple[int, ...] = ()
    pixels: dict[str, Array] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of what the network gets, in hex, without name and labels.

        For each input, in order of names, a line of JSON [name, type, shape] and the
        values, little-endian. An image counts by its pixels, a fourth of the bytes; the
        preprocessing settings have a digest of their own.
        """
        digest = hashlib.sha256()
        for name in sorted(self.inputs):
            array = self.pixels.get(name, self.inputs[name])
            kind = array.dtype.newbyteorder("<")
            array = np.ascontiguousarray(array, kind).reshape(array.shape)
            digest.update(json.dumps([name, kind.str, array.shape]).encode() + b"\n")
            digest.update(array.data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Samples start .. stop of some data, made anew by every iteration.

    make: yields samples a .. b of the data.  left: how many rows at the end do not fill
    a batch of `batch`.  where: the data, for messages.  apart: a sample can be made
    without those before it, and several at once.
    """

    start: int
    stop: int
    make: Callable[[int, int], Iterator[Sample]]
    left: int = 0
    batch: int = 1
    where: str = "data"
    apart: bool = False

    def __len__(self) -> int:
        """How many there are."""
        return self.stop - self.start

    def __iter__(self) -> Iterator[Sample]:
        """From the first to the last."""
        return self.make(self.start, self.stop)

    def part(self, start: int, stop: int) -> "Samples":
        """Those from `start` to `stop`, counted from the first of these."""
        return replace(self, start=self.start + start, stop=self.start + stop)

    def at(self, position: int) -> Sample:
        """The sample at `position`, counted from the first of these."""
        (sample,) = self.part(position, position + 1)
        return sample

    def say_left(self) -> None:
        """Warn of the rows that are left out."""
        _say_left(self.where, self.left, self.batch)


def kept(sample: Sample) -> Sample:
    """Copy a sample, to outlive the next.

    A source of samples may reuse their memory.
    """
    inputs = {name: array.copy() for name, array in sample.inputs.items()}
    return replace(sample, inputs=inputs)


def loaded(preprocess: "Preprocess | Path | None") -> "Preprocess | None":
    """Preprocessing as given, or read from its file.  DataError."""
    if not isinstance(preprocess, Path):
        return preprocess
    from neon8.data.preprocess import Preprocess  # noqa: PLC0415 - loads Pillow

    return Preprocess.load(preprocess)


@takes("data")
def gather(
    data: Data,
    inputs: Inputs,
    *,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Iterable[Sample]:
    """Samples of `data` for a network with these inputs, one at a time.

    data: a path; an iterable of arrays, of dicts from input name to array, or of
    Sample; or an object whose get_next() gives such dicts and at the end None. An
    array may hold several samples along its first axis.  DataError.
    """
    limit, skip = settings.data.limit, settings.data.skip
    if isinstance(data, str | Path):
        samples = open_samples(data, inputs, settings=settings)
        samples.say_left()
        return samples
    if settings.data.preprocess is not None:
        raise DataError(
            "preprocessing is for files; arrays come as the network takes them"
        )
    counted = _counted(data, inputs, limit=limit, skip=skip)
    if counted is not None:  # who knows the number may not read beyond the last one
        _say_left("data", counted[1], batch_of(as_inputs(inputs)))
    return as_samples(data, inputs, limit=limit, skip=skip, say=counted is None)


@takes("data")
def open_samples(
    path: str | PathLike[str],
    inputs: Inputs,
    *,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Samples:
    """Open the samples in `path` for a network with these inputs.

    DataError names file and sample, at once or while iterating.
    """
    limit, skip = settings.data.limit, settings.data.skip
    preprocess = loaded(settings.data.preprocess)
    wanted = as_inputs(inputs)
    batch = batch_of(wanted)
    file = Path(path)
    source = open_source(file, wanted, preprocess)
    stop = source.count if limit is None else min(source.count, skip + limit)
    if stop - skip < batch:
        text = f"holds {source.count} samples"
        text += f", {skip} are skipped" if skip else ""
        text += f"; the network takes {batch} at once" if batch > 1 else ""
        raise DataError(f"{file}: {text}: nothing is left")
    count, left = divmod(stop - skip, batch)

    def make(first: int, last: int) -> Iterator[Sample]:
        rows = source.rows(skip + first * batch, skip + last * batch)
        while group := tuple(islice(rows, batch)):
            yield _sample(group, wanted, preprocess)

    return Samples(
        start=0,
        stop=count,
        make=make,
        left=left,
        batch=batch,
        where=str(file),
        apart=source.apart,
    )


def as_samples(
    data: Iterable[Any] | Any,
    inputs: Inputs,
    *,
    limit: int | None = None,
    skip: int = 0,
    say: bool = True,
) -> Iterator[Sample]:
    """Samples from Python objects; see gather().

    say: warn at the end if rows do not fill a batch.  DataError names the sample by its
    number.
    """
    wanted = as_inputs(inputs)
    batch = batch_of(wanted)
    stop = None if limit is None else skip + limit
    group: list[Row] = []
    taken = 0
    for row in islice(_rows(_items(data), wanted), skip, stop):
        if isinstance(row, Sample):
            yield row
            continue
        taken += 1
        group.append(row)
        if len(group) == batch:
            yield _sample(group, wanted, None)
            group = []
    if taken and taken < batch:
        text = f"{taken} samples; the network takes {batch} at once"
        raise DataError(f"data: {text}: nothing is left")
    if say:
        _say_left("data", len(group), batch)


def count_samples(
    data: Any, inputs: Inputs, *, limit: int | None = None, skip: int = 0
) -> int | None:
    """How many samples as_samples() will yield; None if unknown before reading."""
    counted = _counted(data, inputs, limit=limit, skip=skip)
    return None if counted is None else counted[0]


def _counted(
    data: Any, inputs: Inputs, *, limit: int | None, skip: int
) -> tuple[int, int] | None:
    """count_samples(), and how many rows are left over; None if unknown."""
    if not isinstance(data, list | tuple | np.ndarray):
        return None
    wanted = as_inputs(inputs)
    ready = sum(isinstance(item, Sample) for item in data)
    count = ready
    if ready < len(data):
        if ready:
            return None
        try:
            named = (_named("data", item, wanted) for item in data)
            count = sum(_count("data", *each, wanted)[0] for each in named)
        except DataError:  # will be raised with its place when it is taken in
            return None
    count = max(count - skip, 0)
    count = count if limit is None else min(count, limit)
    return (count, 0) if ready else divmod(count, batch_of(wanted))


def _say_left(where: str, left: int, batch: int) -> None:
    if left:
        text = "%s: left out %s at the end; the network takes %d at once"
        LOG.warning(text, where, counted(left, "sample"), batch)


def _items(data: Any) -> Iterator[Any]:
    """The items of the user's data, one at a time.  DataError."""
    get_next = getattr(data, "get_next", None)
    if callable(get_next):
        while (item := get_next()) is not None:
            yield item
        return
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        text = "expected a path, an iterable of arrays or of dicts, or an object with"
        raise DataError(f"data: {text} get_next(), not {type(data).__name__}")
    yield from data


def _rows(items: Iterator[Any], inputs: Mapping[str, Input]) -> Iterator[Row | Sample]:
    """The samples in the items, one at a time."""
    number = 0
    for item in items:
        if isinstance(item, Sample):
            yield item
            number += 1
            continue
        where = f"sample {number}"
        arrays, labels = _named(where, item, inputs)
        count, single = _count(where, arrays, labels, inputs)
        for index in range(count):
            yield Row(
                name=f"sample {number}",
                arrays={
                    name: array if name in single else array[index]
                    for name, array in arrays.items()
                },
                label=None if labels is None else int(labels[index]),
            )
            number += 1


def _named(
    where: str, item: Any, inputs: Mapping[str, Input]
) -> tuple[dict[str, Array], Array | None]:
    """The array of each input, and the classes if they are there.  DataError."""
    if isinstance(item, Mapping):
        remedy = "Give it that name"
        columns, label = choose(where, item, inputs, any_name=False, remedy=remedy)
    else:
        columns, label = {only(where, inputs, "an array without a name"): ""}, None
    try:
        arrays = {
            name: np.asarray(item[column] if column else item)
            for name, column in columns.items()
        }
        labels = None if label is None else np.asarray(item[label]).reshape(-1)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{where}: is no array") from error
    if labels is not None and (labels.dtype.kind not in "iu" or (labels < 0).any()):
        raise DataError(f"{where}: {label} holds no classes, integers from 0 on")
    return arrays, labels


def _count(
    where: str,
    arrays: Mapping[str, Array],
    labels: Array | None,
    inputs: Mapping[str, Input],
) -> tuple[int, set[str]]:
    """The number of samples, and which arrays have no axis of samples.

    DataError: they hold different numbers.
    """
    counts: dict[str, int] = {}
    single = set()
    for name, array in arrays.items():
        wanted = inputs[name]
        whole = wanted.rows is None or fits(array.shape, array.dtype, wanted)
        if not whole and array.ndim and fits(array.shape[1:], array.dtype, wanted):
            counts[name] = array.shape[0]
            continue
        single.add(name)  # what fits neither is refused when it is converted
        if wanted.rows is not None:
            counts[name] = 1
    if labels is not None:
        counts["the classes"] = len(labels)
    found = set(counts.values())
    if len(found) > 1:
        each = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise DataError(f"{where}: arrays of different numbers of samples: {each}")
    return (found or {1}).pop(), single


def _sample(
    rows: Sequence[Row], inputs: Mapping[str, Input], preprocess: "Preprocess | None"
) -> Sample:
    """Make one sample of as many rows as the network's batch.  DataError."""
    values: dict[str, list[Array]] = {name: [] for name in inputs}
    where = rows[0].name if len(rows) == 1 else f"{rows[0].name} to {rows[-1].name}"
    images: dict[str, list[Array]] = {}
    for row in rows:
        for name, wanted in inputs.items():
            try:
                value, pixels = to_input(row.arrays[name], wanted, preprocess)
            except DataError as error:
                raise DataError(f"{row.name}: input {name!r}: {error}") from error
            values[name].append(value)
            if pixels is not None:
                images.setdefault(name, []).append(pixels)
    for name, each in values.items():
        shapes = list(dict.fromkeys(value.shape for value in each))
        if len(shapes) > 1:
            text = f"input {name!r} is {shapes[0]} and {shapes[1]} in a batch"
            raise DataError(f"{where}: {text}; give samples of one size together")
    arrays = {
        name: _stacked(each).reshape(
            each[0].shape
            if inputs[name].rows is None
            else (inputs[name].shape[0], *each[0].shape)
        )
        for name, each in values.items()
    }
    try:
        check_equal(inputs, {name: array.shape for name, array in arrays.items()})
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return Sample(
        name=where,
        inputs=arrays,
        labels=tuple(row.label for row in rows if row.label is not None),
        pixels={
            name: each[0] if len(rows) == 1 else np.stack(each)
            for name, each in images.items()
        },
    )


def _stacked(arrays: list[Array]) -> Array:
    """Stack along a new first axis; a single array, perhaps large, is not copied."""
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)
