# SPDX-License-Identifier: Apache-2.0
"""ONNX files that were quantized elsewhere: the float network in them, and its scales.

QuantizeLinear and DequantizeLinear, and operators on integers such as QLinearConv,
which are the same in one node, are taken out. What is left is a network that the
importer reads as any other; where a tensor is rounded, and which integers the weights
are, is kept beside it.
"""

from neon8.graph.quantized.file import QuantizedFile, is_quantized, take_apart
from neon8.graph.quantized.integers import Levels

__all__ = ["Levels", "QuantizedFile", "is_quantized", "take_apart"]
