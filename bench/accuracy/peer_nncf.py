# SPDX-License-Identifier: Apache-2.0
"""What NNCF's post-training quantization makes of a network."""

from collections.abc import Iterable
from pathlib import Path

import nncf
import numpy as np
import onnx

from bench.accuracy.peer_onnxruntime import folded


def quantized(
    model: Path,
    samples: Iterable[dict[str, np.ndarray]],
    *,
    fast: bool = True,
    align: bool = False,
) -> onnx.ModelProto:
    """The Q/DQ network by the preset for asymmetric activations."""
    rows = list(samples)
    return nncf.quantize(
        folded(model),
        nncf.Dataset(rows),
        preset=nncf.QuantizationPreset.MIXED,
        subset_size=len(rows),
        fast_bias_correction=fast,
        advanced_parameters=nncf.AdvancedQuantizationParameters(
            disable_channel_alignment=not align
        ),
    )
