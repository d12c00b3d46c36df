# SPDX-License-Identifier: Apache-2.0
"""Which method and scheme suit a network: each is compiled and run on this PC.

The int8 library gives the same bytes on every processor, so the figures are those of
the device.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from neon8.calibrate.observation import Observation
from neon8.calibrate.overrides import Overrides
from neon8.calibrate.solving import solve_quietly
from neon8.compile import compile_model
from neon8.data import Sample
from neon8.errors import CalibrationError, CompileError, DataError
from neon8.evaluate import (
    Evaluation,
    Tally,
    check_label,
    count,
    real_outputs,
    summary,
)
from neon8.graph.graph import Graph
from neon8.graph.importer import load
from neon8.preprocess import Preprocess
from neon8.runner import open_real
from neon8.runtime import Model
from neon8.samples import Data, gather

METHODS = (
    "mse",
    "kl",
    "kl2017",
    "minmax",
    "percentile",
    "percentile:99.99:all",
    "aciq",
    "legacy",
    "eq",
    "auto",
)
SCHEMES = ("auto", "symmetric", "symmetric_with_uint8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting.  result: None if it did not compile; failure says why.

    guards: for how many tensors one fired.
    """

    method: str
    scheme: str
    guards: int
    result: Evaluation | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """rows: the best first, by SQNR, then agreement, then as asked for.

    reference: the FP32 network; its SQNR and agreement are those with itself.
    """

    reference: Evaluation
    rows: tuple[Row, ...]


def compare(
    observation: Observation,
    model: str | Path,
    data: Data,
    *,
    methods: Sequence[str] = METHODS,
    schemes: Sequence[str] = SCHEMES,
    overrides: Overrides | None = None,
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
    watch: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
) -> Comparison:
    """Solve, compile and run every method with every scheme on the same samples.

    observation: of this very model.  data: see neon8.samples.gather.  watch: wraps the
    samples, as tqdm does. CalibrationError, DataError, GraphError, TableError,
    ModelError; what only the compiler refuses is a row without a result.
    """
    graph = load(model)
    if observation.model_digest != graph.digest:
        raise CalibrationError(
            f"{model}: the calibration file is of another model, "
            f"{observation.model_name} ({observation.model_digest[:12]}..., not "
            f"{graph.digest[:12]}...); observe this one"
        )
    plans = [
        _plan(observation, graph, method, scheme, overrides)
        for scheme in schemes
        for method in methods
    ]
    programs = {program: Tally() for _, program in plans if program is not None}
    reference = _run(model, data, programs, preprocess, limit, skip, watch)
    rows = [
        row if program is None else replace(row, result=summary(programs[program]))
        for row, program in plans
    ]
    return Comparison(reference=reference, rows=tuple(sorted(rows, key=_place)))


def _plan(
    observation: Observation,
    graph: Graph,
    method: str,
    scheme: str,
    overrides: Overrides | None,
) -> tuple[Row, bytes | None]:
    """A row without a result yet, and the .n8 file to run for it."""
    table = solve_quietly(
        observation, method=method, scheme=scheme, overrides=overrides
    )
    fired = sum(bool(tensor.reasons) for tensor in table.tensors.values())
    row = Row(method=method, scheme=scheme, guards=fired)
    try:
        return row, compile_model(graph, table)
    except CompileError as error:
        return replace(row, failure=str(error)), None


def _run(
    model: str | Path,
    data: Data,
    programs: dict[bytes, Tally],
    preprocess: Preprocess | None,
    limit: int | None,
    skip: int,
    watch: Callable[[Iterable[Sample]], Iterable[Sample]],
) -> Evaluation:
    """Counts into `programs`, which share one pass over the data; of the FP32 network.

    Equal files, from settings that do not differ for this network, run once.
    """
    exact = Tally()
    with ExitStack() as stack:
        reference = stack.enter_context(open_real(Path(model)))
        sessions = {}
        for program in programs:
            opened = stack.enter_context(Model.from_bytes(program, source=str(model)))
            sessions[program] = stack.enter_context(opened.session())
        samples = gather(
            data, reference.shapes, preprocess=preprocess, limit=limit, skip=skip
        )
        for sample in watch(samples):
            wanted = real_outputs(str(model), reference, sample)
            check_label(sample, wanted[0])
            exact = count(exact, wanted, label=sample.label, reference=wanted)
            for program, session in sessions.items():
                results = list(session.run(sample.inputs).values())
                programs[program] = count(
                    programs[program], results, label=sample.label, reference=wanted
                )
    if exact.n == 0:
        raise DataError("no samples to compare on")
    return summary(exact)


def _place(row: Row) -> tuple[float, float]:
    """Sorts the best first; equal ones stay as they were."""
    if row.result is None:
        return math.inf, 0.0
    return -(row.result.sqnr_db or -math.inf), -(row.result.agreement or 0.0)
