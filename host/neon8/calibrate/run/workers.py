# SPDX-License-Identifier: Apache-2.0
"""Worker processes on this machine, each with its own onnxruntime session."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import neon8
from neon8 import errors
from neon8.calibrate.run.task import Part, Task
from neon8.errors import CalibrationError, Neon8Error

DEATHS = 3
"""A job on which so many workers died is not tried again."""
_PROGRAM = "from neon8.calibrate.run.worker import main; main()"
_Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    start: int
    stop: int
    without: tuple[str, ...]
    deaths: int = 0


class Workers:
    """Executes a task on `count` processes.  See Executor.

    known: digests that no worker need observe.  tick: called behind each sample, from
    any thread.  A worker that dies is replaced and what it was at is done again.
    """

    def __init__(
        self,
        task: Task,
        count: int,
        *,
        known: AbstractSet[str],
        tick: Callable[[], bool],
    ) -> None:
        first = {"task": task.to_json(), "known": sorted(known)}
        self._first = json.dumps(first).encode() + b"\n"
        self._tick = tick
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._results: queue.Queue[Part | Neon8Error] = queue.Queue()
        self._processes: set[_Process] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._drive, daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, start: int, stop: int, without: AbstractSet[str]) -> None:
        """See Executor."""
        self._jobs.put(_Job(start=start, stop=stop, without=tuple(sorted(without))))

    def next(self) -> Part | None:
        """See Executor.  CalibrationError: workers keep dying."""
        try:
            result = self._results.get(timeout=0.1)
        except queue.Empty:
            return None
        if isinstance(result, Neon8Error):
            raise result
        return result

    def close(self) -> None:
        """Kill the workers; what they are at is lost."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _drive(self) -> None:
        """One thread for each worker."""
        process: _Process | None = None
        try:
            while (job := self._jobs.get()) is not None and not self._closed:
                process = process or self._start()
                if process is None:
                    break
                job = self._one(process, job)
                if job is None:
                    continue
                status = self._end(process)
                process = None
                if job.deaths >= DEATHS:
                    self._results.put(CalibrationError(_died(job, status)))
                else:
                    self._jobs.put(job)
        except Neon8Error as error:
            self._results.put(error)
        finally:
            if process is not None:
                self._end(process)

    def _one(self, process: _Process, job: _Job) -> _Job | None:
        """Have one job done; what is left of it if the worker died."""
        stdin, stdout = _pipes(process)
        order = {"start": job.start, "stop": job.stop, "without": job.without}
        try:
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
            while (reply := _reply(stdout)) is not None:
                if "done" in reply:
                    return None
                if "tick" in reply:
                    self._tick()
                elif "error" in reply:
                    raise getattr(errors, reply["kind"])(reply["error"])
                else:
                    data = _exactly(stdout, reply["size"])
                    part = Part.loads(reply["part"], data, source="a worker")
                    self._results.put(part)
                    job = replace(job, start=part.stop)
        except (BrokenPipeError, EOFError):
            pass
        return replace(job, deaths=job.deaths + 1)

    def _start(self) -> _Process | None:
        root = str(Path(neon8.__file__).resolve().parent.parent)
        paths = [root, os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONSAFEPATH": "1",
        }
        with self._lock:
            if self._closed:
                return None
            process = subprocess.Popen(  # noqa: S603 - this Python, our own program
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            self._processes.add(process)
        stdin, _ = _pipes(process)
        with contextlib.suppress(BrokenPipeError):  # the first job will tell
            stdin.write(self._first)
            stdin.flush()
        return process

    def _end(self, process: _Process) -> int:
        """Make sure that it is gone; its status."""
        process.kill()
        for pipe in _pipes(process):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        status = process.wait()
        with self._lock:
            self._processes.discard(process)
        return status


def _pipes(process: _Process) -> tuple[IO[bytes], IO[bytes]]:
    """What it reads and what it writes."""
    return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)


def _reply(pipe: IO[bytes]) -> dict[str, Any] | None:
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    value: dict[str, Any] = json.loads(line)
    return value


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError
    return data


def _died(job: _Job, status: int) -> str:
    how = f"exit status {status}"
    if status < 0:
        how = f"signal {signal.Signals(-status).name}"
    return (
        f"samples {job.start} to {job.stop}: {DEATHS} workers died on them, the last "
        f"one of {how}; if memory is short use fewer --workers"
    )
