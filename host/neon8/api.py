# SPDX-License-Identifier: Apache-2.0
"""Everything that the command line does, as functions on paths.

Calibration at once, or in steps that can be repeated; compilation; tables of other
tools; what is in a file.
"""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from neon8.calibrate import calib_file, calibrate
from neon8.calibrate import observation as observations
from neon8.calibrate.observation import Observation
from neon8.calibrate.overrides import Overrides
from neon8.calibrate.overrides import load as load_overrides
from neon8.calibrate.run.run import Options, Progress, no_progress
from neon8.calibrate.solve import solve
from neon8.data.preprocess import Preprocess
from neon8.data.samples import Data
from neon8.files import write_atomic
from neon8.formats.conversion import Converted, convert
from neon8.graph.importer import load
from neon8.graph.onnx_file import Shapes
from neon8.inspection.describe import describe
from neon8.ir.graph import Graph
from neon8.quant import table_json
from neon8.quant.scale_table import ScaleTable
from neon8.refine.budget import more_bits, warn_missed
from neon8.refine.precision import Goal
from neon8.refine.thorough import thorough as choose


def calibrate_model(
    model: str | Path,
    data: Data,
    *,
    method: str = "mse",
    scheme: str = "auto",
    bits: int = 8,
    overrides: str | Path | Overrides | None = None,
    precision: Mapping[str, str] | None = None,
    preprocess: Preprocess | None = None,
    shapes: Shapes | None = None,
    limit: int | None = None,
    skip: int = 0,
    ignore_nonfinite: bool = False,
    workers: int = 1,
    engine: str | None = None,
    output: str | Path | None = None,
    report: str | Path | None = None,
    until_stable: float | None = None,
    fast: bool = False,
    max_sqnr_loss: float = 6.0,
    plain: bool = False,
    thorough: bool = False,
    target_sqnr: float | None = None,
    max_cost: float | None = None,
    curve: str | Path | None = None,
    progress: Progress = no_progress,
) -> ScaleTable:
    """Run the ONNX file in FP32 on the samples and choose a scale for every tensor.

    method, scheme, bits, overrides, precision, plain: see solve_observation().  fast:
    with what int8 Winograd needs, where a layer loses less than max_sqnr_loss dB.
    thorough: with levels of weights and biases chosen on samples, where others say that
    it helps.  target_sqnr, max_cost: more bits where they gain most, until the output
    has so many dB, or as many as there are for this cost, of which the int8 network is
    1; a target that is out of reach is a warning of the logger "neon8".  curve: the
    JSON file to write on what each step gave.  The rest is as for observe_model(),
    except that `output` is the scale table.  GraphError, DataError, CalibrationError,
    TableError, CompileError, SetupError.
    """
    options = Options(
        preprocess=preprocess,
        shapes=shapes,
        limit=limit,
        skip=skip,
        ignore_nonfinite=ignore_nonfinite,
        workers=workers,
        engine=engine,
        output=_path(output),
        report=_path(report),
        until_stable=until_stable,
        progress=progress,
    )
    goal = Goal(sqnr_db=target_sqnr, cost=max_cost)
    refinements = [choose(model, shapes=shapes)] if thorough else []
    if goal != Goal():
        more = more_bits(
            model,
            goal,
            shapes=shapes,
            curve=_path(curve),
            tell=lambda found: warn_missed(found, goal),
        )
        refinements.append(more)
    return calibrate.calibrate(
        model,
        data,
        method=method,
        scheme=scheme,
        bits=bits,
        overrides=_overrides(overrides),
        precision=precision or {},
        fast=max_sqnr_loss if fast else None,
        plain=plain,
        refinements=refinements,
        options=options,
    ).table


def observe_model(
    model: str | Path,
    data: Data,
    *,
    preprocess: Preprocess | None = None,
    shapes: Shapes | None = None,
    limit: int | None = None,
    skip: int = 0,
    shard: tuple[int, int] | None = None,
    ignore_nonfinite: bool = False,
    workers: int = 1,
    engine: str | None = None,
    output: str | Path | None = None,
    report: str | Path | None = None,
    until_stable: float | None = None,
    progress: Progress = no_progress,
) -> Observation:
    """Run the ONNX file in FP32 on the samples and collect exact statistics.

    data: a path; an iterable of arrays or of dicts from input to array; or a data
    reader as onnxruntime takes it, whose get_next() gives such dicts and then None. An
    array may hold several samples.  preprocess: for images in files.  limit, skip: at
    most `limit` samples, after the first `skip`.  shard: (i, n), only the i-th of n
    pieces, from 1.  ignore_nonfinite: count NaN and infinite values inside the network
    instead of stopping.  workers: processes.
    engine: "dask://HOST:PORT".  output: the .calib file to write; beside it stands a
    journal from which the next run continues if this one ends early.  report: the JSON
    file to write on how the thresholds settled.  until_stable: stop when no threshold
    moved by more than this fraction, like 0.01, while the samples doubled.  progress:
    called with the numbers of samples done and of all, None if that is unknown.
    GraphError, DataError, CalibrationError, SetupError.
    """
    options = Options(
        preprocess=preprocess,
        shapes=shapes,
        limit=limit,
        skip=skip,
        shard=shard,
        ignore_nonfinite=ignore_nonfinite,
        workers=workers,
        engine=engine,
        output=_path(output),
        report=_path(report),
        until_stable=until_stable,
        progress=progress,
    )
    return calibrate.observe(model, data, options=options).observation


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _overrides(overrides: str | Path | Overrides | None) -> Overrides | None:
    if isinstance(overrides, str | Path):
        return load_overrides(overrides)
    return overrides


def merge_observations(first: Observation, *others: Observation) -> Observation:
    """What observing all their samples at once would have given.

    CalibrationError: they share a sample, or are of other models or settings.
    """
    return reduce(observations.merge, others, first)


def solve_observation(
    observation: Observation,
    model: str | Path | Graph | None = None,
    *,
    method: str = "mse",
    scheme: str = "auto",
    bits: int = 8,
    overrides: str | Path | Overrides | None = None,
    precision: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
    plain: bool = False,
) -> ScaleTable:
    """Choose a scale for every tensor; needs no data.

    model: the network that was observed, for equalization, bias correction and the
    steps of weights, which need its weights and are left out without it, or if `plain`.
    overrides: the user's own ranges, or the JSON file with them.  precision: of tensors
    by their names, or of the outputs of layers by theirs, "int16" or "float".  shapes:
    of inputs whose dimensions an ONNX file leaves open.  CalibrationError, TableError,
    GraphError; a guard that fired is logged to "neon8.guards".
    """
    if model is None or isinstance(model, Graph):
        graph = model
    else:
        graph = load(Path(model), shapes=shapes)
    return solve(
        observation,
        graph,
        plain=plain,
        method=method,
        scheme=scheme,
        bits=bits,
        overrides=_overrides(overrides),
        precision=precision or {},
    )


def load_observation(path: str | Path) -> Observation:
    """An observation from its .calib file.  CalibrationError."""
    return calib_file.load(Path(path))


def save_observation(observation: Observation, path: str | Path) -> None:
    """Write a .calib file, whole or not at all."""
    calib_file.save(observation, Path(path))


def load_graph(model: str | Path, *, shapes: Shapes | None = None) -> Graph:
    """The network of an ONNX file, normalised.  GraphError: it cannot be read.

    shapes: of inputs whose dimensions the file leaves open, by name.
    """
    return load(Path(model), shapes=shapes)


def load_table(path: str | Path) -> ScaleTable:
    """A scale table from its JSON file.  TableError names the entry that is wrong."""
    return table_json.load(Path(path))


def save_table(table: ScaleTable, path: str | Path) -> None:
    """Write the table as JSON, whole or not at all."""
    table_json.save(table, path)


def save_model(model: bytes, path: str | Path) -> None:
    """Write an .n8 file, whole or not at all."""
    write_atomic(Path(path), model)


def convert_table(
    path: str | Path,
    to: str,
    *,
    source_format: str | None = None,
    names: Mapping[str, str] | None = None,
    model: str | Path | None = None,
    shapes: Shapes | None = None,
    onto: str | Path | None = None,
    ncnn_param: str | Path | None = None,
    trt_version: str | None = None,
) -> Converted:
    """A calibration file of any tool in the format of another; see docs/formats.md.

    The rest is as for `neon8 convert`.  TableError, GraphError, CompileError.
    """
    return convert(
        path,
        to,
        source_format=source_format,
        names=names,
        model=model,
        shapes=shapes,
        onto=onto,
        ncnn_param=ncnn_param,
        trt_version=trt_version,
    )


def inspect_file(path: str | Path, *, shapes: Shapes | None = None) -> str:
    """What `neon8 inspect` prints about a file.  shapes: see observe_model()."""
    return describe(Path(path), shapes=shapes)
