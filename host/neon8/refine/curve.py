# SPDX-License-Identifier: Apache-2.0
"""What a search for more bits found, step by step; as text and as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neon8.evaluate.measure import Figures
from neon8.quant.scale_table import ScaleTable
from neon8.refine.candidates import Candidate, Chosen
from neon8.settings.stages import RefineSettings
from neon8.text import columns, decimals

FORMAT, VERSION = "neon8 precision", 3
"""What --curve writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A point of the curve: what has more bits, and what that gives.

    changed, to: what, and to INT16, FLOAT, WEIGHTS16 or INT8; () and "" at the start.
    figures: measured with the compiled network.  cost: relative to the plain table.
    losses: in what this is sure to be worse than the plain table.  predicted_db: SQNR
    by simulation, on the samples that rank; NaN for what was taken back.
    """

    changed: Candidate
    to: str
    chosen: Chosen
    figures: Figures
    cost: float
    losses: tuple[str, ...] = ()
    predicted_db: float = math.nan

    @property
    def sqnr_db(self) -> float:
        """SQNR; of several outputs the mean of their ratios counts."""
        return self.figures.sqnr_db

    @property
    def worst_db(self) -> float:
        """SQNR of the output that loses most."""
        return self.figures.worst[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of the search.

    table: of the best step.  curve: all steps, from the plain table on.  tensors: scale
    group -> its rounded tensors, or weights_of() a layer -> that.  ceiling_db: with all
    of them in float32 and weights of 8 bits, by simulation.  reached: True if the goal
    was.  fastest_ms: what it would take with all changes of faster.py.
    """

    table: ScaleTable
    curve: tuple[Step, ...]
    best: Step
    tensors: Mapping[str, tuple[str, ...]]
    ceiling_db: float
    reached: bool
    fastest_ms: float | None = None

    def names(self, step: Step) -> list[str]:
        """The tensors that a step changes, or the weights of a layer."""
        return [name for group in step.changed for name in self.tensors[group]]


def missed(found: Found, goal: RefineSettings) -> str:
    """Why the goal is out of reach, in one line; "" if it is not."""
    best, ms = found.best, found.best.figures.ms
    if goal.max_ms is not None and ms is not None and ms > goal.max_ms:
        text = f"{goal.max_ms:g} ms are out of reach: int8 takes {ms:.3g}"
        if found.fastest_ms is not None and found.fastest_ms < ms:
            text += f", and {found.fastest_ms:.3g} whatever it loses"
        return f"{text}; take a smaller network"
    if found.reached or goal.target_sqnr is None:
        return ""
    text = f"{goal.target_sqnr:g} dB are out of reach: "
    text += f"{best.worst_db:.1f} dB is the best"
    if len(best.figures.outputs) > 1:
        text += f", of output {best.figures.worst[0]!r},"
    if goal.max_cost is not None:
        text += f" at a cost of up to {goal.max_cost:g}"
    if goal.max_ms is not None:
        text += f" in up to {goal.max_ms:g} ms"
    if found.ceiling_db < goal.target_sqnr:
        text += f"; weights of 8 bits alone leave {found.ceiling_db:.1f} dB"
    return text


def as_json(found: Found, goal: RefineSettings) -> dict[str, object]:
    """What --curve writes; None for infinity, which JSON lacks."""

    def finite(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    return {
        "target_sqnr": goal.target_sqnr,
        "max_cost": goal.max_cost,
        "max_ms": goal.max_ms,
        "reached": found.reached,
        "ceiling_db": finite(found.ceiling_db),
        "steps": [
            {
                "groups": list(step.changed),
                "tensors": found.names(step),
                "to": step.to or None,
                "sqnr_db": finite(step.sqnr_db),
                "worst_db": finite(step.worst_db),
                "predicted_db": finite(step.predicted_db),
                "tasks": step.figures.task_means,
                "losses": list(step.losses),
                "cost": round(step.cost, 4),
                "size": step.figures.size,
                "ms": step.figures.ms,
                "chosen": dict(step.chosen),
                "best": step is found.best,
            }
            for step in found.curve
        ],
    }


def as_text(found: Found) -> str:
    """The curve as a table; a star marks the step that was taken."""
    tasks = found.best.figures.task_names
    rows = [
        [
            "*" if step is found.best else "",
            decimals(step.worst_db),
            *(f"{value:.4f}" for value in step.figures.task_means.values()),
            f"{step.cost:.3f}",
            *([] if step.figures.ms is None else [f"{step.figures.ms:.3f}"]),
            step.to,
            ", ".join(found.names(step)),
        ]
        for step in found.curve
    ]
    several = len(found.best.figures.outputs) > 1
    db = "worst dB" if several else "SQNR dB"
    ms = [] if found.best.figures.ms is None else ["ms"]
    header = ["", db, *tasks, "cost", *ms, "to", "tensors"]
    return "\n".join(with_losses(rows, header, [step.losses for step in found.curve]))


def with_losses(
    rows: Sequence[Sequence[str]],
    header: Sequence[str],
    losses: Sequence[Sequence[str]],
) -> list[str]:
    """Lines of a table, with what each row is sure to lose in, if any is."""
    if any(losses):
        header = [*header, "sure to lose in"]
        pairs = zip(rows, losses, strict=True)
        rows = [[*row, ", ".join(lost)] for row, lost in pairs]
    return columns(rows, header=header)
