# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's static quantization makes of a network."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.registry import QDQRegistry
from onnxruntime.quantization.shape_inference import quant_pre_process

OPSET, IR_VERSION = 13, 7


class _Reader(CalibrationDataReader):
    def __init__(self, samples: Iterable[dict[str, np.ndarray]]) -> None:
        self.rest = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.rest, None)


def quantized(
    model: Path,
    samples: Iterable[dict[str, np.ndarray]],
    *,
    method: str = "MinMax",
    percentile: float | None = None,
    symmetric: bool = False,
) -> onnx.ModelProto:
    """The Q/DQ network: asymmetric int8 activations, int8 weights per channel.

    symmetric: with zero points of 0.

    After the pre-processing that onnxruntime recommends, which folds normalisations.
    Softmax stays float, as in neon8: in 8 bits most probabilities would be 0. One scale
    for all weights of a layer where onnxruntime fails with more, as on a convolution
    whose bias is a node of its own.
    """
    extra: dict[str, object] = {"ActivationSymmetric": symmetric}
    if percentile is not None:
        extra["CalibPercentile"] = percentile
    rows = list(samples)
    with tempfile.TemporaryDirectory() as folder:
        prepared, output = (str(Path(folder) / f"{n}.onnx") for n in ("a", "b"))
        onnx.save(folded(model), prepared)

        def quantize(*, per_channel: bool) -> None:
            quantize_static(
                prepared,
                output,
                _Reader(rows),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=sorted(QDQRegistry.keys() - {"Softmax"}),
                per_channel=per_channel,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod[method],
                extra_options=extra,
            )

        try:
            quantize(per_channel=True)
        except ValueError:
            quantize(per_channel=False)
        return onnx.load(output)


def folded(path: Path) -> onnx.ModelProto:
    """As newer exporters write it, with normalisations in the convolutions.

    Q/DQ per channel needs opset 13, and an initializer that is listed as an input is no
    constant for onnxruntime.
    """
    model = onnx.load(path)
    given = {tensor.name for tensor in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in given]
    opset = max(each.version for each in model.opset_import if not each.domain)
    if opset < OPSET:
        model = onnx.version_converter.convert_version(model, OPSET)
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, IR_VERSION)
    with tempfile.TemporaryDirectory() as folder:
        current, prepared = (str(Path(folder) / f"{n}.onnx") for n in ("a", "b"))
        onnx.save(model, current)
        quant_pre_process(current, prepared, skip_symbolic_shape=True)
        return onnx.load(prepared)
