# SPDX-License-Identifier: Apache-2.0
"""ONNX to the normalised Graph, and passes over it; no other package imports onnx."""
