# SPDX-License-Identifier: Apache-2.0
"""neon8 compile."""

import argparse
from typing import TYPE_CHECKING

from neon8.cli import options
from neon8.settings.reader import add_options
from neon8.settings.stages import CompileSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from neon8.compile.compiler import Compiled
    from neon8.quant.int16_fit import Fit
    from neon8.runtime.arrays import StepInfo


SUMMARY = "turn a network and its scales into an .n8 file"

HELP = """\
examples:
  neon8 compile net.onnx --scales net.scales.json -o net.n8
  neon8 compile net.onnx --scales net.scales.json --io int8 --io-layout nhwc -o net.n8
  neon8 compile net.onnx --scales net.scales.json --keep-float conv1 \\
                --keep-float Gemm -o net.n8
  neon8 compile quantized.onnx -o net.n8
  neon8 compile detector.onnx --scales detector.scales.json -o detector.n8 --cut
  neon8 compile unet.onnx --scales unet.scales.json -o unet.n8
                --shape image=1..8x3x32..1280:32x32..1280:32

A network that was quantized elsewhere, with QuantizeLinear and DequantizeLinear nodes
or with QLinearConv and its likes, has its scales in it and needs no table: they, and
its integer weights, are taken as they are. What it leaves in float stays in float.

--shape NAME=...  with bounds, lo..hi or lo..hi:step, of a dimension that the ONNX file
            leaves open: it stays open in the .n8 file, and ? is 1..1024. Dimensions of
            one name in the ONNX file are one. The network is compiled at about ten
            shapes, to see what depends on the shape and how

--io float  the network takes and gives float32 as the ONNX network does (default)
--io int8   it takes and gives int8; real = scale * (q - zero_point), and
            `neon8 inspect net.n8` prints both numbers. An image stays uint8

--io-layout nchw  inputs and outputs lie as in the ONNX network (default)
--io-layout nhwc  those of four dimensions lie N H W C, as cameras have them, and are
            taken and given as they are: nothing is transposed

--io-image P.toml  the input is a uint8 image, N H W C, as a camera has it. Scale, mean
            and std of the preprocessing become tables of bytes in the file, with the
            result that the float input has; size and color are up to who gives it

--keep-float NAME  a layer by its name in the ONNX file, or all layers of an operator
            such as Conv, run in float32; the command lists them

--accumulator-aware  weight scales grow, each by the least factor with which int16 holds
            any four products of its channel, in layers where that costs less than
            --max-sqnr-loss; kernels without dot products then run faster, but for what
            runs by Winograd without it, see `neon8 inspect`. The table at the end gives
            the signal to noise ratio of each such layer's weights

--cut       nodes that neon8 cannot run (loops, strings, operators of other domains ...)
            stay out of the .n8 file: it gets the largest part without them, by
            multiply-accumulates. Beside it stand net.before.onnx and net.after.onnx, as
            far as there is something, and net.cut.json, with which `neon8 run` and
            `neon8 evaluate` run the whole, onnxruntime doing the rest. `neon8 inspect
            net.onnx` shows the parts beforehand; docs/howto/cut.md tells more

Every accumulator is proved to stay inside int32 for any input; where the
proof fails a weight scale is enlarged, with a warning, and if that does not help the
network is refused. One .n8 file serves every processor.
"""

SHOWN_NAMES = 5
REMEDY = "against that, neon8 calibrate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network, or a quantized one")
    text = "its scale table, from `neon8 calibrate`; a quantized network needs none"
    options.file(parser, "--scales", "M.scales.json", text)
    options.output(parser, "MODEL.n8")
    options.quiet(parser)
    add_options(parser, "network", "compile")


def run(arguments: argparse.Namespace) -> str:
    """Lower, prove, write, and say what came out."""
    from neon8 import text
    from neon8.cli.progress import stages
    from neon8.compile.compiler import compile_network
    from neon8.files import write_all
    from neon8.runtime import Model
    from neon8.runtime.model import MAX_BYTES

    settings = arguments.settings
    with stages(quiet=arguments.quiet) as told:
        compiled = compile_network(arguments.model, arguments.scales, settings, told)
    data = compiled.file
    # Before it is written: what the runtime refuses is of no use to anyone.
    source = str(arguments.output)
    with Model.from_bytes(data, source=source, isa="c", max_bytes=MAX_BYTES) as model:
        steps = model.steps
    files = compiled.files(arguments.output)
    write_all(files)
    convolutions = [step for step in steps if step.operation == "conv2d"]
    done = (
        f"{arguments.output}: {text.counted(len(steps), 'step')}, "
        f"{len(convolutions)} of them convolutions, {text.size(len(data))}, "
        f"{ends_of(settings.compile)}"
    )
    if settings.compile.cut:
        done += f"\n{around(compiled, list(files))}"
    if compiled.islands:
        done += f"\n{in_float(compiled.islands)}"
    if settings.compile.accumulator_aware:
        done += f"\n{grown(compiled.fits)}"
    if compiled.wrapping:
        done += f"\n{wrapped(compiled.wrapping)}"
    if close := ranked(steps, compiled.graph.tensors):
        done += f"\n{close}"
    if not convolutions:
        return done
    widest = max(convolutions, key=lambda step: step.acc_bound)
    return (
        f"{done}\nproved: no accumulator leaves int32; the largest bound is "
        f"{widest.acc_bound} ({100 * widest.acc_bound / 2**31:.2g} % of 2^31) in layer "
        f"{text.printable(widest.name)!r}"
    )


def ends_of(settings: CompileSettings) -> str:
    """What the network takes and gives."""
    if settings.image is None:
        return f"{settings.io} inputs and outputs"
    return f"a uint8 image as input, {settings.io} outputs"


def around(compiled: "Compiled", files: "Sequence[Path]") -> str:
    """What --cut did."""
    from neon8 import text

    found, whole = compiled.cut, compiled.graph
    if found is None:
        nodes = text.counted(len(whole.nodes), "node")
        return f"nothing to cut: neon8 runs the whole network, {nodes}"
    nodes = f"{found.counts[1]} of {text.counted(len(whole.nodes), 'node')}"
    said = f"cut: {nodes}, {found.macs[1]} of {sum(found.macs)} MACs"
    for part, data in (("before", found.before), ("after", found.after)):
        if data is not None:
            (path,) = (p for p in files if p.name.endswith(f".{part}.onnx"))
            said += f"\n  {part} it {path}, {text.counted(data.nodes, 'ONNX node')}"
    return f"{said}\n  run the whole with {files[-1]}"


def in_float(islands: dict[str, str]) -> str:
    """The layers that run in float32, one reason to a line."""
    from neon8 import text

    by_reason: dict[str, list[str]] = {}
    for name, reason in islands.items():
        by_reason.setdefault(reason, []).append(name)
    lines = [f"in float32: {text.counted(len(islands), 'layer')}"]
    lines += [f"  {reason}: {some(names)}" for reason, names in by_reason.items()]
    return "\n".join(lines)


def wrapped(layers: "Sequence[str]") -> str:
    """A line on integers that int32 may not hold."""
    return (
        f"integers may leave int32 in {some(layers)}: they wrap then, where ONNX has "
        "64 bits"
    )


def some(names: "Sequence[str]") -> str:
    """The first of them, and how many more there are."""
    from neon8 import text

    shown = ", ".join(repr(text.printable(name)) for name in names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


RANKED = {"top": 0, "nms": 1}
"""Steps that rank values, and which operand has these."""


def ranked(steps: "Sequence[StepInfo]", named: "Collection[str]") -> str:
    """A line on each layer that ranks int8 values, "" if none does.

    named: the tensors that the user knows.
    """
    from neon8.text import printable

    makers = {step.output: step for step in steps}
    lines = ""
    for step in steps:
        if step.operation not in RANKED:
            continue
        source = step.inputs[RANKED[step.operation]]
        made = makers.get(source)
        if made is not None and made.operation == "dequantize":
            source = made.inputs[0]
            made = makers.get(source)
        if made is not None and made.dtype == "int8":
            while source not in named and source in makers:
                source = makers[source].inputs[0]
            source = printable(source)
            layer = printable(step.name)
            lines += f"\nlayer {layer!r} ranks int8 values: those closer than a step "
            lines += f"may change places; {REMEDY} --precision int16:{source}"
    return lines[1:]


def grown(fits: "Sequence[Fit]") -> str:
    """What --accumulator-aware did and what it left, one layer to a line."""
    from neon8 import text
    from neon8.quant.int16_fit import rows

    done = sum(fit.applied for fit in fits)
    said = f"accumulator-aware: {text.counted(done, 'layer')} with larger weight scales"
    if not fits:
        return said
    header = ("layer", "channels", "factor", "dB", "dB then", "loss", "done")
    return "\n".join((said, *text.columns(rows(fits), header=header)))
