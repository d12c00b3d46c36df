# SPDX-License-Identifier: Apache-2.0
"""Graph and Program as values: tensors, nodes with their traits, steps."""
