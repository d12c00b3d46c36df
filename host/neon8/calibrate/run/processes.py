# SPDX-License-Identifier: Apache-2.0
"""A pool of worker processes that import nothing from the user's folders.

What the standard library spawns looks for modules in the working directory first, where
a user's json.py would be run, and runs the main script again, which without its
`if __name__ == "__main__"` would start processes without end. Ours do neither.

Spans and parts go through files. A process that is killed while it writes a large
result into the pool's pipe would otherwise leave its reader waiting for ever.
"""

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from multiprocessing import spawn, util
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from neon8.calibrate.run.executors import Job, Part, Span, observe_span
from neon8.errors import SetupError

NO_CURRENT_FOLDER = "-P" if sys.version_info >= (3, 11) else "-I"
STOPPED = "stopped"
"""A file that is there while the parent itself ends the processes."""
HOST = Path(__file__).resolve().parents[3]
"""Where the package lies."""
_CONTEXT = multiprocessing.get_context("spawn")
_SPAWNING = threading.Lock()


class ProcessPool:
    """`width` processes that serve a job.  See executors.Pool.

    SetupError: there is no room for their files or for the processes.
    """

    def __init__(self, job: Job, *, width: int) -> None:
        self.width = width
        self._numbers = count()
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="neon8-")
            self._write("job", job)
        except OSError as error:
            raise _lacking(error) from error
        self._start()

    def submit(self, span: Span) -> Future[Any]:
        """See Pool."""
        number = next(self._numbers)
        try:
            self._write(f"{number}.span", span)
            with _isolated():  # a process is started when all others are busy
                return self._pool.submit(_serve, self._folder.name, number)
        except OSError as error:
            raise _lacking(error) from error

    def result(self, future: Future[Any]) -> Part:
        """See Pool."""
        number: int = future.result()
        path = Path(self._folder.name, f"{number}.part")
        part: Part = _read(path)
        path.unlink()
        return part

    def restart(self) -> None:
        """See Pool."""
        self._stop()
        self._start()

    def close(self) -> None:
        """See Pool."""
        self._stop()
        self._folder.cleanup()

    def _start(self) -> None:
        # The processes end when our end of this pipe is closed, by us or by our death.
        self._theirs, self._ours = _CONTEXT.Pipe(duplex=False)
        with _isolated():
            self._pool = ProcessPoolExecutor(
                self.width,
                mp_context=_CONTEXT,
                initializer=_watch,
                initargs=(self._theirs, self._folder.name),
            )

    def _stop(self) -> None:
        # A pipe is closed before anybody can see that its process is dead.
        mark = Path(self._folder.name, STOPPED)
        with suppress(OSError):  # a full disk; they clear up before we do
            mark.touch()
        self._ours.close()
        self._pool.shutdown(cancel_futures=True)
        self._theirs.close()
        mark.unlink(missing_ok=True)

    def _write(self, name: str, value: Job | Span) -> None:
        Path(self._folder.name, name).write_bytes(pickle.dumps(value))


def _lacking(error: OSError) -> SetupError:
    where = f"{error.filename}: " if error.filename else ""
    text = f"{where}{error.strerror}: use fewer --workers, or make room"
    return SetupError(f"worker processes cannot be started: {text}")


def _watch(theirs: Connection, folder: str) -> None:
    """In each process: end with the parent, and clear up if that was killed."""

    def watch() -> None:
        theirs.poll(None)
        if not Path(folder, STOPPED).exists():
            # Under another name nobody can add files to it, and one process removes it.
            with suppress(OSError):
                shutil.rmtree(Path(folder).rename(f"{folder}.old"))
        os._exit(1)

    # No daemon: a process whose parent died must not end before it has cleared up.
    threading.Thread(target=watch, name="neon8-watch").start()


def _serve(folder: str, number: int) -> int:
    """In a worker process: from the file of a span to that of its part."""
    span = Path(folder, f"{number}.span")
    part = observe_span(_job(folder), _read(span))
    Path(folder, f"{number}.part").write_bytes(pickle.dumps(part))
    span.unlink()
    return number


@lru_cache(maxsize=1)
def _job(folder: str) -> Job:
    job: Job = _read(Path(folder, "job"))
    return job


def _read(path: Path) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301 - only we can write there


@contextmanager
def _isolated() -> Iterator[None]:
    """Processes that this thread starts do not look into the user's folders.

    Nor does Ctrl-C reach them: the parent decides.
    """
    me = threading.get_ident()
    with _SPAWNING:
        flags = util._args_from_interpreter_flags  # type: ignore[attr-defined]  # noqa: SLF001
        prepare = spawn.get_preparation_data

        def our_flags() -> list[str]:
            ours = threading.get_ident() == me
            return [*flags(), NO_CURRENT_FOLDER] if ours else flags()

        def our_preparation(name: str) -> dict[str, Any]:
            data = prepare(name)
            if threading.get_ident() == me:
                data["sys_path"] = _import_path()
                data.pop("init_main_from_name", None)
                data.pop("init_main_from_path", None)
            return data

        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        util._args_from_interpreter_flags = our_flags  # type: ignore[attr-defined]  # noqa: SLF001
        spawn.get_preparation_data = our_preparation
        try:
            yield
        finally:
            spawn.get_preparation_data = prepare
            util._args_from_interpreter_flags = flags  # type: ignore[attr-defined]  # noqa: SLF001
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _import_path() -> list[str]:
    """sys.path without the working directory and the main script's folder."""
    script = getattr(sys.modules["__main__"], "__file__", None) or sys.argv[0]
    users = {os.path.realpath(""), os.path.realpath(Path(script).parent)}
    path = [folder for folder in sys.path if os.path.realpath(folder) not in users]
    ours = str(HOST)
    return path if ours in map(os.path.realpath, path) else [*path, ours]
