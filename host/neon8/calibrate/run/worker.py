# SPDX-License-Identifier: Apache-2.0
"""A worker process: lines of JSON in, lines of JSON and .calib bytes out.

First comes {"task", "known"}, then jobs {"start", "stop", "without"}. To each job it
answers some parts, {"part", "size"} and so many bytes, and {"done"}; or {"error",
"kind"} and then dies. A line {"tick"} goes with every sample.
"""

import json
import os
import signal
import sys
import time
from typing import IO, Any

from neon8.calibrate.run.task import Pace, Task, observe_parts, open_task
from neon8.errors import Neon8Error


def main() -> None:
    """Serve until standard input ends, that is until the parent closes it or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    # Nothing else may write to what the parent reads.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _serve(sys.stdin.buffer, output)
    except Neon8Error as error:
        _say(output, {"error": str(error), "kind": type(error).__name__})
    except BrokenPipeError:
        os._exit(0)


def _serve(source: IO[bytes], output: IO[bytes]) -> None:
    first = json.loads(source.readline())
    opened = open_task(Task.from_json(first["task"]), threads=1)
    known = set(first["known"])
    pace = Pace()

    def tick() -> bool:
        _say(output, {"tick": 1})
        return True

    for line in source:
        job = json.loads(line)
        without = known.union(job["without"])
        for part in observe_parts(
            opened, job["start"], job["stop"], without=without, pace=pace, tick=tick
        ):
            began = time.monotonic()
            head, data = part.dumps()
            _say(output, {"part": head, "size": len(data)}, data)
            # The parent reads and merges it, which takes about as long again.
            pace.cost(3 * (time.monotonic() - began))
        _say(output, {"done": 1})


def _say(output: IO[bytes], value: dict[str, Any], data: bytes = b"") -> None:
    output.write(json.dumps(value).encode() + b"\n" + data)
    output.flush()
