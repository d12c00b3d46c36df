# SPDX-License-Identifier: Apache-2.0
"""ncnn's calibration table.

    <layer>_param_0 <127 / absmax of the weights, one for each output channel>
    <layer> <127 / threshold of the layer's input>

All weight lines come first. ncnn is symmetric: the threshold is the larger end of the
range that our scale covers, whatever its zero point. Only convolutions and inner
products have lines. ncnn takes one weight scale for each group of a grouped
convolution, so a convolution that is grouped but not depthwise is not for it.
"""

import numpy as np

from neon8.errors import TableError
from neon8.table.scale_table import LayerScale, ScaleTable, TensorScale

LONGEST_NAME = 255


def dumps(table: ScaleTable) -> str:
    """The text of the .table file.  TableError: a layer name that ncnn misreads."""
    for name in table.layers:
        if "_param_" in name:
            text = "ncnn takes a name that contains '_param_' for a line of weights"
        elif any(letter.isspace() or letter == "\0" for letter in name):
            text = "ncnn ends a name at the first space"
        elif len(f"{name}_param_0".encode()) > LONGEST_NAME:
            text = f"ncnn reads at most {LONGEST_NAME} bytes with '_param_0'"
        else:
            continue
        raise TableError(f"{table.model_name}: layer {name!r}: {text}; rename the node")
    weights = [
        _line(f"{name}_param_0", weight_multipliers(layer))
        for name, layer in table.layers.items()
    ]
    activations = [
        _line(name, (activation_multiplier(table.tensors[layer.input]),))
        for name, layer in table.layers.items()
    ]
    return "".join(weights + activations)


def _line(name: str, values: tuple[float, ...]) -> str:
    # %f, as ncnn writes it, loses digits; the reader scans both, into a float32.
    texts = (f"{np.float32(value):.9g}" for value in values)
    return " ".join((name, *texts)) + "\n"


def weight_multipliers(layer: LayerScale) -> tuple[float, ...]:
    """127 / absmax of each channel; 0, for ncnn 'no weights', if it is dead."""
    return tuple(
        0.0 if f"dead:{channel}" in layer.reasons else 1.0 / scale
        for channel, scale in enumerate(layer.weight_scales)
    )


def activation_multiplier(tensor: TensorScale) -> float:
    """127 / max(|lo|, |hi|) of the range that scale and zero point cover."""
    lowest = -127 if tensor.scheme == "symmetric" else -128
    levels = max(tensor.zero_point - lowest, 127 - tensor.zero_point)
    return 127.0 / (levels * tensor.scale)
