# SPDX-License-Identifier: Apache-2.0
"""EmulatedModel: a .n8 file run by the ARM library, on this PC.

qemu runs neon8-runner, which has the whole library in it. All is as on a board but for
the processor.
"""

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import final

from neon8.arrays import Array
from neon8.errors import SetupError
from neon8.machines import DEFAULT_CPU, EMULATIONS
from neon8.runtime.board.model import BoardModel
from neon8.runtime.closable import Closable
from neon8.runtime.model import Shapes


@final
class EmulatedModel(Closable):
    """A model on an emulated ARM core; close it, or use it in a `with` statement.

    Each run starts a process; those of several threads at the same time share one.
    """

    def __init__(
        self,
        path: str | Path,
        target: str = "aarch64",
        cpu: str = DEFAULT_CPU,
        isa: str | None = None,
        *,
        max_bytes: int | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        """Open the model there and describe it.

        target: one of neon8.machines.EMULATIONS; cpu: as its qemu calls it, e.g.
        "cortex-a53"; isa: as in Model.open;
        max_bytes: see Model.open.  shapes: as in Model.at, what is described.
        SetupError: qemu or the runner is missing, or the process died.
        ModelError: the runtime refuses the file.
        """
        if target not in EMULATIONS:
            known = ", ".join(EMULATIONS)
            raise SetupError(
                f"target {target!r} is not one of {known}, which qemu runs"
            )
        self.source = str(path)
        self._model = model = BoardModel.open(
            path, target, cpu, isa, max_bytes=max_bytes, shapes=shapes
        )
        self._close = weakref.finalize(self, model.close)
        self.inputs, self.outputs = model.inputs, model.outputs
        self.bounds, self.facts = model.bounds, model.facts
        self.memory, self.steps = model.memory, model.steps

    def __repr__(self) -> str:
        """Name the file, and say if the model is closed."""
        state = "" if self._close.alive else ", closed"
        return f"<EmulatedModel {self.source!r}{state}>"

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, as Session.run does.  ModelError: the bytes are not this PC's."""
        if not self._close.alive:
            raise SetupError(f"{self.source}: the emulated model has been closed")
        return self._model.run(inputs)

    def close(self) -> None:
        """Remove what was made to run it; closing twice is allowed."""
        self._close()
