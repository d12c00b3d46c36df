# SPDX-License-Identifier: Apache-2.0
"""EmulatedModel: a .n8 file run by the ARM library, on this PC.

A child process runs qemu with an ARM Python and neon8.runtime.worker; arrays travel
through pipes. All is as on the board but for the processor.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast, final

from neon8 import errors
from neon8.arrays import Array
from neon8.errors import Neon8Error, SetupError
from neon8.machines import DEFAULT_CPU, EMULATIONS
from neon8.runtime.arrays import (
    Bounds,
    Memory,
    ModelFacts,
    StepInfo,
    TensorInfo,
    at_shapes,
    checked,
)
from neon8.runtime.closable import Closable
from neon8.runtime.library import PACKAGE
from neon8.runtime.model import Shapes
from neon8.runtime.worker import Message, receive, send

BUILD = PACKAGE.parents[1] / "build"
GRACE_SECONDS = 5
STDERR_LINES = 5

# Loads this very package and nothing beside it: its folder may be the site-packages of
# this machine, whose numpy is not for ARM.
PROGRAM = """
import importlib.util, sys
place = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "neon8", place + "/__init__.py", submodule_search_locations=[place]
)
sys.modules["neon8"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["neon8"])
from neon8.runtime.worker import main
sys.exit(main(sys.argv[2:]))
"""


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
        """Start the process and open the model.

        target: one of neon8.machines.EMULATIONS; cpu: as its qemu calls it, e.g.
        "cortex-a53"; isa: as in Model.open;
        max_bytes: see Model.open.  shapes: as in Model.at, what is described.
        SetupError: qemu, the sysroot or the library is missing, or the process died.
        ModelError: the runtime refuses the file.
        """
        command, environment = start_command(target, cpu)
        at = "" if shapes is None else json.dumps(dict(shapes))
        command += [str(path), isa or "", str(max_bytes or ""), at]
        self.source = str(path)
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
        self._process = subprocess.Popen(  # noqa: S603 (no shell, our own words)
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._stop = weakref.finalize(self, stop, self._process, self._errors)
        try:
            facts = self._answer().facts
        except BaseException:
            self.close()
            raise
        self.inputs = infos(facts["inputs"])
        self.outputs = infos(facts["outputs"])
        self.bounds = {
            name: tuple(Bounds(**with_tuples(limit)) for limit in limits)
            for name, limits in facts["bounds"].items()
        }
        self.steps = tuple(StepInfo(**with_tuples(step)) for step in facts["steps"])
        self.facts = ModelFacts(**facts["facts"])
        self.memory = Memory(**facts["memory"])
        self.max_bytes = int(facts["max_bytes"])

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
            try:
                message = Message(arrays=dict(zip(self.inputs, arrays, strict=True)))
                send(pipe(self._process.stdin), message)
            except BrokenPipeError:
                raise self._death() from None
            return dict(self._answer().arrays)

    def close(self) -> None:
        """End the process; closing twice is allowed."""
        self._stop()

    def _answer(self) -> Message:
        """The next message of the worker; its errors are raised here."""
        try:
            message = receive(pipe(self._process.stdout))
        except EOFError:
            raise self._death() from None
        if "error" in message.facts:
            kind: type[Neon8Error] = getattr(errors, message.facts["error"])
            raise kind(message.facts["text"])
        return message

    def _death(self) -> SetupError:
        """What the worker said before it ended without an answer."""
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        said = " | ".join(
            [line.strip() for line in lines if line.strip()][-STDERR_LINES:]
        )
        return SetupError(
            f"{self.source}: the emulated process ended with status {status}: "
            f"{said or 'no message'}"
        )


def start_command(target: str, cpu: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a worker.  SetupError: something is missing."""
    if target not in EMULATIONS:
        known = ", ".join(EMULATIONS)
        raise SetupError(f"target {target!r} is not one of {known}, which qemu runs")
    name = EMULATIONS[target].qemu
    qemu = shutil.which(name) or shutil.which(f"{name}-static")
    if qemu is None:
        raise SetupError(f"{name} is not installed; apt-get install qemu-user")
    sysroot = _built("N8_SYSROOT", f"sysroot/{target}", target)
    library = _built(f"N8_{target.upper()}_LIBRARY", f"{target}/libneon8.so", target)
    python = sysroot / "usr" / "bin" / "python3"
    if not python.exists():
        raise SetupError(f"{python} is missing; run 'make sysroot' again")
    # -I: what is in the working directory, or what this user installed, is not for it.
    words = ["-I", *(["-B"] if sys.dont_write_bytecode else []), "-c", PROGRAM]
    return (
        [qemu, "-cpu", cpu, "-L", str(sysroot), str(python), *words, str(PACKAGE)],
        os.environ | {"N8_LIBRARY": str(library.absolute())},
    )


def _built(variable: str, place: str, target: str) -> Path:
    """What a checkout has in its build folder, or what the variable names instead.

    SetupError: it is not there.
    """
    given = os.environ.get(variable)
    path = Path(given) if given else BUILD / place
    if path.exists():
        return path
    if given:
        raise SetupError(f"{path} is missing; correct {variable}")
    if (BUILD.parent / "cross").is_dir():
        raise SetupError(f"{path} is missing; run 'make sysroot {target}'")
    raise SetupError(
        f"{variable} is not set, and an installed neon8 brings no ARM emulation: run "
        f"'make sysroot {target}' in a checkout of neon8 and set N8_SYSROOT to its "
        f"build/sysroot/{target} and N8_{target.upper()}_LIBRARY to its "
        f"build/{target}/libneon8.so"
    )


def stop(process: "subprocess.Popen[bytes]", stderr: IO[bytes]) -> None:
    """End a worker by closing its input, or by force, and leave no zombie."""
    with contextlib.suppress(BrokenPipeError):  # dead, with something left to send
        pipe(process.stdin).close()
    pipe(process.stdout).close()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    stderr.close()


def pipe(stream: IO[bytes] | None) -> BinaryIO:
    """A pipe that Popen was asked for and that is therefore there."""
    return cast("BinaryIO", stream)


def infos(facts: dict[str, dict[str, Any]]) -> dict[str, TensorInfo]:
    """Inputs or outputs as the worker describes them."""
    return {name: TensorInfo(**with_tuples(fact)) for name, fact in facts.items()}


def with_tuples(fact: dict[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, whose tuples JSON has made lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fact.items()
    }
