# SPDX-License-Identifier: Apache-2.0
"""What every stage shares about quantization: grids, limits, scale tables."""
