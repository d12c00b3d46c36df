# SPDX-License-Identifier: Apache-2.0
"""From an ONNX file and samples to tables and files: what both faces call.

calibrate() and observe() serve the command line, which prints what came of them; the
functions after them are the public ones, which take the same settings as keywords.
Compiling, evaluating and diagnosing are functions of their packages. Each stage is
imported when it runs, so that saving a file does not load onnxruntime.
"""

import json
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neon8.calibrate import calib_file
from neon8.calibrate import observation as observations
from neon8.calibrate.observation import Observation
from neon8.calibrate.solve import solve, with_overrides
from neon8.data.samples import Data
from neon8.errors import LOG, SettingsError
from neon8.files import write_atomic
from neon8.ir.graph import Graph
from neon8.progress import Count, Stages, nobody
from neon8.quant import table_json
from neon8.quant.scale_table import ScaleTable
from neon8.settings.reader import takes
from neon8.settings.shapes import is_open, settled
from neon8.settings.stages import DEFAULTS, Settings

if TYPE_CHECKING:
    from neon8.calibrate.run.run import Outcome
    from neon8.graph.onnx_file import Shapes
    from neon8.refine import curve, faster, thorough


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
    """A table, and what came of refining it.  convergence: as in Observed."""

    table: ScaleTable
    convergence: dict[str, Any] | None
    sped: "faster.Found | None" = None
    chosen: "thorough.Found | None" = None
    searched: "curve.Found | None" = None


def observe(
    model: str | Path,
    data: Data,
    settings: Settings = DEFAULTS,
    *,
    output: Path | None = None,
    progress: Stages = nobody,
) -> Observed:
    """Run the FP32 network in `model` on the samples in `data`.

    output: the .calib file to write; its journal is deleted then.  GraphError,
    DataError, CalibrationError, SetupError.
    """
    from neon8.calibrate.run.run import Task, forget, observe_data

    task = Task(output=output, progress=partial(progress, "observe"))
    outcome = observe_data(model, data, settings, task)
    found = _report(outcome, settings)
    if output is not None:
        calib_file.save(outcome.observation, output)
        forget(output)
    return Observed(
        observation=outcome.observation, batch=outcome.batch, convergence=found
    )


def calibrate(
    model: str | Path,
    data: Data,
    settings: Settings = DEFAULTS,
    *,
    output: Path | None = None,
    progress: Stages = nobody,
) -> Calibrated:
    """Observe, solve and refine.

    output: the scale table to write.  As observe(), and TableError: an override fits no
    tensor, or contradicts.  CompileError: what is to be refined cannot run in int8.
    """
    from neon8.calibrate.run.run import Task, forget, observe_data, resumable
    from neon8.evaluate.network import open_network
    from neon8.evaluate.tasks import Setup, users_task
    from neon8.graph.importer import load
    from neon8.profile.profile import Times, dot_cycles, pricer, timer
    from neon8.refine import budget, faster, thorough

    wanted, shapes = settings.refine, settings.network.shapes
    if wanted.thorough and settings.solve.plain:
        text = "--thorough and --plain contradict each other"
        raise SettingsError(f"{text}; leave one of them out")
    network, keep, price = None, 0, None
    times: Times = dot_cycles
    if wanted.max_ms is not None:
        price, times = pricer(settings.profile), timer(settings.profile)
    searches = wanted.searches or settings.solve.fast
    if wanted.thorough or searches:
        if not is_open(shapes):
            network = open_network(model, shapes=shapes)
        keep = max(thorough.SAMPLES * wanted.thorough, budget.SAMPLES * searches)
        asked = settings.judge
        users_task(Setup(metric=asked.metric, detection=asked.detection))
    rules = with_overrides(settings.solve)  # before hours of work
    task = Task(output=output, progress=partial(progress, "observe"), keep=keep)
    outcome = observe_data(model, data, settings, task)
    sped, chosen, searched = None, None, None
    # With nothing kept the journal need not be whole, and little is lost with it.
    with resumable(output if keep else None, len(outcome.observation.samples)):
        seen = outcome.observation.usual_shapes
        graph = load(model, shapes=shapes and settled(shapes, seen))
        table = solve(outcome.observation, graph, replace(rules, fast=False))
        if keep and network is None:
            network = open_network(model, shapes=shapes, usual=seen)
        kept = outcome.kept
        if network is not None:
            network = network.runnable(table)
            kept = network.entered(kept)
        if network is not None and (rules.fast or price is not None):
            possible = faster.possible_changes(
                graph, table, outcome.observation, rules, deep=price is not None
            )
            sped = faster.made_faster(
                network,
                table,
                possible,
                kept,
                wanted,
                times=times,
                sparing=rules.fast,
                judge=settings.judge,
                watch=partial(progress, "faster"),
            )
            table = sped.table
        if network is not None and wanted.thorough:
            watch = partial(progress, "choose")
            chosen = thorough.best_of(
                network, table, kept, judge=settings.judge, watch=watch
            )
            table = thorough.noted(chosen, table)
        if network is not None and wanted.searches:
            watch = partial(progress, "search")
            searched = budget.more_bits(
                network,
                table,
                kept,
                wanted,
                judge=settings.judge,
                price=price,
                watch=watch,
            )
            table = searched.table
            if sped is not None and price is not None:
                searched = replace(searched, fastest_ms=sped.fastest)
    found = _report(outcome, settings)
    if output is not None:
        table_json.save(table, output)
        forget(output)
    return Calibrated(
        table=table, convergence=found, sped=sped, chosen=chosen, searched=searched
    )


def _report(outcome: "Outcome", settings: Settings) -> dict[str, Any] | None:
    """The convergence report, if thresholds were measured; also to its file."""
    from neon8.calibrate.run import convergence

    if not outcome.points:
        return None
    value = convergence.report(
        outcome.observation,
        outcome.points,
        outcome.names,
        tolerance=settings.observe.until_stable or convergence.TOLERANCE,
    )
    if settings.observe.report is not None:
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        write_atomic(settings.observe.report, text.encode())
    return value


@takes("network", "data", "observe", "solve", "refine", "judge", "profile")
def calibrate_model(
    model: str | Path | Any,
    data: Data,
    *,
    onnx: str | Path | None = None,
    output: str | Path | None = None,
    progress: Count | None = None,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> ScaleTable:
    """Run the ONNX file in FP32 on the samples and choose a scale for every tensor.

    model: the file, or a network of PyTorch or Keras, which is written to `onnx` first,
    for compile_model(); its data are batches, see neon8.frameworks.exported().
    data, progress: see observe_model().  output: the scale table to write; a run that
    ends early continues from the journal beside it.  A target_sqnr that is out of reach
    is a warning of the logger "neon8".  GraphError, DataError, CalibrationError,
    TableError, CompileError, SetupError, SettingsError.
    """
    from neon8 import frameworks
    from neon8.refine import curve

    if frameworks.framework_of(model) is None:
        if onnx is not None:
            raise SettingsError(f"{model} is an ONNX file already; leave out onnx")
    elif onnx is None:
        raise SettingsError(
            "give onnx=, the file that the network is written to; compile it from there"
        )
    else:
        data, model = frameworks.exported(model, data, Path(onnx)), onnx
    done = calibrate(
        model, data, settings, output=_path(output), progress=_of_samples(progress)
    )
    found = done.searched
    if found is not None and (why := curve.missed(found, settings.refine)):
        LOG.warning("%s", why)
    return done.table


@takes("network", "data", "observe")
def observe_model(
    model: str | Path,
    data: Data,
    *,
    output: str | Path | None = None,
    progress: Count | None = None,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Observation:
    """Run the ONNX file in FP32 on the samples and collect exact statistics.

    data: a path; an iterable of arrays or of dicts from input to array; or a data
    reader as onnxruntime takes it, whose get_next() gives such dicts and then None. An
    array may hold several samples.  output: the .calib file to write; beside it stands
    a journal from which the next run continues if this one ends early.  progress:
    called with the numbers of samples done and of all, None if that is unknown.
    GraphError, DataError, CalibrationError, SetupError, SettingsError.
    """
    done = observe(
        model, data, settings, output=_path(output), progress=_of_samples(progress)
    )
    return done.observation


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _of_samples(progress: Count | None) -> Stages:
    """Tells of the samples alone."""

    def told(stage: str, done: int, total: int | None) -> None:
        if progress is not None and stage == "observe":
            progress(done, total)

    return told


def merge_observations(first: Observation, *others: Observation) -> Observation:
    """Give what observing all their samples at once would have given.

    CalibrationError: they share a sample, or are of other models or settings.
    """
    return reduce(observations.merge, others, first)


@takes("network", "solve")
def solve_observation(
    observation: Observation,
    model: str | Path | Graph | None = None,
    *,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> ScaleTable:
    """Choose a scale for every tensor; needs no data.

    model: the network that was observed, for equalization, bias correction and the
    steps of weights, which are left out without it.  CalibrationError, TableError,
    GraphError, SettingsError; a guard that fired is logged to "neon8.guards".
    """
    if model is not None and not isinstance(model, Graph):
        from neon8.graph.importer import load

        seen, given = observation.usual_shapes, settings.network.shapes
        model = load(Path(model), shapes=settled(given or {}, seen) if given else seen)
    return solve(observation, model, settings.solve)


def load_observation(path: str | Path) -> Observation:
    """Read a .calib file.  CalibrationError."""
    return calib_file.load(Path(path))


def save_observation(observation: Observation, path: str | Path) -> None:
    """Write a .calib file, whole or not at all."""
    calib_file.save(observation, Path(path))


def load_graph(model: str | Path, *, shapes: "Shapes | None" = None) -> Graph:
    """Read the network of an ONNX file, normalised.  GraphError.

    shapes: of inputs whose dimensions the file leaves open, by name.
    """
    from neon8.graph.importer import load

    return load(Path(model), shapes=shapes)


def load_table(path: str | Path) -> ScaleTable:
    """Read a scale table.  TableError names the entry that is wrong."""
    return table_json.load(Path(path))


def save_table(table: ScaleTable, path: str | Path) -> None:
    """Write the table as JSON, whole or not at all."""
    table_json.save(table, path)


def save_model(model: bytes, path: str | Path) -> None:
    """Write an .n8 file, whole or not at all."""
    write_atomic(Path(path), model)
