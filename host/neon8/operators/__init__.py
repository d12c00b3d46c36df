# SPDX-License-Identifier: Apache-2.0
"""All that the host knows of operators, one module for each family."""
