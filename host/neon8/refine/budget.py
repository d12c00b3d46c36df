# SPDX-License-Identifier: Apache-2.0
"""Calibration up to an accuracy or a cost: search() on samples that were observed."""

import json
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from neon8.calibrate.calibrate import Refinement, Settled
from neon8.data.arrays import Arrays
from neon8.data.few import Kept
from neon8.errors import CalibrationError
from neon8.evaluate.compare import before_softmax
from neon8.files import write_atomic
from neon8.graph.importer import load_compilable
from neon8.graph.onnx_file import Shapes, open_onnx
from neon8.graph.quantized import is_quantized
from neon8.quant.scale_table import ScaleTable
from neon8.refine.precision import Found, Goal, search
from neon8.refine.sensitivity import Watch, nobody
from neon8.text import columns, decimals

RANKING, HELD = 20, 40
"""Samples by which groups are ranked, and others by which a network is measured."""
LEAST = 8
"""With fewer than three times as many, all samples serve both ends."""
MOST_DECIBELS = 200
LEAST_COST = 1.0


def more_bits(
    model: str | Path,
    goal: Goal,
    *,
    shapes: Shapes | None = None,
    curve: Path | None = None,
    watch: Watch = nobody,
    tell: Callable[[Found], None] = lambda _found: None,
) -> Refinement:
    """More bits for the tensors that need them, see search().

    shapes: of inputs whose dimensions the file leaves open.  curve: the JSON file to
    write.  tell: told what was found.  CalibrationError: a goal that no network has, a
    network that was quantized elsewhere.  GraphError; CompileError: the network cannot
    run in int8 at all.
    """
    check(goal)
    file = open_onnx(model, shapes=shapes)
    if is_quantized(file):
        text = "was quantized elsewhere, so its precision cannot be chosen"
        raise CalibrationError(f"{model}: {text}; give the float network")
    graph = load_compilable(file)

    def run(settled: Settled) -> ScaleTable:
        ranking, held = divided(settled.samples)
        found = search(
            file,
            before_softmax(graph),
            settled.table,
            goal,
            ranking=ranking,
            held=held,
            watch=watch,
        )
        if curve is not None:
            content = {
                "format": "neon8 precision",
                "version": 1,
                "model": {"name": graph.name, "digest": graph.digest},
                **as_json(found, goal),
            }
            text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            write_atomic(curve, text.encode())
        tell(found)
        return found.table

    return Refinement(samples=RANKING + HELD, run=run)


def check(goal: Goal) -> None:
    """CalibrationError for a goal that cannot be meant."""
    target, most = goal.sqnr_db, goal.cost
    if target is not None and not 0 < target <= MOST_DECIBELS:
        text = f"target_sqnr {target:g} is not above 0 and up to {MOST_DECIBELS} dB"
        raise CalibrationError(text)
    if most is not None and not LEAST_COST <= most < math.inf:
        text = f"max_cost {most:g} is not {LEAST_COST:g} or more: the int8 network is 1"
        raise CalibrationError(text)


def divided(samples: Sequence[Kept]) -> tuple[list[Arrays], list[Arrays]]:
    """Those that rank, and those that measure: others, unless there are too few."""
    inputs = [sample.inputs for sample in samples]
    first = min(RANKING, len(inputs) // 3)
    if first < LEAST:
        return inputs, inputs
    return inputs[:first], inputs[first:][-HELD:]


def missed(found: Found, goal: Goal) -> str:
    """Why the goal is out of reach, in one line; "" if it is not."""
    if found.reached or goal.sqnr_db is None:
        return ""
    text = f"{goal.sqnr_db:g} dB are out of reach: {found.best.sqnr_db:.1f} dB is the "
    text += "best"
    if goal.cost is not None:
        text += f" at a cost of up to {goal.cost:g}"
    if found.ceiling_db < goal.sqnr_db:
        text += f"; rounded weights alone leave {found.ceiling_db:.1f} dB"
    return text


def warn_missed(found: Found, goal: Goal) -> None:
    """Says in the log of "neon8" why a goal is out of reach."""
    if text := missed(found, goal):
        logging.getLogger("neon8").warning("%s", text)


def as_json(found: Found, goal: Goal) -> dict[str, object]:
    """What --curve writes; None for infinity, which JSON lacks."""

    def finite(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    return {
        "target_sqnr": goal.sqnr_db,
        "max_cost": goal.cost,
        "reached": found.reached,
        "ceiling_db": finite(found.ceiling_db),
        "steps": [
            {
                "group": step.group or None,
                "tensors": list(found.tensors.get(step.group, ())),
                "to": step.to or None,
                "sqnr_db": finite(step.sqnr_db),
                "cost": round(step.cost, 4),
                "chosen": dict(step.chosen),
                "best": step is found.best,
            }
            for step in found.curve
        ],
    }


def as_text(found: Found) -> str:
    """The curve as a table, the step that was taken with a star, and a summary."""
    rows = [
        [
            "*" if step is found.best else "",
            decimals(step.sqnr_db),
            f"{step.cost:.3f}",
            step.to,
            ", ".join(found.tensors.get(step.group, ())),
        ]
        for step in found.curve
    ]
    lines = columns(rows, header=["", "SQNR dB", "cost", "to", "tensors"])
    return "\n".join(lines)
