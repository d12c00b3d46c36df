# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's static quantization makes of a network."""

import contextlib
import io
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import onnx.version_converter

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.calibrate import (
    EntropyCalibrater,
    HistogramCollector,
    entropy,
    smooth_distribution,
)
from onnxruntime.quantization.registry import QDQRegistry
from onnxruntime.quantization.shape_inference import quant_pre_process

METHODS = {"MinMax": CalibrationMethod.MinMax, "Entropy": CalibrationMethod.Entropy}
BINS = 2048
"""Bins of the histogram that Entropy cuts.

quantize_static leaves it at 128, as many as the levels that it looks for: none is cut.
"""
OPSET, IR_VERSION = 13, 7
SILENT = 3
PART = 20
"""Samples whose activations are in memory at once."""


class _Reader(CalibrationDataReader):
    def __init__(self, samples: Iterable[dict[str, np.ndarray]]) -> None:
        self.rest = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.rest, None)


def quantized(
    model: Path, samples: Iterable[dict[str, np.ndarray]], method: str, output: Path
) -> None:
    """Write the Q/DQ network: asymmetric int8 activations, int8 weights per channel.

    After the pre-processing that onnxruntime recommends, which folds normalisations.
    Softmax stays float, as in neon8: in 8 bits most probabilities would be 0. One scale
    for all weights of a layer where onnxruntime fails with more, as on a convolution
    whose bias is a node of its own.
    """
    logging.getLogger().setLevel(logging.ERROR)  # it logs to the root, and prints
    onnxruntime.set_default_logger_severity(SILENT)
    rows = list(samples)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        _fine_histograms(),
    ):
        current, prepared = (
            Path(folder) / f"{n}.onnx" for n in ("current", "prepared")
        )
        onnx.save(_current(onnx.load(model)), current)
        quant_pre_process(str(current), str(prepared), skip_symbolic_shape=True)

        def quantize(*, per_channel: bool) -> None:
            quantize_static(
                str(prepared),
                str(output),
                _Reader(rows),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=sorted(QDQRegistry.keys() - {"Softmax"}),
                per_channel=per_channel,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=METHODS[method],
            )

        try:
            quantize(per_channel=True)
        except ValueError:
            quantize(per_channel=False)


def _current(model: onnx.ModelProto) -> onnx.ModelProto:
    """As newer exporters write it: Q/DQ per channel needs opset 13.

    And an initializer that is listed as an input is no constant for onnxruntime.
    """
    given = {tensor.name for tensor in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in given]
    opset = max(each.version for each in model.opset_import if not each.domain)
    if opset < OPSET:
        model = onnx.version_converter.convert_version(model, OPSET)
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, IR_VERSION)
    return model


@contextlib.contextmanager
def _fine_histograms() -> Iterator[None]:
    """Entropy with BINS bins, for which quantize_static has no option.

    It also keeps the activations of all samples that it is given at once, and takes
    seconds for each tensor.
    """
    create, collect = EntropyCalibrater.__init__, EntropyCalibrater.collect_data

    def fine(self, *positional, **named) -> None:
        create(self, *positional, **named | {"num_bins": BINS})

    def in_parts(self, reader: CalibrationDataReader) -> None:
        samples = iter(reader.get_next, None)
        while part := list(islice(samples, PART)):
            collect(self, _Reader(part))

    patch = mock.patch.object
    with (
        patch(EntropyCalibrater, "__init__", fine),
        patch(EntropyCalibrater, "collect_data", in_parts),
        patch(HistogramCollector, "get_entropy_threshold", entropy_threshold),
    ):
        yield


def entropy_threshold(
    _collector: HistogramCollector, histogram: tuple, levels: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same as the method that this replaces, with no Python loop over bins.

    histogram: counts, edges, minimum and maximum, as it keeps them.
    """
    counts, edges, minimum, maximum = histogram[:4]
    middle = counts.size // 2
    before = np.concatenate([[0], np.cumsum(counts)])
    best = (np.inf, middle - levels // 2, min(middle + levels // 2 + 1, counts.size))
    for half in range(levels // 2, middle + 1):
        start, end = middle - half, min(middle + half + 1, counts.size)
        inside = counts[start:end]
        wanted = inside.copy()
        wanted[0] += before[start]
        wanted[-1] += before[-1] - before[end]
        p, q = (
            smooth_distribution(wanted),
            smooth_distribution(_spread(inside, wanted, levels)),
        )
        divergence = np.inf if p is None or q is None else entropy(p, q)
        if divergence < best[0]:
            best = (divergence, start, end)
    return max(edges[best[1]], minimum), min(edges[best[2]], maximum)


def _spread(inside: np.ndarray, wanted: np.ndarray, levels: int) -> np.ndarray:
    """What `levels` levels tell of the counts inside, in bins again."""
    width = inside.size // levels
    whole = width * levels
    merged = inside[:whole].reshape(levels, width).sum(axis=1)
    merged[-1] += inside[whole:].sum()
    filled = (wanted[:whole] != 0).reshape(levels, width).sum(axis=1)
    level = (merged / np.maximum(filled, 1)).astype(np.int64) * (filled != 0)
    spread = np.zeros(inside.size, np.int64)
    spread[:whole] = np.repeat(level, width)
    return spread
