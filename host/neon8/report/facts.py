# SPDX-License-Identifier: Apache-2.0
"""What a report says.  gather.py collects it; the writers only write it.

Whatever evaluate, diagnose, inspect and solve have values for is such a value here.
"""

from dataclasses import dataclass, field
from typing import Any

from neon8.evaluate.metrics import Evaluation
from neon8.evaluate.ranking import Gain
from neon8.profile.profile import Layer
from neon8.quant.scale_table import LayerScale, TensorScale
from neon8.refine.diagnosis import Diagnosis
from neon8.refine.losses import TensorLoss
from neon8.refine.remedies import Remedy
from neon8.refine.split import Split
from neon8.report.figures import Figure
from neon8.runtime import StepInfo
from neon8.text import Fields, Part, Showing, Table, finite

FORMAT, VERSION = "neon8 report", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """How long a run takes on a board that is not here, in milliseconds: an estimate.

    low, high: its range.  layers: in order of execution, each with its time.
    """

    board: str
    title: str
    core: str
    ms: float
    low: float
    high: float
    command: str
    layers: tuple[Layer, ...]

    def of(self, layer: str) -> tuple[Layer, float, float] | None:
        """The longest step of a layer; of all together the time, and its share."""
        mine = [(each.ms or 0.0, each) for each in self.layers if each.name == layer]
        if not mine:
            return None
        ms = sum(time for time, _ in mine)
        return max(mine, key=lambda each: each[0])[1], ms, ms / self.ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The range that a method of calibration would choose."""

    method: str
    threshold: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What calibration saw of a tensor: counts of equal bins from `low` to `high`."""

    low: float
    high: float
    counts: tuple[int, ...]
    zeros: int
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """A tensor with a scale.  loss: None where it is not run by itself.

    reasons: what its codes mean.  values: None without a calibration file.
    """

    name: str
    scale: TensorScale
    reasons: tuple[str, ...]
    loss: TensorLoss | None = None
    values: Values | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFacts:
    """The weights of a layer, in float, by output channel.  scale: its entry."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    scale: LayerScale
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """A node of the network, in order of execution.

    inputs: tensors that it reads, but constants.  tensors: those that it makes and that
    have scales.  steps: of the .n8 file that are called so; within: the one that makes
    its output where it has none.  precision: int8, int16, float32, or "" where only
    integers or parts of another step come out.  loss: of its output, the tensor's that
    has one.  remedies: for it or its tensors.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int, ...]
    precision: str
    steps: tuple[StepInfo, ...]
    within: str
    tensors: tuple[TensorFacts, ...]
    weights: WeightFacts | None
    split: Split | None
    remedies: tuple[Remedy, ...]

    @property
    def loss(self) -> TensorLoss | None:
        """The loss of the first tensor that has one."""
        found = (each.loss for each in self.tensors if each.loss is not None)
        return next(found, None)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one run."""
        return sum(step.macs for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A class and its score."""

    index: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An object that was found; its corners are shares of the picture's sides."""

    index: int
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFacts:
    """A sample that loses much.  wanted: of the FP32 network; got: of the int8 one.

    tasks: by name what they say.  scores: the highest, empty unless it is a classifier.
    picture: a PNG or JPEG file, None if the network does not take one.
    """

    name: str
    sqnr_db: float
    tasks: dict[str, float]
    label: int | None
    wanted: tuple[Score, ...] = ()
    got: tuple[Score, ...] = ()
    wanted_boxes: tuple[Box, ...] = ()
    got_boxes: tuple[Box, ...] = ()
    picture: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Samples that are class `wanted` to the FP32 network, and `got` to the int8 one.

    lost, gained: for how many `wanted` is the label, and `got`.
    """

    wanted: int
    got: int
    samples: int
    lost: int
    gained: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An entry of two tables that is not the same, as text."""

    name: str
    what: str
    this: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Another table of the network, compiled and run on the same samples.

    size: of its .n8 file, in bytes.  gain: SQNR of this table over it.  gains: of each
    output in dB, and of each task.  differences: of the entries.
    """

    table: str
    size: int
    evaluation: Evaluation
    gain: Gain
    gains: dict[str, Gain]
    differences: tuple[Difference, ...]

    @property
    def worse(self) -> tuple[str, ...]:
        """What this table is sure to lose in against the other one."""
        return tuple(name for name, gain in self.gains.items() if gain.loses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A step of a search for more bits.

    cost: relative to the plain table.  size: of the .n8 file, in bytes.  ms: estimated,
    None where the search was not for a board.
    """

    cost: float
    size: int
    ms: float | None
    sqnr_db: float | None
    changed: tuple[str, ...]
    to: str
    best: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Showing):
    """Everything.  model, table, compiled: the files.  outputs: of the network.

    where: what runs the kernels.  diagnose: the command that shows the diagnosis.
    names: of the classes, if they are known.
    """

    model: str
    table: str
    compiled: str
    data: str
    version: str
    where: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    figures: tuple[Figure, ...]
    evaluation: Evaluation
    diagnosis: Diagnosis
    diagnose: str
    layers: tuple[LayerFacts, ...]
    taken: tuple[TensorFacts, ...]
    samples: tuple[SampleFacts, ...]
    confusions: tuple[Confusion, ...]
    compared: tuple[Compared, ...]
    curve: tuple[Point, ...]
    predictions: tuple[Prediction, ...] = ()
    names: tuple[str, ...] = ()

    def class_of(self, index: int | None) -> str:
        """The number of a class, with its name if it has one."""
        if index is None:
            return ""
        name = self.names[index] if 0 <= index < len(self.names) else ""
        return f"{index} {name}".rstrip()

    def parts(self) -> list[Part]:
        """The files, and what is known in figures."""
        names = ("model", "table", "compiled", "data")
        rows = [(each.name, f"{each.value:g}", each.unit) for each in self.figures]
        return [
            Fields([(name, getattr(self, name)) for name in names]),
            Table("figures", rows, ("name", "value", "unit")),
        ]

    def figure(self, name: str) -> Figure | None:
        """The figure of this name, None if this network has none."""
        return next((each for each in self.figures if each.name == name), None)


def as_json(report: Report) -> dict[str, Any]:
    """One object; null for what is not known or finite; without pictures."""
    return {"format": FORMAT, "format_version": VERSION, **finite(report)}
