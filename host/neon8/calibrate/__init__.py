# SPDX-License-Identifier: Apache-2.0
"""Observe FP32 activations, keep histograms, choose thresholds. The only package that imports onnxruntime."""
