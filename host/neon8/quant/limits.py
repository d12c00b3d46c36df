# SPDX-License-Identifier: Apache-2.0
"""Limits of numerics (1)."""

SMALLEST_SCALE = 1e-30
"""The least scale, and the least product of scales, that every processor keeps: ARMv7
flushes what is no normal float32 to zero."""
