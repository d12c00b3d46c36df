# SPDX-License-Identifier: Apache-2.0
"""From an ONNX file and samples to an observation or a scale table, and their files.

The one way for the command line and for Python, whose functions in neon8.api hand their
arguments on to these.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neon8.calibrate import calib_file
from neon8.calibrate.observation import Observation
from neon8.calibrate.overrides import Overrides
from neon8.calibrate.precision import NOTHING as AS_IT_IS
from neon8.calibrate.precision import Precision
from neon8.calibrate.run import convergence
from neon8.calibrate.run.run import Options, Outcome, forget, observe_data, resumable
from neon8.calibrate.solve import solve
from neon8.calibrate.thresholds import choose as thresholds
from neon8.data.few import Kept
from neon8.data.samples import Data
from neon8.errors import CalibrationError
from neon8.files import write_atomic
from neon8.graph.importer import load
from neon8.quant import table_json
from neon8.quant.scale_table import NARROW, ScaleTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """convergence: the report as a JSON value, None if none was asked for.

    batch: how many samples the network takes at once, which count as one.
    """

    observation: Observation
    batch: int
    convergence: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrated:
    """convergence: as in Observed."""

    table: ScaleTable
    convergence: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settled:
    """A table and what it was made from.  samples: some of them, by digest."""

    table: ScaleTable
    observation: Observation
    samples: tuple[Kept, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refinement:
    """What betters a table by running networks.  samples: how many it asks for."""

    samples: int
    run: Callable[[Settled], ScaleTable]


_DEFAULT = Options()


def observe(
    model: str | Path,
    data: Data,
    *,
    options: Options = _DEFAULT,
) -> Observed:
    """Run the FP32 network in `model` on the samples in `data`.

    data: see run.observe_data().  The file options.output is written, if there is one,
    and its journal deleted.  GraphError, DataError, CalibrationError, SetupError.
    """
    outcome = observe_data(model, data, options)
    found = _report(outcome, options)
    if options.output is not None:
        calib_file.save(outcome.observation, options.output)
        forget(options.output)
    return Observed(
        observation=outcome.observation, batch=outcome.batch, convergence=found
    )


def calibrate(
    model: str | Path,
    data: Data,
    *,
    method: str = "mse",
    scheme: str = "auto",
    bits: int = 8,
    overrides: Overrides | None = None,
    precision: Precision = AS_IT_IS,
    fast: float | None = None,
    plain: bool = False,
    refinements: Sequence[Refinement] = (),
    options: Options = _DEFAULT,
) -> Calibrated:
    """observe() and then solve(); the file options.output is the scale table.

    precision: see solve().  fast: with what int8 Winograd needs, where a layer loses
    less than so many dB; see fast.py.  plain: without what recipe/ does for accuracy.
    refinements: what betters the table afterwards, one after the other.
    TableError: an override fits no tensor, or contradicts.
    """
    thresholds.check(method, scheme, bits)
    if fast is not None and bits > NARROW:
        raise CalibrationError(f"fast needs activations of 7 or 8 bits, not {bits}")
    keep = max((each.samples for each in refinements), default=0)
    outcome = observe_data(model, data, replace(options, keep=keep))
    table = solve(
        outcome.observation,
        load(model, shapes=options.shapes),
        method=method,
        scheme=scheme,
        bits=bits,
        overrides=overrides,
        precision=precision,
        fast=fast,
        plain=plain,
    )
    count = len(outcome.observation.samples)
    with resumable(options.output, count):
        for each in refinements:
            settled = Settled(
                table=table, observation=outcome.observation, samples=outcome.kept
            )
            table = each.run(settled)
    found = _report(outcome, options)
    if options.output is not None:
        table_json.save(table, options.output)
        forget(options.output)
    return Calibrated(table=table, convergence=found)


def _report(outcome: Outcome, options: Options) -> dict[str, Any] | None:
    """The convergence report, if thresholds were measured; also to options.report."""
    if not outcome.points:
        return None
    value = convergence.report(
        outcome.observation,
        outcome.points,
        outcome.names,
        tolerance=options.until_stable or convergence.TOLERANCE,
    )
    if options.report is not None:
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        write_atomic(options.report, text.encode())
    return value
