# SPDX-License-Identifier: Apache-2.0
"""What the processor that runs the tests has."""

import contextlib
import functools
import platform
import re
from pathlib import Path

from neon8.compile import writer
from neon8.errors import SetupError
from neon8.runtime import Model, library
from random_program import random_program

TABLE = Path(__file__).resolve().parents[2] / "runtime" / "levels.inc"
FAMILIES = {"x86_64": "x86-64", "aarch64": "armv8", "armv7l": "armv7"}


@functools.cache
def levels() -> list[str]:
    """The instruction-set levels that this processor has."""
    names = library.load().ffi.typeof("enum n8_isa").relements
    ordered = sorted(names, key=names.__getitem__)
    known = [name.removeprefix("N8_ISA_").lower() for name in ordered]
    content = writer.dumps(random_program(0))
    found = []
    for isa in known:
        if isa != "auto":
            with contextlib.suppress(SetupError), Model.from_bytes(content, isa=isa):
                found.append(isa)
    return found


def untested() -> list[str]:
    """Levels of this architecture that the processor or the library lacks."""
    family = FAMILIES[platform.machine()]
    rows = re.findall(
        rf'^N8_LEVEL\((\w+), \w+, "{family}', TABLE.read_text(), re.MULTILINE
    )
    return [level for level in rows if level not in levels()]
