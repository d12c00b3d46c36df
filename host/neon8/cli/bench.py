# SPDX-License-Identifier: Apache-2.0
"""neon8 bench."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "measure how long a model takes on a board, layer by layer"

HELP = """\
examples:
  neon8 bench net.n8 --target ssh:pi@raspberrypi.local -o net.bench.json
  neon8 bench net.n8 --target adb --seconds 5 --threads 1 4
  neon8 bench net.n8                                 this machine
  neon8 profile net.n8 --measured net.bench.json

The board needs neither Python nor neon8: a static program and the model go there, and
are removed in the end. The outputs of a first run must have the bytes of this PC. Then
it is measured on each kind of cores, by 1, 2, 4 ... threads pinned to them, and by one
thread with cold caches, for which other data goes through them before each run.

min, median, p95   of the times of the runs; p95: of 100 runs, 95 took no more
MHz, celsius       the highest of its cores and sensors, before and after, where the
                   kernel tells; a clock that fell says that the board is too warm
cycles ...         what the processor counted in each layer, on average of five runs,
                   where perf_event_open is allowed: instructions, refills of the L1
                   and the L2 cache
predicted_ms       what `neon8 profile` says of this core at this clock

-o stores all of it for `neon8 profile --measured` and for later comparisons. Ctrl-C
keeps what has been measured, and ends with status 3. With --target aarch64 or armv7
qemu runs it, which keeps no time: a trial of the command, no measurement.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.n8", "the int8 network")
    options.output(parser, "net.bench.json", required=False)
    options.quiet(parser)
    options.as_json(parser)
    add_options(parser, "network", "target", "bench")


def run(arguments: argparse.Namespace) -> str:
    """Measure a model on a board."""
    from neon8 import text
    from neon8.cli.progress import stages
    from neon8.files import read_file, write_atomic
    from neon8.inspection.bench import described
    from neon8.profile.bench import bench_model
    from neon8.profile.measured import Kind, Row, dumps
    from neon8.profile.profile import predicted

    model, output = arguments.model, arguments.output
    with stages(quiet=arguments.quiet) as told:
        found = bench_model(
            model,
            watch=lambda done, total: told("bench", done, total),
            settings=arguments.settings,
        )
    if output is not None:
        write_atomic(output, dumps(found))
    content = read_file(model)

    def predict(kind: Kind, row: Row) -> list[float]:
        return predicted(content, found, kind, row)

    parts = described(found, predict)
    report = text.as_json(parts) if arguments.json else text.as_text(parts)
    if not found.complete:
        raise options.MissedError("interrupted before all was measured", report)
    return report
