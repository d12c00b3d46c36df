# SPDX-License-Identifier: Apache-2.0
"""The named figures of a report, and conditions on them.  Imports nothing heavy."""

import math
import operator
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neon8.errors import DataError, SettingsError
from neon8.settings.fields import meant

if TYPE_CHECKING:
    from neon8.evaluate.confidence import Interval
    from neon8.evaluate.metrics import Evaluation
    from neon8.report.facts import Compared, Prediction
    from neon8.runtime import StepInfo

MEANINGS: Mapping[str, tuple[str, str, str]] = {
    "loss": (
        "loss",
        "%",
        (
            "what the network loses of what it is for: points of top-1 if there "
            "are labels; else 100 % less top-1 agreement, F1 of boxes, IoU of masks, "
            "cosine of embeddings or text that agrees, of the output that loses most"
        ),
    ),
    "top1": ("top-1", "%", "samples whose label has the highest score"),
    "reference_top1": ("top-1 of FP32", "%", "the same of the FP32 network"),
    "agreement": (
        *("top-1 agreement", "%"),
        "samples with the same highest score as in FP32",
    ),
    "f1": ("F1 of boxes", "%", "F1 of the boxes, those of FP32 taken for true"),
    "sqnr": (
        "SQNR",
        "dB",
        "SQNR of the output that loses most, of scores what differs",
    ),
    "size": ("size of the .n8 file", "bytes", "the .n8 file"),
    "memory": ("memory", "bytes", "to run on one thread, weights included"),
    "macs": ("multiplications", "MACs", "multiplications of a run"),
    "ms": (
        *("time of a run", "ms"),
        "a run on the slowest of --boards, by one thread, estimated",
    ),
    "floats": ("float32 results", "steps", "whose result is float32"),
    "guards": ("guards", "kinds", "of guards that fired while scales were chosen"),
    "gain": (
        *("gain over the other table", "dB"),
        "SQNR over the table of --compare, the least of several",
    ),
    "worse": (
        *("sure to be worse", "things"),
        "outputs or tasks sure to be worse than with that table",
    ),
}
"""Name -> title for people, unit, and what the figure is."""

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
SHARES = ("top1", "boxes", "masks", "embedding", "text")
"""Kinds of tasks that say 1 of a network that loses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that is claimed, and the command that shows it.

    low, high: its 95 % range, None where there is none.  unit: "%", "dB", "bytes" ...
    """

    name: str
    value: float
    unit: str
    meaning: str
    command: str
    low: float | None = None
    high: float | None = None

    @property
    def title(self) -> str:
        """Its name for people."""
        return MEANINGS[self.name][0]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a figure must not be."""

    name: str
    operator: str
    number: float

    def __str__(self) -> str:
        """'loss > 0.5'."""
        return f"{self.name} {self.operator} {self.number:g}"

    def holds(self, figures: Sequence[Figure]) -> bool:
        """True if the figure is so.  DataError: it is not known of this network."""
        for figure in figures:
            if figure.name == self.name:
                return OPERATORS[self.operator](figure.value, self.number)
        known = ", ".join(figure.name for figure in figures)
        text = f"there is no figure {self.name!r} of this network and these samples"
        raise DataError(f"--fail-if {str(self)!r}: {text}; there are {known}")


def condition(text: str) -> Condition:
    """Read NAME OPERATOR NUMBER.  SettingsError."""
    found = re.fullmatch(r"\s*([a-z0-9_]+)\s*([<>=!]+)\s*(\S+)\s*", text)
    if found is None or found[2] not in OPERATORS:
        known = " ".join(OPERATORS)
        raise SettingsError(f"{text!r} is not of the form NAME {known} NUMBER")
    name, sign, number = found.groups()
    if name not in MEANINGS:
        raise SettingsError(f"{name!r} is unknown; {meant(name, MEANINGS)}")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise SettingsError(f"{text!r}: {number!r} is no number")
    return Condition(name, sign, value)


def describe() -> str:
    """The list of all figures, for help."""
    return "\n".join(
        textwrap.fill(
            f"{meaning} ({unit})" if unit in ("%", "dB", "bytes") else meaning,
            width=87,
            initial_indent=f"  {name:<14} ",
            subsequent_indent=17 * " ",
            break_on_hyphens=False,
        )
        for name, (_, unit, meaning) in MEANINGS.items()
    )


def of_evaluation(found: "Evaluation", command: str) -> list[Figure]:
    """What samples say."""
    made = []

    def add(name: str, value: float | None, ends: "Interval | None" = None) -> None:
        if value is not None:
            low, high = (None, None) if ends is None else (ends.low, ends.high)
            made.append(_figure(name, value, command, low, high))

    lost = _loss(found, command)
    if lost is not None:
        made.append(lost)
    add("top1", found.top1)
    add("reference_top1", found.reference_top1)
    add("agreement", found.agreement, found.agreement_range)
    add("f1", None if found.detection is None else found.detection.f1)
    add("sqnr", min((each.judged_db for each in found.outputs), default=None))
    return made


def _loss(found: "Evaluation", command: str) -> Figure | None:
    """In percent, with its range, and of what it is."""
    if found.change is not None:
        ends = found.change_range
        # + 0.0: no loss is not -0.
        low, high = (None, None) if ends is None else (0.0 - ends.high, 0.0 - ends.low)
        what = "points of top-1 that int8 loses"
        return _figure("loss", 0.0 - found.change, command, low, high, what)
    shares = [each for each in found.tasks if each.name.split(" ")[0] in SHARES]
    if not shares:
        return None
    worst = min(shares, key=lambda each: each.mean)
    low, high = (
        None if end is None else 100 * (1 - end) for end in (worst.high, worst.low)
    )
    text = f"100 % less {worst.name}: what int8 misses of what FP32 says"
    return _figure("loss", 100 * (1 - worst.mean), command, low, high, text)


def of_model(
    size: int, memory: int, steps: Sequence["StepInfo"], command: str
) -> list[Figure]:
    """What the .n8 file takes."""
    floats = sum(step.dtype == "float32" for step in steps)
    macs = sum(step.macs for step in steps)
    known = {"size": size, "memory": memory, "macs": macs, "floats": floats}
    return [_figure(name, value, command) for name, value in known.items()]


def of_table(guards: int, command: str) -> list[Figure]:
    """What the scale table says."""
    return [_figure("guards", guards, command)]


def of_predictions(found: Sequence["Prediction"]) -> list[Figure]:
    """What the slowest board takes."""
    if not found:
        return []
    worst = max(found, key=lambda each: each.ms)
    text = f"a run on {worst.title}, one thread, estimated"
    return [_figure("ms", worst.ms, worst.command, worst.low, worst.high, text)]


def of_compared(others: Sequence["Compared"], command: str) -> list[Figure]:
    """What other tables give."""
    if not others:
        return []
    least = min((each.gain for each in others), key=lambda each: each.db)
    worse = {name for each in others for name in each.worse}
    return [
        _figure("gain", least.db, command, least.least, least.db + least.range),
        _figure("worse", len(worse), command),
    ]


def _figure(
    name: str,
    value: float,
    command: str,
    low: float | None = None,
    high: float | None = None,
    meaning: str = "",
) -> Figure:
    _, unit, usual = MEANINGS[name]
    return Figure(
        name=name,
        value=value,
        unit=unit,
        meaning=meaning or usual,
        command=command,
        low=low,
        high=high,
    )
