# SPDX-License-Identifier: Apache-2.0
"""What the processor that runs the tests has."""

import contextlib
import functools

from neon8.compile import writer
from neon8.errors import SetupError
from neon8.runtime import Model, library
from random_program import random_program


@functools.cache
def levels() -> list[str]:
    """The instruction-set levels that this processor has."""
    names = library.load().ffi.typeof("enum n8_isa").relements
    known = [name.removeprefix("N8_ISA_").lower() for name in names]
    content = writer.dumps(random_program(0))
    found = []
    for isa in known:
        if isa != "auto":
            with contextlib.suppress(SetupError), Model.from_bytes(content, isa=isa):
                found.append(isa)
    return found
