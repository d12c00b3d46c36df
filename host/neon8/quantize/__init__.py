# SPDX-License-Identifier: Apache-2.0
"""The integer semantics in numpy: the oracle, and weights."""
