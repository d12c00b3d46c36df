# SPDX-License-Identifier: Apache-2.0
"""Runs the FP32 network over the samples, in one process or many."""
