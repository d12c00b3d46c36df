# SPDX-License-Identifier: Apache-2.0
"""ONNX to the normalised Graph, and passes over it. The only package that imports onnx."""
