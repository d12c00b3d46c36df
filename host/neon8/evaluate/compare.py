# SPDX-License-Identifier: Apache-2.0
"""Find the method and scheme that suit a network: compile and run each on this PC.

The int8 library gives the same bytes on every processor, so the figures are those of
the device.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from neon8 import text
from neon8.arrays import Array
from neon8.calibrate.observation import Observation, check_model
from neon8.calibrate.run.reference import Reference
from neon8.calibrate.run.shaped import AtShapes, shapes_of
from neon8.calibrate.solve import solve_quietly, with_overrides
from neon8.compile.compiler import compile_model
from neon8.data.arrays import Arrays
from neon8.data.inputs import batch_of
from neon8.data.samples import Data, Sample
from neon8.errors import CompileError, DataError
from neon8.evaluate.evaluate import float_outputs, reading_of
from neon8.evaluate.labels import check_labels, hint
from neon8.evaluate.measure import Figures, Judge, Sheet, before_softmax, running
from neon8.evaluate.metrics import Evaluation, Tally, summary, tally_of
from neon8.evaluate.network import Network, judge_of, open_network
from neon8.evaluate.ranking import Gain, rank_figures
from neon8.evaluate.runner import FloatRunner
from neon8.evaluate.scores import Reading
from neon8.evaluate.tasks import Judged, TaskFigures
from neon8.evaluate.there import Check, checks
from neon8.graph.maker import maker
from neon8.ir.graph import Graph
from neon8.machines import NATIVE
from neon8.quant.reasons import guards_of
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import Model
from neon8.settings.reader import takes
from neon8.settings.stages import DEFAULTS, JudgeSettings, Settings, SolveSettings

AT_ONCE = 64
"""Samples that a target runs together."""
DEFAULT = ("mse", "auto")
"""The method and the scheme of `calibrate` without options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting.  result: None if it did not compile; failure says why.

    guards: the number of tensors for which one fired.  sqnr_db: what gains are of, of
    several outputs the mean of their ratios.  gain: over the baseline.  contender: none
    of the others is sure to be better.  losses: what it is sure to lose in.
    """

    method: str
    scheme: str
    guards: int
    result: Evaluation | None = None
    failure: str | None = None
    sqnr_db: float | None = None
    gain: Gain | None = None
    contender: bool = False
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(text.Showing):
    """rows: the best first, by SQNR, then agreement, then as asked for.

    reference: the FP32 network; its SQNR and agreement are those with itself.
    baseline: the default if it ran, else the first that did; None if none did.
    advised: the baseline, unless another is sure to be better.
    """

    reference: Evaluation
    rows: tuple[Row, ...]
    baseline: Row | None = None
    advised: Row | None = None

    def parts(self) -> list[text.Part]:
        """What to take, and how all settings did."""
        take = self.advised and f"{self.advised.method}, {self.advised.scheme}"
        rows = [
            (
                each.method,
                each.scheme,
                text.decimals(each.sqnr_db),
                text.decimals(None if each.gain is None else each.gain.db),
                text.decimals(None if each.result is None else each.result.agreement),
            )
            for each in self.rows
        ]
        header = ("method", "scheme", "SQNR dB", "gain dB", "agreement %")
        pairs = [("n", self.reference.n), ("take", take or text.UNKNOWN)]
        return [text.Fields(pairs), text.Table("settings", rows, header)]


@dataclass(slots=True)
class _Measured:
    """The sums of one program, and what is compared of each run.  table: its own."""

    table: ScaleTable
    tally: Tally
    sheet: Sheet
    judged: Judged


@takes("network", "data", "target", "compare", "judge")
def compare(
    observation: Observation,
    model: str | Path,
    data: Data,
    *,
    watch: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Comparison:
    """Solve, compile and run every method with every scheme on the same samples.

    observation: what was observed of this model.  data: see neon8.data.samples.gather.
    watch: wraps the samples, as tqdm does.  All runs here; another target must give the
    same bytes, or that is a ModelError.  CalibrationError, DataError, GraphError,
    TableError, ModelError.  CompileError: of a network with Opaque nodes; what the
    compiler refuses because of its scales is a row without a result.
    """
    tried = settings.compare
    rules = with_overrides(SolveSettings(overrides=tried.overrides))
    network = open_network(
        model, shapes=settings.network.shapes, usual=observation.usual_shapes
    )
    check_model(observation, network.graph.digest, model)
    solved = before_softmax(network.graph)
    tables = {
        (method, scheme): solve_quietly(
            observation, solved, replace(rules, method=method, scheme=scheme)
        )
        for scheme in tried.schemes
        for method in tried.methods
    }
    network = network.runnable(*tables.values())
    graph = before_softmax(network.graph)
    compiled = [_compiled(graph, *names, table) for names, table in tables.items()]
    measured = {
        program: _Measured(table, Tally(), Sheet(), Judged())
        for (_, program), table in zip(compiled, tables.values(), strict=True)
        if program is not None
    }
    samples = network.gather(data, settings)
    with ExitStack() as stack:
        check = None
        if settings.target.target != NATIVE:
            check = stack.enter_context(checks(settings.target))
        exact, read = _measure(network, watch(samples), measured, settings.judge, check)

    def figures(tally: Tally, tasks: tuple[TaskFigures, ...] = ()) -> Evaluation:
        return summary(
            tally,
            names=graph.outputs,
            reading=read,
            hint=hint(tally, 0),
            tasks=tasks,
        )

    rows, found = [], []
    for row, program in compiled:
        if program is None:
            rows.append(row)
            continue
        own = measured[program]
        found.append(own.sheet.figures())
        rows.append(
            replace(
                row,
                result=figures(own.tally, own.judged.figures()),
                sqnr_db=found[-1].sqnr_db,
            )
        )
    return _ranked(figures(exact), rows, found)


def _ranked(
    reference: Evaluation, rows: list[Row], figures: list[Figures]
) -> Comparison:
    """With what the samples can tell.  figures: of the rows that have a result."""
    ran = [each for each, row in enumerate(rows) if row.result is not None]
    baseline, advised = None, None
    if ran:
        names = [(rows[each].method, rows[each].scheme) for each in ran]
        first = names.index(DEFAULT) if DEFAULT in names else 0
        ranking = rank_figures(figures, first)
        for place, each in enumerate(ran):
            rows[each] = replace(
                rows[each],
                gain=ranking.gains[place],
                contender=place in ranking.contenders,
                losses=ranking.losses[place],
            )
        baseline, advised = rows[ran[first]], rows[ran[ranking.advised]]
    return Comparison(
        reference=reference,
        rows=tuple(sorted(rows, key=_order)),
        baseline=baseline,
        advised=advised,
    )


def _compiled(
    graph: Graph, method: str, scheme: str, table: ScaleTable
) -> tuple[Row, bytes | None]:
    """A row without a result yet, and its .n8 file, None if it did not compile."""
    fired = sum(bool(guards_of(entry.reasons)) for entry in table.tensors.values())
    row = Row(method=method, scheme=scheme, guards=fired)
    try:
        return row, compile_model(graph, table)
    except CompileError as error:
        return replace(row, failure=str(error)), None


class _Here:
    """The networks that samples of some shape run through.

    float: gives what the graph without a final Softmax gives.  runs: of each program.
    judge: None until the first sample has run.  waiting: samples that a target has not
    run yet.
    """

    def __init__(self, network: Network, programs: Mapping[bytes, _Measured]) -> None:
        file, self.network = network.file, network
        graph = before_softmax(network.graph)
        reference = Reference(file, graph.outputs)

        def run(arrays: Arrays) -> Arrays:
            results = reference.run(arrays)
            return {name: results[name] for name in graph.outputs}

        self.float = FloatRunner(reference.inputs, run, partial(maker, file))
        self.judge: Judge | None = None
        self._stack, self.runs = ExitStack(), {}
        self._files: list[bytes] = []
        self._name = str(file.path)
        self.waiting: list[Arrays] = []
        for program, one in programs.items():
            content = compile_model(graph, one.table)
            self._files.append(content)
            model = self._stack.enter_context(Model.from_bytes(content))
            self.runs[program] = self._stack.enter_context(running(model))

    def settle(self, check: Check) -> None:
        """Compare the samples that wait with what a target gives.  ModelError."""
        for content in self._files:
            check(content, self.waiting, self._name)
        self.waiting.clear()


def _measure(
    network: Network,
    samples: Iterable[Sample],
    programs: dict[bytes, _Measured],
    asked: JudgeSettings,
    check: Check | None = None,
) -> tuple[Tally, Reading | None]:
    """The sums of the reference; those of the programs are added to `programs`.

    check: compares what a target gives, on some samples at a time.

    All share one pass over the data.  Equal programs, from settings that make no
    difference to this network, run once.
    """
    exact, rows, name = Tally(), 1, str(network.file.path)
    read: Reading | None = None
    last: _Here | None = None
    opened = AtShapes(lambda shapes: _Here(network.at_shapes(shapes), programs))

    def tally(sample: Sample, outputs: list[Array], wanted: list[Array]) -> Tally:
        return tally_of(
            outputs, rows=rows, labels=sample.labels, reference=wanted, reading=read
        )

    for sample in samples:
        here = opened.at(shapes_of(sample.inputs), sample.name)
        rows = batch_of(here.float.inputs)
        given = float_outputs(name, here.float, sample)
        wanted = list(given.values())
        check_labels(sample, wanted[0], rows)
        read = read or reading_of(here.float, given, rows)
        if here.judge is None:
            labelled = bool(sample.labels)
            here.judge = judge_of(here.network, asked, given, labelled=labelled)
            for one in programs.values():
                one.judged.begin(here.judge.tasks, sample.name)
        exact += tally(sample, wanted, wanted)
        for program, run in here.runs.items():
            results = run(sample.inputs)
            outputs = [results[each] for each in given]
            one = programs[program]
            one.tally += tally(sample, outputs, wanted)
            one.sheet.judge = here.judge
            one.sheet.add(given, results, sample.labels)
            one.judged.add(one.sheet.values[-1])
        if check is not None:
            here.waiting.append(sample.inputs)
            last = here
            if network.mixed or len(here.waiting) == AT_ONCE:
                here.settle(check)
    if check is not None and last is not None:
        last.settle(check)
    if exact.n == 0:
        raise DataError("no samples to compare on")
    return exact, read


def _order(row: Row) -> tuple[float, float]:
    """Sort key: the best first; equal ones stay as they were."""
    if row.result is None:
        return math.inf, 0.0
    sqnr_db = -math.inf if row.sqnr_db is None else row.sqnr_db
    return -sqnr_db, -(row.result.agreement or 0.0)
