# SPDX-License-Identifier: Apache-2.0
"""Limits of numerics (1) and (5c), and of the model file."""

SMALLEST_SCALE = 1e-30
"""The least scale, and the least product of scales, that every processor keeps: ARMv7
flushes what is no normal float32 to zero."""
MAX_FACTOR = 1 << 16
"""The largest factor of a channel (5c), and the inverse of the least: channels that are
further apart have no scale in common. Calibration takes 0.01 to 1."""
MAX_TENSORS = 1 << 14
"""Tensors, steps or links of a model file: N8_FORMAT_MAX_COUNT."""
