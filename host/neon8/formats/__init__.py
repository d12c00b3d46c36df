# SPDX-License-Identifier: Apache-2.0
"""The scale tables of other tools: ncnn, TensorRT, Glow, onnxruntime, Q/DQ ONNX."""
