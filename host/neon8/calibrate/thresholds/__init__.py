# SPDX-License-Identifier: Apache-2.0
"""How a threshold is chosen; one method, one module."""
