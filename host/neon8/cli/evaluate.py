# SPDX-License-Identifier: Apache-2.0
"""neon8 evaluate."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from neon8.cli import options
from neon8.settings.reader import add_options
from neon8.settings.words import preprocess_again, shapes_again

if TYPE_CHECKING:
    from neon8.evaluate.confidence import Interval
    from neon8.evaluate.detection import Detections
    from neon8.evaluate.metrics import Evaluation
    from neon8.evaluate.tasks import TaskFigures

FAIR_F1 = 97.0
FAIR_LOSS = 0.5
FAIR_DB = 20.0
"""Below these int8 loses much: percent, points of top-1 that are sure, dB."""

SUMMARY = "measure a network, float or int8, on samples"

HELP = f"""\
examples:
  neon8 evaluate net.onnx --data test.npz
  neon8 evaluate net.n8 --data test.npz --reference net.onnx
  neon8 evaluate net.n8 --data photos/ --preprocess imagenet.toml --limit 500 \\
      --target aarch64 --reference net.onnx --json
  neon8 evaluate net.n8 --data test.npz --target ssh:pi@raspberrypi.local
  neon8 evaluate faces.n8 --data photos/ --preprocess p.toml --reference faces.onnx \\
      --detection boxes=loc,scores=conf,form=offsets
  neon8 evaluate net.n8 --data test.npz --reference net.onnx --metric mine:accuracy

The first line names the output that loses most, and what becomes of what the network is
for.

top-1, top-5   share of samples whose label is the largest, or among the five largest,
               of the first output; of equal values the lower index counts as larger.
               +- is the standard error: a share of 100 samples says little
change         top-1 less that of the reference, with its 95 % interval; how many
               samples either network alone gets right, and by how likely a chance they
               would be split so if both were as good (McNemar's test)
agreement      share of samples with the same top-1 as the reference, 95 % interval
SQNR           10 log10(sum ref^2 / sum (ref - out)^2) over all outputs, in dB
... centred    the same of the scores alone, less what all classes of a sample share,
               which decides nothing; probabilities are compared by their logarithms
dNLL           mean rise of the label's negative log likelihood, with standard error
ties           samples of which several classes share the largest score
task           what the network is for, as its outputs show or --metric says, the
               reference taken for true: mean over samples, 95 % interval; see below
boxes          of a detector: what each network finds that the other finds, too

docs/evaluation.md has the formulas. With several outputs, each has a line of its own.

--label-offset N  is added to the labels: 1 if class 0 of the network is a background
                  that the labels do not count, -1 if labels count from 1
--detection  KEY=VALUE,... says how the outputs of a detector are read, where the first
             sample does not show it; none: they are not
    boxes=NAME,scores=NAME  outputs of N boxes [N, 4] and their scores [N, C], or
    output=NAME  one that has both, [N, 5 + C] (YOLO) or [4 + C, N] (YOLOv8)
    form         corners (x1, y1, x2, y2), centre (x, y, width, height), grid (x, y, log
                 width, log height in cells: YOLOX), or offsets of an SSD, which are
                 compared anchor by anchor
    background   which class is no object: first, last, none
    objectness   yes, no: the value after the box multiplies the scores
    threshold    of the scores (default: 0.5)
{options.METRIC}
--json         one object; shares are percentages from 0 to 100; null: no labels, no
               reference, or no error at all

A network with int8 or int16 inputs and outputs is fed and read through its own scales.
One that was compiled with --io-image takes pixels: size, resize and color of
--preprocess count; scale, mean and std are in the network. To compare with a
reference, compile without --io-image and --io-layout nhwc; the values are the same.
NET.cut.json, from `neon8 compile --cut`, is judged by the outputs of the whole network,
but for those whose size depends on the data.

{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(
        parser,
        "MODEL",
        "the network, MODEL.onnx (FP32, onnxruntime), MODEL.n8 or NET.cut.json",
    )
    options.data(parser)
    options.as_json(parser)
    options.quiet(parser)
    add_options(parser, "network", "data", "target", "run", "evaluate", "judge")


def run(arguments: argparse.Namespace) -> str:
    """Measure a network on samples."""
    import json

    from neon8.cli.progress import watcher
    from neon8.evaluate.evaluate import evaluate_model
    from neon8.text import finite

    model, data, settings = arguments.model, arguments.data, arguments.settings
    with watcher("evaluate", quiet=arguments.quiet) as watch:
        result = evaluate_model(model, data, settings=settings, watch=watch)
    if arguments.json:
        return json.dumps(finite(result))
    return "\n".join([as_text(result), *_remedy(arguments, result)])


def as_text(result: "Evaluation") -> str:
    """One line a figure, and why a figure is missing."""
    from neon8.text import columns, decimals

    def share(name: str, value: float | None, more: str = "") -> str:
        said = "(no labels)" if value is None else f"%{more}"
        return f"{name:<10} {decimals(value)} {said}"

    lines = [
        _headline(result),
        share("top-1", result.top1, _top1(result)),
        share("top-5", result.top5),
        *_compared(result),
    ]
    ties = f"{result.ties} of {result.n}"
    if result.reference_ties is not None:
        ties += f", of the reference {result.reference_ties}"
    lines.append(f"{'ties':<10} {ties}")
    if len(result.outputs) > 1:
        table = result.by_output()
        lines += columns(table.rows, header=table.header)
    lines += _tasks(result)
    if result.detection is not None:
        lines += _boxes(result.detection)
    if result.hint is not None:
        lines.append(f"hint: {result.hint}")
    return "\n".join(lines)


def _remedy(arguments: argparse.Namespace, result: "Evaluation") -> list[str]:
    """What brings more accuracy to an int8 network that lost much."""
    settings = arguments.settings
    reference = settings.evaluate.reference
    lost = _lost(result)
    made = [Path(str(path or "")).suffix for path in (arguments.model, reference)]
    if not lost or made != [".n8", ".onnx"]:
        return []
    from neon8.refine.diagnosis import CALIBRATION_DATA

    words = ["neon8", "calibrate", reference, "--data", CALIBRATION_DATA]
    words += [*preprocess_again(settings), *shapes_again(settings)]
    words += ["--max-cost", "1.25", "-o", f"{Path(reference).stem}.scales.json"]
    said = f"hint: {lost}: int8 loses much here; int16 where it gains most may bring it"
    return [f"{said} back:", f"      {shlex.join(map(str, words))}"]


def _lost(result: "Evaluation") -> str:
    """The figure that says so, "" if the network keeps what matters."""
    from neon8.text import printable

    found = result.detection
    if found is not None and found.f1 is not None:
        return f"F1 of boxes {found.f1:.2f} %" if found.f1 < FAIR_F1 else ""
    if result.change_range is not None:
        sure = result.change_range.high < -FAIR_LOSS
        return f"top-1 changes by {result.change:+.2f} points" if sure else ""
    for output in result.outputs:
        if output.name == result.worst and output.judged_db < FAIR_DB:
            return f"output {printable(repr(output.name))} {output.judged_db:.2f} dB"
    return ""


def _headline(result: "Evaluation") -> str:
    """What loses most stands first."""
    from neon8.text import counted, decimals, printable

    said = [counted(result.n, "sample")]
    if result.worst is not None:
        (worst,) = (each for each in result.outputs if each.name == result.worst)
        which = "worst output" if len(result.outputs) > 1 else "output"
        name = printable(repr(worst.name))
        said.insert(0, f"{which} {name}, {decimals(worst.judged_db)} dB")
    found = result.detection
    if found is not None and found.f1 is not None:
        said.insert(-1, f"F1 of boxes {found.f1:.2f} %")
    said[-1:-1] = [
        f"{each.name} {each.mean:.4f}"
        for each in _shown(result)
        if each.name != "boxes" or found is None
    ]
    return "; ".join(said)


def _shown(result: "Evaluation") -> "list[TaskFigures]":
    """The tasks but top-1, which has lines of its own."""
    return [each for each in result.tasks if not each.name.startswith("top1")]


def _tasks(result: "Evaluation") -> list[str]:
    """What the network is for, with its range."""
    lines = []
    for each in _shown(result):
        said = f"{each.mean:.4f}"
        if each.name == "boxes":
            said = f"F1 {said}, mean of the samples"
        if each.low is not None and each.high is not None:
            said += f", 95 %: {each.low:.4f} to {each.high:.4f}"
        lines.append(f"{'task':<10} {each.name} {said}")
    return lines


def _top1(result: "Evaluation") -> str:
    said = "" if result.top1_error is None else f" +- {result.top1_error:.2f}"
    if result.reference_top1 is not None:
        said += f", of the reference {result.reference_top1:.2f} %"
    return said


def _compared(result: "Evaluation") -> list[str]:
    """What int8 changes."""
    from neon8.text import decimals

    def line(name: str, said: str) -> str:
        return f"{name:<10} {said}"

    def interval(given: "Interval") -> str:
        return f"95 %: {given.low:.2f} to {given.high:.2f}"

    lines = []
    if result.change_range is not None:
        split = f"{result.gained} gained, {result.lost} lost, p = {result.p:.2g}"
        change = f"{result.change:+.2f} points, {interval(result.change_range)}"
        lines.append(line("change", f"{change}; {split}"))
    if result.sqnr_db is None:
        missing = "- (no reference)"
        return [line("agreement", missing), line("SQNR", missing)]
    share = "- (the first output is no vector of scores)"
    if result.agreement_range is not None:
        share = f"{decimals(result.agreement)} %, {interval(result.agreement_range)}"
    sqnr = f"{decimals(result.sqnr_db)} dB"
    if result.sqnr_centred_db is not None and result.scores is not None:
        read = f"({result.scores.kind}: {result.scores.why})"
        sqnr += f", centred {decimals(result.sqnr_centred_db)} dB {read}"
    lines += [line("agreement", share), line("SQNR", sqnr)]
    if result.dnll is not None:
        error = "" if result.dnll_error is None else f" +- {result.dnll_error:.4f}"
        lines.append(line("dNLL", f"{result.dnll:+.4f}{error}"))
    return lines


def _boxes(found: "Detections") -> list[str]:
    """What both networks find."""
    from neon8.text import decimals, printable

    said = f"{found.matched} of the {found.reference_boxes} of the reference "
    said += f"({decimals(found.found)} %) and of the {found.boxes} here "
    said += f"({decimals(found.confirmed)} %)"
    if found.f1 is not None:
        said += f", F1 {found.f1:.2f} %"
    if found.iou is not None:
        said += f", mean IoU {found.iou:.3f}"
    how = f"{printable(found.how)}; scores from {found.threshold:g}"
    return [f"{'boxes':<10} {said}", f"{'':<10} {how}"]
