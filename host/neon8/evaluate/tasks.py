# SPDX-License-Identifier: Apache-2.0
"""What a network is for, and how well it does that in int8: a number for each sample.

SQNR tells how far the values are off, not what that does to what they are for. Where
the outputs show what they are for, or the user says so, a task compares that instead.
"""

import importlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neon8.arrays import Array, DoubleArray
from neon8.data.inputs import Input, batch_of
from neon8.errors import DataError
from neon8.evaluate.confidence import mean_error, student
from neon8.evaluate.detection import find, matched, one_row
from neon8.evaluate.heads import Heads, Option, are_distributions, parse, recognise
from neon8.evaluate.metrics import top1
from neon8.evaluate.scores import NOT_ONE_OF_MANY, SUM_TOLERANCE, is_vector
from neon8.settings.stages import JudgeSettings

IMAGE_RANK = 4
Outputs = Mapping[str, Array]
Labels = Sequence[int]
Function = Callable[[Outputs, Outputs, Labels], float]
"""From the reference's outputs, the int8 outputs and the labels of one sample."""

TOP1, BOXES, KEYPOINTS, MASKS = "top1", "boxes", "keypoints", "masks"
EMBEDDING, TEXT, SQNR = "embedding", "text", "sqnr"

EMBEDDINGS = (128, 192, 256, 384, 512, 768, 1024)
"""Sizes that embeddings have, and classifiers have not."""
LEAST_MAP = 8
"""Rows and columns of a map that is taken for one of keypoints."""
LEAST_STEPS, LEAST_LETTERS = 8, 11
"""Steps and letters of a line of text, the blank among them."""
PEAK, HEIGHT = 0.15, (0.2, 1.5)
"""Maps of keypoints: the most that their rms is of their maximum, and the maximum."""


@dataclass(frozen=True, slots=True)
class Task:
    """kind: a key of KINDS, or the name of the user's function.  output: "" for all.

    function: for one sample, larger is better.
    """

    kind: str
    output: str
    function: Function

    @property
    def name(self) -> str:
        """'masks of 'y'', for people."""
        return f"{self.kind} of {self.output!r}" if self.output else self.kind

    def values(
        self, wanted: Outputs, got: Outputs, labels: Labels = (), rows: int = 1
    ) -> list[float]:
        """The number for each sample of a run.  DataError."""
        return [
            self.function(
                one_row(wanted, row, rows), one_row(got, row, rows), labels[row:][:1]
            )
            for row in range(rows)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is known beside the outputs.

    metric, detection: as the user gives them.  operator: name -> the ONNX operator that
    computes an output, "" if unknown.  image: rows and columns of the only image that
    the network takes.  rows: samples of a run.  labelled: samples have labels.
    """

    metric: str | Function = ""
    detection: str | Option = ""
    operator: Callable[[str], str] = lambda _: ""
    image: tuple[int, int] | None = None
    rows: int = 1
    labelled: bool = False

    @classmethod
    def of(
        cls,
        asked: JudgeSettings,
        inputs: Mapping[str, Input],
        operator: Callable[[str], str],
        *,
        labelled: bool = False,
    ) -> "Setup":
        """For a network with these inputs."""
        images = [each for each in inputs.values() if len(each.shape) == IMAGE_RANK]
        return cls(
            metric=asked.metric,
            detection=asked.detection,
            operator=operator,
            image=images[0].image_size if len(images) == 1 else None,
            rows=batch_of(inputs),
            labelled=labelled,
        )

    @property
    def option(self) -> Option:
        """How the outputs of a detector are read.  DataError."""
        if isinstance(self.detection, Option):
            return self.detection
        return parse(self.detection) if self.detection else Option()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """What a task says: mean over the samples, and its 95 % range, None for one.

    low, high: without knowledge of what the task's bounds are.
    """

    name: str
    mean: float
    low: float | None
    high: float | None


@dataclass(slots=True, eq=False)
class Judged:
    """Sums of what tasks say of the samples so far."""

    tasks: tuple[Task, ...] = ()
    n: int = 0
    sums: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)

    def begin(self, tasks: tuple[Task, ...], sample: str) -> None:
        """Tell the tasks of samples of one shape.

        DataError: the outputs of other shapes were read in another way.
        """
        names = [[task.name for task in each] for each in (self.tasks, tasks)]
        if self.n and names[0] != names[1]:
            before, now = (", ".join(each) or "nothing" for each in names)
            text = f"outputs of this size show {now}, those of others {before}"
            raise DataError(f"{sample}: {text}; say by --metric what is compared")
        self.tasks = tasks

    def add(self, values: Sequence[Sequence[float]]) -> None:
        """One run: of each task the values of its samples."""
        if not self.n:
            self.sums, self.squares = [0.0] * len(values), [0.0] * len(values)
        self.n += len(values[0]) if values else 0
        for at, each in enumerate(values):
            self.sums[at] += sum(each)
            self.squares[at] += sum(value * value for value in each)

    def figures(self) -> tuple[TaskFigures, ...]:
        """The figures of each task."""
        found = []
        for task, total, squares in zip(
            self.tasks, self.sums, self.squares, strict=True
        ):
            mean, error = total / self.n, mean_error(total, squares, self.n)
            half = None if error is None else student(0.95, self.n - 1) * error
            low, high = (None, None) if half is None else (mean - half, mean + half)
            found.append(TaskFigures(name=task.name, mean=mean, low=low, high=high))
        return tuple(found)


def tasks_of(outputs: Outputs, setup: Setup) -> tuple[Task, ...]:
    """The tasks of a network whose first run gives these outputs in float.

    DataError: the metric cannot be had, or does not fit the outputs.
    """
    own = users_task(setup)
    if own is not None:
        return (own,)
    example = one_row(outputs, 0, setup.rows)
    metric = str(setup.metric)
    kind, _, asked = metric.partition("=")
    if asked and asked not in outputs:
        names = ", ".join(map(repr, outputs))
        raise DataError(f"metric {metric}: no output {asked!r}; there are {names}")
    if kind == SQNR:
        return ()
    heads = None
    if kind in ("", BOXES):
        option = setup.option
        if kind and asked and not (option.boxes or option.output):
            option = Option(output=asked, threshold=option.threshold)
        heads = recognise(example, option, setup.image)
        if heads is not None:
            return (Task(BOXES, "", partial(_boxes, heads)),)
        if kind:
            text = "the outputs are not those of a known detector; see --detection"
            raise DataError(f"metric {metric}: {text}")
    if kind:
        fit = [n for n in ([asked] if asked else outputs) if _fits(kind, example[n])]
        if not fit:
            shapes = ", ".join(f"{n!r} {list(a.shape)}" for n, a in outputs.items())
            raise DataError(f"metric {metric}: no output is of that kind: {shapes}")
        return tuple(Task(kind, name, _of_output(kind, name)) for name in fit)
    found = {name: _kind(name, each, example, setup) for name, each in example.items()}
    return tuple(Task(k, name, _of_output(k, name)) for name, k in found.items() if k)


def users_task(setup: Setup) -> Task | None:
    """The user's function, if the metric is one.  DataError: it can be nothing.

    So much can be told without outputs, before long work.
    """
    metric, _ = setup.metric, setup.option
    if callable(metric):
        name = getattr(metric, "__name__", "metric")
        return Task(name, "", partial(_called, name, metric))
    if ":" in metric:
        return Task(metric, "", partial(_called, metric, _loaded(metric)))
    kind, given, output = metric.partition("=")
    if given and not (kind and output):
        raise DataError(f"metric {metric!r} is not of the form KIND=OUTPUT")
    if kind and kind not in KINDS:
        text = f"metric {kind!r} is none of {', '.join(KINDS)} and no module:function"
        raise DataError(text)
    return None


def _of_output(kind: str, name: str) -> Function:
    if kind == TOP1:
        return lambda wanted, got, labels: _top1(wanted[name], got[name], labels)
    compare = COMPARED[kind]
    return lambda wanted, got, _: compare(_double(wanted[name]), _double(got[name]))


def _double(array: Array) -> DoubleArray:
    return np.asarray(array, np.float64)


def _kind(name: str, array: Array, outputs: Outputs, setup: Setup) -> str:
    """What an output is for, if its shape and values show it; "" if they do not."""
    operator, values = setup.operator(name), _double(array)
    first = name == next(iter(outputs))
    if operator in NOT_ONE_OF_MANY and is_vector(array):
        return ""
    if is_vector(array):
        shares = _distributions(values.reshape(1, -1))
        length = float(np.linalg.norm(values))
        unit = abs(length - 1) <= SUM_TOLERANCE
        if values.size in EMBEDDINGS and not shares and not (setup.labelled and first):
            return EMBEDDING
        if unit and values.size >= EMBEDDINGS[0] and not shares:
            return EMBEDDING
        return TOP1 if first or shares else ""
    if _fits(TEXT, array) and _distributions(_lines(values)):
        return TEXT
    if not _fits(MASKS, array):
        return ""
    channels, size = array.shape[1], array.shape[2:]
    if channels > 1 and _distributions(np.moveaxis(values[0], 0, -1)):
        return MASKS
    if size == setup.image and channels > 1 and channels not in (3, 4):
        return MASKS
    if size == setup.image and channels == 1 and operator in NOT_ONE_OF_MANY:
        return MASKS
    return KEYPOINTS if _fits(KEYPOINTS, array) and _peaks(values[0]) else ""


def _fits(kind: str, array: Array) -> bool:
    """True if an output of this shape can be compared so."""
    shape = array.shape
    if kind in (TOP1, EMBEDDING):
        return is_vector(array)
    if kind == TEXT:
        dims = [size for size in shape if size != 1]
        fits = len(dims) == 2 and dims[0] >= LEAST_STEPS and dims[1] >= LEAST_LETTERS
        return fits and len(shape) == 3
    return len(shape) == 4 and shape[0] == 1 and min(shape[2:]) >= LEAST_MAP


def _distributions(table: DoubleArray) -> bool:
    """True for shares that add up to 1 along the last axis, or their logarithms."""
    logs = table.max(initial=0) <= SUM_TOLERANCE
    return are_distributions(np.exp(table) if logs else table)


def _peaks(maps: DoubleArray) -> bool:
    """True for maps with one high place each, as those of keypoints."""
    if len(maps) < 4:
        return False
    flat = maps.reshape(len(maps), -1)
    heights = flat.max(axis=1)
    if not HEIGHT[0] <= np.median(heights) <= HEIGHT[1] or heights.max() > HEIGHT[1]:
        return False
    shares = np.sqrt(np.square(flat).mean(axis=1)) / np.maximum(heights, 1e-9)
    return bool(np.median(shares) <= PEAK)


def _lines(values: DoubleArray) -> DoubleArray:
    """(steps, letters) of an output of text, whose axes are in one order or another."""
    return values.reshape([size for size in values.shape if size != 1])


def _top1(wanted: Array, got: Array, labels: Labels) -> float:
    """1 if the label, or without one the reference's class, is the largest."""
    return float(top1(got) == (labels[0] if len(labels) else top1(wanted)))


def _boxes(heads: Heads, wanted: Outputs, got: Outputs, _labels: Labels) -> float:
    """F1 of the boxes, those of the reference taken for true; 1 if there are none."""
    theirs, ours = find(heads, wanted), find(heads, got)
    both = len(theirs.classes) + len(ours.classes)
    return 2 * len(matched(heads, theirs, ours)) / both if both else 1.0


def _keypoints(wanted: DoubleArray, got: DoubleArray) -> float:
    """The mean distance of the highest places, in cells of the map, less than 0."""
    rows, columns = wanted.shape[2:]
    places = [
        np.unravel_index(
            each.reshape(-1, rows * columns).argmax(axis=1), (rows, columns)
        )
        for each in (wanted, got)
    ]
    (y, x), (v, u) = places
    return -float(np.hypot(y - v, x - u).mean())


def _masks(wanted: DoubleArray, got: DoubleArray) -> float:
    """Mean IoU of the classes that either network sees; of one map that from 0.5 on."""
    if wanted.shape[1] == 1:
        theirs, ours = (np.rint(np.clip(a, 0, 1)).astype(int) for a in (wanted, got))
        classes = [1] if theirs.any() or ours.any() else [0]
    else:
        theirs, ours = wanted.argmax(axis=1), got.argmax(axis=1)
        classes = np.union1d(theirs, ours).tolist()
    shares = [
        np.count_nonzero((theirs == c) & (ours == c))
        / np.count_nonzero((theirs == c) | (ours == c))
        for c in classes
    ]
    return float(np.mean(shares))


def _embedding(wanted: DoubleArray, got: DoubleArray) -> float:
    """The cosine of both vectors."""
    lengths = float(np.linalg.norm(wanted) * np.linalg.norm(got))
    return float(wanted.ravel() @ got.ravel()) / lengths if lengths else 0.0


def _text(wanted: DoubleArray, got: DoubleArray) -> float:
    """1 less the edit distance as a share of the longer text.

    Repeated letters are one, and the blank, the letter that is read most, is none.
    """
    theirs, ours = (_lines(each).argmax(axis=1) for each in (wanted, got))
    blank = int(np.bincount(theirs).argmax())
    one, other = (
        [
            c
            for c, last in zip(each, [-1, *each[:-1]], strict=True)
            if c not in (last, blank)
        ]
        for each in (theirs.tolist(), ours.tolist())
    )
    longest = max(len(one), len(other))
    return 1 - edit_distance(one, other) / longest if longest else 1.0


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """How many letters to insert, delete or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row[0] = row[0], i
        for j, mine in enumerate(other, 1):
            less = min(row[j], row[j - 1]) + 1
            above, row[j] = row[j], min(less, above + (letter != mine))
    return row[-1]


COMPARED: Mapping[str, Callable[[DoubleArray, DoubleArray], float]] = {
    KEYPOINTS: _keypoints,
    MASKS: _masks,
    EMBEDDING: _embedding,
    TEXT: _text,
}
KINDS = (TOP1, BOXES, *COMPARED, SQNR)


def _loaded(metric: str) -> Function:
    """The function that 'module:function' names.  DataError."""
    module, _, name = metric.partition(":")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever a module of the user raises
        cause = f"{type(error).__name__}: {error}"
        raise DataError(
            f"metric {metric}: {module!r} cannot be imported: {cause}"
        ) from error
    finally:
        sys.path.remove(folder)
    function = getattr(found, name, None)
    if not callable(function):
        raise DataError(f"metric {metric}: {module!r} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def _called(
    name: str, function: Function, wanted: Outputs, got: Outputs, labels: Labels
) -> float:
    """The number that the user's function gives.  DataError.

    The arrays are its own: others read these outputs, too.
    """
    theirs, ours = ({n: a.copy() for n, a in each.items()} for each in (wanted, got))
    try:
        value = float(function(theirs, ours, tuple(labels)))
    except Exception as error:  # whatever a function of the user raises
        cause = f"{type(error).__name__}: {error}"
        raise DataError(f"metric {name}: {cause}") from error
    if not math.isfinite(value):
        raise DataError(f"metric {name}: it returned {value}, which is no number")
    return value
