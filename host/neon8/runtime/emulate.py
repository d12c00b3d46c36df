# SPDX-License-Identifier: Apache-2.0
"""EmulatedModel: a .n8 file run by the ARM library, on this PC.

A child process runs qemu with neon8-runner, which has the whole library in it; arrays
travel through pipes. All is as on the board but for the processor.
"""

import contextlib
import json
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, BinaryIO, cast, final

from neon8.arrays import Array
from neon8.errors import ModelError, SetupError
from neon8.machines import DEFAULT_CPU, EMULATIONS
from neon8.prebuilt import prebuilt_file
from neon8.runtime.arrays import Memory, StepInfo, at_shapes, checked
from neon8.runtime.board import batch
from neon8.runtime.board.board import MODEL_FAULTS, RUNNER, opening
from neon8.runtime.board.link import qemu_for
from neon8.runtime.closable import Closable
from neon8.runtime.library import PACKAGE, load
from neon8.runtime.model import MAX_BYTES, Model, Shapes, isa_number
from neon8.version import __version__

BUILD = PACKAGE.parents[1] / "build"
GRACE_SECONDS = 5
STDERR_LINES = 5
ENDLESS = (1 << 32) - 1
"""Samples that are announced: no batch comes to its end."""


@final
class EmulatedModel(Closable):
    """A model in an emulated ARM process; close it, or use it in a `with` statement."""

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
        """Describe the model and start the process.

        target: one of neon8.machines.EMULATIONS; cpu: as its qemu calls it, e.g.
        "cortex-a53"; isa: as in Model.open;
        max_bytes: see Model.open.  shapes: as in Model.at, what is described.
        SetupError: qemu or the runner is missing, or the process died.
        ModelError: the runtime refuses the file.
        """
        self.source = str(path)
        self._target = target
        self._lock = threading.Lock()
        command = start_command(target, cpu)
        if isa is not None:
            isa_number(load(), isa)
        given = opening(self.source, isa, max_bytes)
        self._describe(command, given, shapes)
        self.max_bytes = int(max_bytes or load().lib.N8_DEFAULT_MAX_BYTES)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
        self._process = subprocess.Popen(  # noqa: S603 (no shell, our own words)
            [*command, "run", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._stop = weakref.finalize(self, stop, self._process, self._errors)
        self._begun = False

    def _describe(
        self, command: Sequence[str], given: Sequence[str], shapes: Shapes | None
    ) -> None:
        """What the file says, and what the processor makes of it."""
        # Whatever the processor, a limit is the runner's to keep.
        with Model.open(self.source, "c", max_bytes=MAX_BYTES) as opened:
            model = opened if shapes is None else opened.at(shapes)
            self.inputs, self.outputs = model.inputs, model.outputs
            self.bounds, self.facts, steps = model.bounds, model.facts, model.steps
        at = []
        if shapes is not None:
            dims = [(*i.shape, *[1] * 8)[:8] for i in self.inputs.values()]
            at = ["--shapes", ",".join(str(d) for row in dims for d in row)]
        done = subprocess.run(  # noqa: S603 (no shell, our own words)
            [*command, "describe", *given, *at], capture_output=True, check=False
        )
        if done.returncode:
            raise self._refusal(done.returncode, done.stderr)
        found = json.loads(done.stdout)
        if found["version"] != __version__:
            raise SetupError(
                f"{RUNNER} for {self._target} is of version {found['version']}, this "
                f"package of {__version__}; build it again, as by 'make {self._target}'"
            )
        self.memory = Memory(**found["memory"])
        self.steps: tuple[StepInfo, ...] = tuple(
            replace(step, **own)
            for step, own in zip(steps, found["steps"], strict=True)
        )

    def __repr__(self) -> str:
        """Name the file, and say if the process has ended."""
        state = "" if self._stop.alive else ", closed"
        return f"<EmulatedModel {self.source!r}{state}>"

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, as Session.run does."""
        expected = at_shapes(inputs, self.inputs, self.bounds, source=self.source)
        arrays = checked(inputs, expected, source=self.source)
        with self._lock:
            if not self._stop.alive:
                raise SetupError(f"{self.source}: the emulated model has been closed")
            to, back = pipe(self._process.stdin), pipe(self._process.stdout)
            try:
                if not self._begun:
                    to.write(batch.HEAD.pack(batch.MAGIC, ENDLESS))
                to.write(batch.record(arrays))
                to.flush()
                if not self._begun:
                    batch.check_head(back, ENDLESS)
                    self._begun = True
                return batch.read_sample(back, self.outputs)
            except (BrokenPipeError, batch.DamagedError):
                raise self._death() from None

    def close(self) -> None:
        """End the process; closing twice is allowed."""
        self._stop()

    def _death(self) -> SetupError | ModelError:
        """What the runner said before it ended without an answer."""
        pipe(self._process.stdout).close()
        status = self._process.wait()
        self._errors.seek(0)
        return self._refusal(status, self._errors.read())

    def _refusal(self, status: int, said: bytes) -> SetupError | ModelError:
        """Why a process ended."""
        lines = said.decode(errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()][-STDERR_LINES:]
        text = words[-1].removeprefix(f"{RUNNER}: ") if words else ""
        if text.startswith(MODEL_FAULTS):
            return ModelError(f"{self.source}: on {self._target}: {text}")
        return SetupError(
            f"{self.source}: the emulated process ended with status {status}: "
            f"{' | '.join(words) or 'no message'}"
        )


def start_command(target: str, cpu: str) -> list[str]:
    """What runs a command of the runner.  SetupError: something is missing."""
    if target not in EMULATIONS:
        known = ", ".join(EMULATIONS)
        raise SetupError(f"target {target!r} is not one of {known}, which qemu runs")
    return [qemu_for(target), "-cpu", cpu, str(_runner(target))]


def _runner(target: str) -> Path:
    """The program: of a checkout, where `make` refreshes it, or of a wheel."""
    if not (BUILD.parent / "cross").is_dir():
        return prebuilt_file(f"linux-{target}", RUNNER)
    runner = BUILD / target / RUNNER
    if not runner.is_file():
        raise SetupError(f"{runner} is missing; run 'make {target}'")
    return runner


def stop(process: "subprocess.Popen[bytes]", stderr: IO[bytes]) -> None:
    """End a runner by closing its input, or by force, and leave no zombie."""
    with contextlib.suppress(BrokenPipeError):  # dead, with something left to send
        pipe(process.stdin).close()
    pipe(process.stdout).close()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    stderr.close()


def pipe(stream: Any) -> BinaryIO:
    """A pipe that Popen was asked for and that is therefore there."""
    return cast("BinaryIO", stream)
