# SPDX-License-Identifier: Apache-2.0
"""Which instructions the FP32 engine has: other ones round in another order."""

import platform
from pathlib import Path

_CLASSES = ("avx512f", "avx2", "avx", "sve")
"""Flags by which onnxruntime chooses its matrix kernels, the strongest first."""


def machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Like "x86_64 avx2"; the architecture alone where the rest is not known."""
    name = platform.machine() or "unknown"
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return name
    flags: set[str] = set()
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            flags.update(value.split())
    return " ".join([name, *(flag for flag in _CLASSES if flag in flags)][:2])
