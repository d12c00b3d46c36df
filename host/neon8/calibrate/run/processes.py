# SPDX-License-Identifier: Apache-2.0
"""A pool of worker processes that import nothing from the user's folders.

What multiprocessing spawns looks for modules in the working directory first, where a
user's json.py would be run, and runs the main script again, which without its
`if __name__ == "__main__"` would start processes without end. Ours do neither, and they
have a session of their own, so that Ctrl-C does not reach them: the parent decides.
"""

import os
import subprocess
import sys
import threading
import traceback
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from neon8.calibrate.run.executors import Job, Part, Span, observe_span
from neon8.errors import SetupError

NO_CURRENT_FOLDER = "-P" if sys.version_info >= (3, 11) else "-I"
HOST = Path(__file__).resolve().parents[3]
"""Where the package lies."""
PROGRAM = """
import sys
descriptor, *sys.path[:] = sys.argv[1:]
from neon8.calibrate.run.processes import serve
serve(int(descriptor))
"""


@dataclass(frozen=True, slots=True)
class Worker:
    """A process and our end of its pipe."""

    process: "subprocess.Popen[bytes]"
    pipe: Connection

    def end(self) -> None:
        """Kill it, and leave no zombie."""
        self.process.kill()
        self.process.wait()
        self.pipe.close()


class ProcessPool:
    """`width` processes that serve a job, each fed by a thread.  See executors.Pool."""

    def __init__(self, job: Job, *, width: int) -> None:
        self.width = width
        self._job = job
        self._threads = ThreadPoolExecutor(width)
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._closed = False

    def submit(self, span: Span) -> Future[Any]:
        """See Pool."""
        return self._threads.submit(self._observe, span)

    def result(self, future: Future[Any]) -> Part:
        """See Pool.  SetupError: there is no room for a process."""
        part: Part = future.result()
        return part

    def close(self) -> None:
        """See Pool."""
        with self._lock:
            self._closed = True
            for worker in self._workers:
                worker.process.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.end()

    def _observe(self, span: Span) -> Part:
        """Have a worker observe it.  BrokenExecutor: the worker died of it."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._start()
        try:
            worker.pipe.send(span)
            answer, where = worker.pipe.recv()
        except (EOFError, OSError) as error:
            with self._lock:
                self._workers.remove(worker)
            worker.end()
            raise BrokenExecutor from error
        self._idle.append(worker)
        if isinstance(answer, Part):
            return answer
        raise answer from RuntimeError(where)

    def _start(self) -> Worker:
        flags = [NO_CURRENT_FOLDER, *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            ours, theirs = Pipe()
            with theirs, self._lock:
                if self._closed:
                    raise BrokenExecutor
                number = theirs.fileno()
                process = subprocess.Popen(  # noqa: S603 (no shell, our own words)
                    [
                        sys.executable,
                        *flags,
                        "-c",
                        PROGRAM,
                        str(number),
                        *_import_path(),
                    ],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[number],
                    start_new_session=True,
                )
                worker = Worker(process, ours)
                self._workers.append(worker)
        except OSError as error:
            raise SetupError(
                f"worker processes cannot be started: {error.strerror}: use fewer "
                "--workers, or make room"
            ) from error
        with suppress(OSError):  # if it is dead, the span will show it
            ours.send(self._job)
        return worker


def serve(descriptor: int) -> None:
    """In a worker process: observe spans until the parent dies.

    descriptor: of the pipe that brings the job, then spans, and takes parts or errors.
    """
    pipe = Connection(descriptor)
    job: Job = pipe.recv()
    asked: SimpleQueue[Span] = SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                asked.put(pipe.recv())
        os._exit(1)  # at once, whatever is being observed

    threading.Thread(target=listen, name="neon8-listen", daemon=True).start()
    while True:
        answer: Part | Exception
        where = ""
        try:
            answer = observe_span(job, asked.get())
        except Exception as error:  # noqa: BLE001 - the parent raises it
            answer, where = error, traceback.format_exc()
        with suppress(BrokenPipeError):
            pipe.send((answer, where))


def _import_path() -> list[str]:
    """sys.path without the working directory and the main script's folder."""
    script = getattr(sys.modules["__main__"], "__file__", None) or sys.argv[0]
    users = {os.path.realpath(""), os.path.realpath(Path(script).parent)}
    path = [folder for folder in sys.path if os.path.realpath(folder) not in users]
    ours = str(HOST)
    return path if ours in map(os.path.realpath, path) else [*path, ours]
