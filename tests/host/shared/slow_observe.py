# SPDX-License-Identifier: Apache-2.0
"""`neon8 observe` on slow data, which kills itself where it is told to.

python slow_observe.py SECONDS KILL ARGUMENTS...
python slow_observe.py serve

The second form has all imported when a line of JSON [FILE, SECONDS, KILL, ARGUMENTS...]
is read: it forks, answers with the process id, and at the next line, [], with its
status. FILE is for what the run writes to standard error.

Each new sample takes SECONDS. KILL: "never", "sample:N" (SIGKILL while the N-th sample
that is new to this process is observed), "write:N" (in the middle of the N-th writing
of the journal), "rename:N" (before it is renamed) or "end:0" (before the output is
written).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from neon8.calibrate import calib_file
from neon8.calibrate.run import collector, executors, journal
from neon8.cli import main as cli


def main(seconds, kill, *arguments):
    seconds, kill = float(seconds), kill.split(":")
    counts = dict.fromkeys(("sample", "write", "rename", "end"), 0)

    def event(what):
        if [what, str(counts[what])] == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        counts[what] += 1

    add, fsync, replace, save = (
        collector.Collector.add,
        os.fsync,
        Path.replace,
        calib_file.save,
    )

    def slow_add(taking, sample, digest):
        new = add(taking, sample, digest)
        if new:
            time.sleep(seconds)
            event("sample")
        return new

    def killing_fsync(descriptor):
        # By now the bytes are in the file, but perhaps not on the disk: lose some.
        if kill == ["write", str(counts["write"])]:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        event("write")
        fsync(descriptor)

    def killing_replace(path, target):
        if path.name.endswith(".new"):
            event("rename")
        return replace(path, target)

    def killing_save(observation, path):
        event("end")
        save(observation, path)

    collector.Collector.add = slow_add
    journal.os.fsync = killing_fsync
    Path.replace = killing_replace
    calib_file.save = killing_save
    executors.SECONDS = 0.02  # between writings of the journal, whatever they cost
    executors.Pace.cost = lambda _pace, _seconds: None
    return cli.main(arguments)


def serve():
    import neon8.calibrate.run.run  # noqa: F401 - what each run would import

    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            status = 1
            file, *words = json.loads(line)
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(2, 1)
            try:
                status = main(*words)
            finally:
                os._exit(status)
        print(process, flush=True)
        sys.stdin.readline()
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        sys.exit(main(*sys.argv[1:]))
