# SPDX-License-Identifier: Apache-2.0
"""Calibration as functions on paths: at once, or in steps that can be repeated."""

from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path

from neon8.calibrate import calib_file, calibrate
from neon8.calibrate import observation as observations
from neon8.calibrate.observation import Observation
from neon8.calibrate.overrides import Overrides
from neon8.calibrate.overrides import load as load_overrides
from neon8.calibrate.run.campaign import Plan, observe_data
from neon8.calibrate.run.task import Task
from neon8.data.gather import Data, gather
from neon8.data.preprocess import Preprocess
from neon8.data.samples import Sample
from neon8.errors import DataError
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.quant.scale_table import ScaleTable


def calibrate_model(
    model: str | Path,
    data: Data,
    *,
    method: str = "mse",
    scheme: str = "auto",
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
    watch: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
) -> ScaleTable:
    """Run the ONNX file in FP32 on the samples and choose a scale for every tensor.

    data: see neon8.data.gather.  watch: wraps the samples, as tqdm does.
    GraphError, DataError, CalibrationError.
    """
    file = open_onnx(model)
    samples = gather(data, load(file), preprocess=preprocess, limit=limit, skip=skip)
    return calibrate.calibrate(file, watch(samples), method=method, scheme=scheme)


def observe_model(
    model: str | Path,
    data: Data,
    *,
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
    shard: tuple[int, int] | None = None,
    workers: int = 1,
    engine: str | None = None,
    ignore_nonfinite: bool = False,
) -> Observation:
    """Run the ONNX file in FP32 on the samples and collect exact statistics.

    data: see neon8.data.gather.  shard: (i, n), only the i-th of n pieces.  workers:
    processes.  engine: "dask://HOST:PORT".  These three are for data in files.
    GraphError, DataError, CalibrationError, SetupError.
    """
    if isinstance(data, str | Path):
        task = Task(
            model=str(model),
            data=str(data),
            preprocess=preprocess,
            limit=limit,
            skip=skip,
            shard=shard,
            ignore_nonfinite=ignore_nonfinite,
        )
        return observe_data(task, Plan(workers=workers, engine=engine)).observation
    if shard is not None or workers > 1 or engine is not None:
        raise DataError("shard, workers and engine are for data in files")
    file = open_onnx(model)
    samples = gather(data, load(file), preprocess=preprocess, limit=limit, skip=skip)
    return calibrate.observe(file, samples, ignore_nonfinite=ignore_nonfinite)


def merge_observations(first: Observation, *others: Observation) -> Observation:
    """What observing all their samples at once would have given.

    CalibrationError: they share a sample, or are of other models or settings.
    """
    return reduce(observations.merge, others, first)


def solve_observation(
    observation: Observation,
    *,
    method: str = "mse",
    scheme: str = "auto",
    bits: int = 8,
    overrides: str | Path | Overrides | None = None,
) -> ScaleTable:
    """Choose a scale for every tensor; needs neither the model nor the data.

    overrides: the user's own ranges, or the JSON file with them.  CalibrationError,
    TableError; a guard that fired is logged to "neon8".
    """
    if isinstance(overrides, str | Path):
        overrides = load_overrides(overrides)
    return calibrate.solve(
        observation, method=method, scheme=scheme, bits=bits, overrides=overrides
    )


def load_observation(path: str | Path) -> Observation:
    """An observation from its .calib file.  CalibrationError."""
    return calib_file.load(Path(path))


def save_observation(observation: Observation, path: str | Path) -> None:
    """Write a .calib file, whole or not at all."""
    calib_file.save(observation, Path(path))
