# SPDX-License-Identifier: Apache-2.0
"""Processes that are run to their end."""

import subprocess


def ran(*command, check=False, **options) -> subprocess.CompletedProcess:
    """A command, and the text that it printed."""
    words = [*map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)
