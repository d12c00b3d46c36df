# SPDX-License-Identifier: Apache-2.0
"""Exact statistics of the activations, in C, independent of the order of samples."""
