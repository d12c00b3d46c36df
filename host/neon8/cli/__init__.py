# SPDX-License-Identifier: Apache-2.0
"""The command line: `neon8 COMMAND`, one module for each command."""
