# SPDX-License-Identifier: Apache-2.0
"""One measurement in a fresh process.

python -m bench.calibration.measure NAME MODEL prints a line of JSON.
"""

import json
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from bench.networks import resnet, weights
from bench.networks.builder import Net
from neon8 import calibrate_model, observe_model
from neon8.calibrate.run.reference import Reference
from neon8.calibrate.statistics import native
from neon8.calibrate.statistics.observer import Observer, channel_inputs
from neon8.calibrate.thresholds.kl import kl
from neon8.calibrate.thresholds.mse import mse
from neon8.graph.importer import load
from neon8.quant.grid import Grid

ROUNDS = 3


def net20(model: str) -> dict[str, float]:
    """Write ResNet-18, 20 convolutions and a Gemm, with random weights.

    That takes more memory than a short calibration and must not count as its own.
    """
    net = Net("net20", 13, fold=True)
    resnet.resnet(net, 224, 18)
    onnx.save(weights.model(net, weights.draw(net)), model)
    return {"parameters": net.parameters}


def samples(model: str, count: int) -> Iterator[dict[str, np.ndarray]]:
    """Noise as smooth as an image is, so that zeros and ranges are as usual."""
    inputs = Reference(model).inputs.items()
    shapes = {name: each.shape for name, each in inputs}
    rng = np.random.default_rng(0)
    for _ in range(count):
        sample = {}
        for name, shape in shapes.items():
            small = rng.normal(0, 60, (*shape[:2], shape[2] // 8, shape[3] // 8))
            large = small.repeat(8, axis=2).repeat(8, axis=3)
            sample[name] = (large + rng.normal(0, 10, shape)).astype(np.float32)
        yield sample


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def statistics(model: str) -> dict[str, float]:
    """Time of the statistics, of conv inputs alone and of everything, per inference.

    Each right after the run whose outputs it reads, as in a calibration.
    """
    graph = load(model)
    observer = Observer(graph)
    inputs = channel_inputs(graph)
    plain = Reference(model)
    some = Reference(model, [n for n in inputs if n not in graph.inputs], inside=True)
    every = Reference(model, observer.fetch, inside=True)
    data = list(samples(model, 16))
    first = {**data[0], **some.run(data[0])}
    wanted = [
        native.Wanted(channels=first[n].shape[1], histogram=True, per_channel=True)
        for n in inputs
    ]
    banked = native.bank(wanted).each
    jobs = [
        native.Job(first[n].shape, one) for n, one in zip(inputs, banked, strict=True)
    ]
    plan = native.Plan(jobs)
    best = dict.fromkeys(("plain", "inputs", "all", "run inputs", "run all"), np.inf)
    for number in range(ROUNDS + 1):  # the first one only warms up
        spent = dict.fromkeys(best, 0.0)
        for sample in data:
            spent["plain"] += seconds(lambda s=sample: plain.run(s))
        for sample in data:
            start = time.perf_counter()
            values = {**sample, **some.run(sample)}
            spent["run inputs"] += time.perf_counter() - start
            arrays = [values[n] for n in inputs]
            spent["inputs"] += seconds(lambda a=arrays: plan.observe(a))
        for index, sample in enumerate(data):
            start = time.perf_counter()
            values = {**sample, **every.run(sample)}
            spent["run all"] += time.perf_counter() - start
            digest = f"{number * len(data) + index:064x}"
            spent["all"] += seconds(
                lambda v=values, d=digest: observer.add(v, sample="", digest=d)
            )
        if number:
            best = {name: min(best[name], spent[name]) for name in best}
    per_sample = {name: 1e3 * value / len(data) for name, value in best.items()}
    return {
        "inputs": best["inputs"] / best["plain"],
        "all": best["all"] / best["plain"],
        "milliseconds": per_sample,
    }


def whole(model: str, count: int = 256) -> dict[str, float]:
    """calibrate() as a whole against the same samples run by onnxruntime alone.

    That is once by one thread, as calibrate() runs each of its sessions, and once as
    onnxruntime does by itself, with all threads at each sample.
    """
    data = list(samples(model, count))

    def infer() -> None:
        reference = Reference(model)
        for sample in data:
            reference.run(sample)

    def infer_by_all() -> None:
        session = onnxruntime.InferenceSession(
            model, providers=["CPUExecutionProvider"]
        )
        for sample in data:
            session.run(None, sample)

    works = {
        "inference": infer,
        "by all threads": infer_by_all,
        "seconds": lambda: calibrate_model(model, data),
    }
    best = dict.fromkeys(works, np.inf)
    for _ in range(ROUNDS):
        for name, work in works.items():
            best[name] = min(best[name], seconds(work))
    return {
        "ratio": best["seconds"] / best["inference"],
        "to all threads": best["seconds"] / best["by all threads"],
        **best,
    }


def entropy(model: str, count: int = 64) -> dict[str, float]:
    """calibrate() by kl against onnxruntime's Entropy calibration.

    That is with its own 128 bins, of which it can cut none off, and with the 2048 that
    kl has.
    """
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod
    from onnxruntime.quantization.calibrate import create_calibrator

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(data)

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.rest, None)

    def theirs(bins: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            calibrator = create_calibrator(
                model,
                augmented_model_path=str(Path(folder) / "augmented.onnx"),
                calibrate_method=CalibrationMethod.Entropy,
                extra_options={"num_bins": bins},
            )
            calibrator.collect_data(Reader())
            calibrator.compute_data()

    logging.disable(logging.WARNING)
    data = list(samples(model, count))
    ours = min(
        seconds(lambda: calibrate_model(model, data, method="kl")) for _ in range(3)
    )
    other = min(seconds(lambda: theirs(128)) for _ in range(ROUNDS))
    searching = seconds(lambda: theirs(2048))  # once: it takes long
    return {
        "ratio": ours / other,
        "ratio to 2048 bins": ours / searching,
        "seconds": ours,
        "onnxruntime": other,
        "onnxruntime, 2048 bins": searching,
    }


def memory(model: str, count: int) -> dict[str, float]:
    """Peak resident memory of calibrate(), in MiB."""
    calibrate_model(model, samples(model, count))
    return {"mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def solving(model: str) -> dict[str, float]:
    """Milliseconds per tensor, the mean over all of the network's, best of three."""
    tensors = [
        one.histogram
        for one in observe_model(model, samples(model, 8)).tensors.values()
    ]
    result = {}
    for method in (kl, mse):
        for scheme in ("symmetric", "unsigned", "asymmetric"):
            fitting = [h for h in tensors if scheme != "unsigned" or h.minimum >= 0]
            times = [
                min(
                    seconds(lambda h=h, m=method, s=scheme: m(h, Grid(s)))
                    for _ in range(3)
                )
                for h in fitting
            ]
            result[f"{method.__name__} {scheme}"] = 1e3 * float(np.mean(times))
            result[f"{method.__name__} {scheme} slowest"] = 1e3 * max(times)
    return result


if __name__ == "__main__":
    name, path, *rest = sys.argv[1:]
    print(json.dumps(globals()[name](path, *map(int, rest))))
