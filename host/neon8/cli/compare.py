# SPDX-License-Identifier: Apache-2.0
"""neon8 compare."""

import argparse
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from neon8.cli import options
from neon8.settings.reader import add_options
from neon8.settings.words import shapes_again

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neon8.evaluate.compare import Comparison, Row

SUMMARY = "measure all methods on your own network, and say which to take"

HELP = f"""\
examples:
  neon8 compare net.calib net.onnx --data test.npz
  neon8 compare net.calib net.onnx --data test.npz --target ssh:pi@raspberrypi.local
  neon8 compare net.calib net.onnx --data photos/ --preprocess imagenet.toml \\
      --skip 100 --limit 200 --methods mse kl percentile:99.9 --schemes auto

Every method is solved with every scheme, compiled and run by the int8 library on this
PC, whose results are those of the device to the last bit. Take other samples than for
the calibration. What calibrate does without options is advised unless another setting
is sure to be better; --all shows all of them, the best by SQNR first. With --target,
each setting runs there, too, and a byte that differs from this PC is an error.

SQNR           10 log10(sum ref^2 / sum (ref - out)^2) in dB, of scores without what all
               classes share; of several outputs the mean of their ratios counts; for a
               network that ends in Softmax, of the inputs of the Softmax
gain           in SQNR over what calibrate does without options, taken sample by sample,
               and its 95 % range; all ranges hold together, so that nothing wins only
               because there are many
sure to lose   an output, or what the network is for, that is worse by more than its
               95 % range allows; such a setting is not advised, whatever it gains
agreement      share of samples with the same top-1 as the float network
top-1          share of samples whose label is the largest, if there are labels
guards         with --all: the number of tensors that a guard changed
--json         {{"reference": {{...}}, "rows": [{{"method", "scheme", "guards",
               "failure", "gain_db", "gain_range", "contender", "losses",
               "judged_db", "n", "top1", "top5", "agreement", "sqnr_db", ...}}, ...],
               "advised": {{"method", "scheme", "command"}}}}

{options.METRIC}
{options.CHOOSING}
{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.file(parser, "calibration", "M.calib", "from `neon8 observe`")
    options.model(parser, "MODEL.onnx", "the float network that it was made from")
    options.data(parser)
    parser.add_argument("--all", action="store_true", help="show all settings")
    options.as_json(parser)
    options.quiet(parser)
    add_options(parser, "network", "data", "target", "compare", "judge")


def run(arguments: argparse.Namespace) -> str:
    """Measure every method with every scheme."""
    from neon8.calibrate import calib_file
    from neon8.cli.progress import watcher
    from neon8.evaluate.compare import compare

    settings = arguments.settings
    observation = calib_file.load(arguments.calibration)
    with watcher("compare", quiet=arguments.quiet) as watch:
        found = compare(
            observation,
            arguments.model,
            arguments.data,
            settings=settings,
            watch=watch,
        )
    command = partial(_command, arguments)
    if arguments.json:
        return as_json(found, command)
    shown = as_text(found, command, everything=arguments.all)
    return shown + options.same_there(arguments, "the outputs of all settings")


def _command(arguments: argparse.Namespace, row: "Row") -> str:
    """What makes the table of this setting."""
    from neon8.evaluate.compare import DEFAULT

    settings = arguments.settings
    words = ["neon8", "solve", arguments.calibration, arguments.model]
    for option, value, usual in zip(
        ("--method", "--scheme"), (row.method, row.scheme), DEFAULT, strict=True
    ):
        words += [] if value == usual else [option, value]
    if settings.compare.overrides is not None:
        words += ["--override", settings.compare.overrides]
    words += shapes_again(settings)
    words += ["-o", f"{Path(arguments.model).stem}.scales.json"]
    return shlex.join(map(str, words))


def as_json(found: "Comparison", command: "Callable[[Row], str]") -> str:
    """One object; a row without figures has a failure."""
    import json

    from neon8.text import finite

    rows = [
        {
            "method": row.method,
            "scheme": row.scheme,
            "guards": row.guards,
            "failure": row.failure,
            "gain_db": None if row.gain is None else row.gain.db,
            "gain_range": None if row.gain is None else row.gain.range,
            "contender": row.contender,
            "losses": row.losses,
            "judged_db": row.sqnr_db,
            **({} if row.result is None else finite(row.result)),
        }
        for row in found.rows
    ]
    advised = None
    if found.advised is not None:
        advised = {
            "method": found.advised.method,
            "scheme": found.advised.scheme,
            "command": command(found.advised),
        }
    everything = {"reference": found.reference, "rows": rows, "advised": advised}
    return json.dumps(finite(everything))


def as_text(
    found: "Comparison", command: "Callable[[Row], str]", *, everything: bool = False
) -> str:
    """The rows that matter, or all, what to take, and the command that takes it."""
    from neon8.text import counted

    ran = [row for row in found.rows if row.result is not None]
    shown = found.rows
    if ran and not everything:
        matter = (ran[0], found.advised, found.baseline)
        shown = tuple(row for row in found.rows if row in matter)
    done = (
        f"{counted(found.reference.n, 'sample')}, int8 as on the device; 95 % ranges "
        f"that hold for all of {counted(len(ran), 'setting')} together"
    )
    lines = [done, *_table(found, shown, everything=everything)]
    failed = [row for row in found.rows if row.failure is not None]
    if everything or not ran:
        lines += [f"{row.method}, {row.scheme}: {row.failure}" for row in failed]
    elif failed:
        lines.append(f"{counted(len(failed), 'setting')} did not compile; see --all")
    if found.advised is not None and found.baseline is not None:
        advice = _advice(found.advised, found.baseline, ran)
        lines += [advice, f"  {command(found.advised)}"]
    return "\n".join(lines)


def _table(
    found: "Comparison", shown: "Sequence[Row]", *, everything: bool
) -> list[str]:
    """The advised row is marked."""
    from neon8.text import columns, decimals

    labels = found.reference.top1 is not None
    header = ["", "method", "scheme", "SQNR dB", "gain dB", "agreement %"]
    header += ["top-1 %"] if labels else []
    tasks = _tasks(found)
    header += tasks
    header += ["guards"] if everything else []
    lost = any(row.losses for row in shown)
    header += ["sure to lose in"] if lost else []
    rows = []
    for row in shown:
        result = row.result
        figures: tuple[float | None, ...] = (None, None, None)
        if result is not None:
            figures = row.sqnr_db, result.agreement, result.top1
        sqnr, agreement, top1 = map(decimals, figures)
        gain = "-" if row == found.baseline or row.gain is None else _gain(row)
        mark = "*" if row == found.advised else ""
        cells = [mark, row.method, row.scheme, sqnr, gain, agreement]
        cells += [top1] if labels else []
        own = {} if result is None else {each.name: each.mean for each in result.tasks}
        cells += [f"{own[name]:.4f}" if name in own else "-" for name in tasks]
        cells += [str(row.guards)] if everything else []
        rows.append([*cells, ", ".join(row.losses)] if lost else cells)
    last = ["", "float", "", "-", "-", "-"]
    last += [decimals(found.reference.top1)] if labels else []
    last += ["-"] * len(tasks)
    last += ["-"] if everything else []
    rows.append([*last, ""] if lost else last)
    return columns(rows, header=header)


def _tasks(found: "Comparison") -> list[str]:
    """The tasks but top-1, which has columns of its own."""
    ran = next((row.result for row in found.rows if row.result is not None), None)
    names = [] if ran is None else [each.name for each in ran.tasks]
    return [name for name in names if not name.startswith("top1")]


def _gain(row: "Row") -> str:
    """'+0.42 +- 0.20', empty without one."""
    return "" if row.gain is None else f"{row.gain.db:+.2f} +- {row.gain.range:.2f}"


def _advice(advised: "Row", baseline: "Row", ran: "Sequence[Row]") -> str:
    """What to take, by how much it is better, and what cannot be told."""
    best = next(row for row in ran if not row.losses)  # the baseline loses nothing
    equal = sum(row.contender for row in ran) - 1
    if len(ran) == 1:
        return f"take {_name(advised)}, the only one"
    if advised != baseline:
        text = f"take {_name(advised)}: {_gain(advised)} dB over {_name(baseline)}"
    elif advised == best:
        text = f"take {_name(advised)}, the best of these samples"
    else:
        text = f"take {_name(advised)}: no other is sure to be better"
    if equal == 0:
        return f"{text}; it is sure to be the best of these settings"
    if advised == best:
        return f"{text}; {equal} of the {len(ran) - 1} others may be as good or better"
    more = f"{_name(best)}, the best of these samples, gains {_gain(best)} dB"
    return f"{text}; {more}"


def _name(row: "Row") -> str:
    return f"{row.method} with scheme {row.scheme}"
