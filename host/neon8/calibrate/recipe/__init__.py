# SPDX-License-Identifier: Apache-2.0
"""What calibration does for accuracy by itself, when it has the weights."""
