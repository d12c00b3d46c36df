# SPDX-License-Identifier: Apache-2.0
"""What AIMET's simulation of int8 makes of a network."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from aimet_onnx.common.defs import QuantScheme
from aimet_onnx.cross_layer_equalization import equalize_model
from aimet_onnx.quantsim import QuantizationSimModel

from bench.accuracy.peer_onnxruntime import folded

CONFIG = "default_config_per_channel.json"


def quantized(
    model: Path,
    samples: Iterable[dict[str, np.ndarray]],
    *,
    scheme: str,
    equalize: bool = False,
) -> onnx.ModelProto:
    """The Q/DQ network: int8 weights per channel, asymmetric int8 activations.

    Softmax stays float, as in neon8.
    """
    network = folded(model)
    if equalize:
        equalize_model(network)
    simulation = QuantizationSimModel(
        network,
        quant_scheme=QuantScheme[scheme],
        config_file=CONFIG,
        providers=["CPUExecutionProvider"],
    )
    for node in network.graph.node:
        if node.op_type == "Softmax":
            simulation.qc_quantize_op_dict[node.output[0]].enabled = False
    simulation.compute_encodings(list(samples))
    return simulation.to_onnx_qdq(prequantize_constants=True)
