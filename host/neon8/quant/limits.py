# SPDX-License-Identifier: Apache-2.0
"""Limits of numerics (1) and (5c)."""

SMALLEST_SCALE = 1e-30
"""The least scale, and the least product of scales, that every processor keeps: ARMv7
flushes what is no normal float32 to zero."""
MAX_FACTOR = 1 << 16
"""Of a channel (5c), and over 1 the least: what is further apart has no scale in
common. Calibration takes 0.01 to 1."""
