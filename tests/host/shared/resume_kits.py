# SPDX-License-Identifier: Apache-2.0
"""Runs that can be killed, and what those say that continue."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("slow_observe.py")


def start(words, kill="never", seconds=0.0):
    line = [sys.executable, SCRIPT, str(seconds), kill, *map(str, words)]
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kept(error):
    """How many samples the run said it continues with."""
    found = re.search(r"journal: continuing, (\d+) samples", error)
    return int(found[1]) if found else 0
