# SPDX-License-Identifier: Apache-2.0
"""Worker processes: which there are, and what they do instead of their work."""

import os
import signal
from pathlib import Path

from neon8.calibrate.run import collector

add = collector.Collector.add


def workers():
    """The worker processes that this process has started."""
    lists = Path("/proc/self/task").glob("*/children")
    found = [int(word) for each in lists for word in each.read_text().split()]
    return [process for process in found if b"processes import serve" in words(process)]


def words(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def deadly(taking, sample, digest):
    if sample.name.endswith("[40]"):
        os.kill(os.getpid(), signal.SIGKILL)
    return add(taking, sample, digest)


def die_of_a_sample():
    collector.Collector.add = deadly
