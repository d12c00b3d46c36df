# SPDX-License-Identifier: Apache-2.0
"""Observe FP32 activations, choose thresholds; no other package runs onnxruntime."""
