# SPDX-License-Identifier: Apache-2.0
"""The grammar of the command line.  Imports nothing heavy: --help is instant."""

import argparse
from pathlib import Path
from typing import NoReturn

from neon8 import __version__
from neon8.errors import Neon8Error

CPUS = ("cortex-a53", "neoverse-n1", "max")
METHODS = ("mse", "kl", "kl2017", "minmax", "percentile")

OVERVIEW = """\
From a float ONNX network to an int8 network on ARM, every step on this PC:

  neon8 calibrate net.onnx --data train.npz -o net.scales.json   choose scales
  neon8 compile   net.onnx --scales net.scales.json -o net.n8    lower, prove, write
  neon8 run       net.n8 --input x.npy -o y.npy --target aarch64 here, or emulated
  neon8 evaluate  net.n8 --data test.npz --reference net.onnx    what int8 costs
"""

DATA = """\
data:
  x.npz               arrays x (and y: labels, one integer a sample)
  x.npy               samples along the first axis
  folder/             .npy files, one sample each, in the order of their names
  folder/             JPEG and PNG images, with an optional labels.txt of lines
                      'file class', which then also gives the order
  uint8 arrays are N H W C images; float32 arrays are what the network takes.

preprocessing, a TOML file; value = (raw * scale - mean) / std, N C H W float32:
  size = [224, 224]           # height, width
  resize = "short"            # none: centre crop only | stretch | short side, then crop
  short = 256                 # for resize = "short"
  color = "rgb"               # rgb | bgr | gray
  scale = 0.00392156862745098
  mean = [0.485, 0.456, 0.406]
  std = [0.229, 0.224, 0.225]
"""

CALIBRATE = f"""\
examples:
  neon8 calibrate net.onnx --data train.npz -o net.scales.json
  neon8 calibrate net.onnx --data photos/ --preprocess imagenet.toml --limit 200 \\
      --method kl -o net.scales.json

The table is JSON, made to be read and edited: change a scale and compile again.

methods:
  mse          least squared error of what is rounded and clipped (default)
  kl           least Kullback-Leibler divergence, exact zeros left out
  kl2017       the pseudo-code published for TensorRT in 2017, to the letter
  minmax       everything that was seen
  percentile   99.99 % of what was seen
schemes:
  auto         unsigned where a tensor is never negative, else asymmetric (default)
  symmetric    zero point 0 everywhere

{DATA}"""

COMPILE = """\
examples:
  neon8 compile net.onnx --scales net.scales.json -o net.n8
  neon8 compile net.onnx --scales net.scales.json --io int8 -o net.n8

--io float  the network takes and gives float32 as the ONNX network does (default)
--io int8   it takes and gives int8; real = scale * (q - zero_point), and
            `neon8 inspect net.n8` prints both numbers

Every accumulator is proved to stay inside int32 for any input; a network for which the
proof fails is refused. One .n8 file serves every processor.
"""

RUN = """\
examples:
  neon8 run net.n8 --input x.npy -o y.npy
  neon8 run net.n8 --input x.npy -o y.npy --target aarch64 --cpu cortex-a53
  neon8 run net.n8 --input x.npy --isa c

X.npy holds one sample, with or without its batch axis, or many along the first axis;
the outputs come in the same order. A network with several inputs takes an .npz with one
array for each; one with several outputs writes an .npz. Without -o a summary is
printed.
A network with int8 inputs takes int8 arrays, in which nothing is converted.

--target aarch64 runs the NEON kernels in an ARM Python under qemu-user, built by
`make setup`; the bytes are the same as on this PC.
"""

EVALUATE = f"""\
examples:
  neon8 evaluate net.onnx --data test.npz
  neon8 evaluate net.n8 --data test.npz --reference net.onnx
  neon8 evaluate net.n8 --data photos/ --preprocess imagenet.toml --limit 500 \\
      --target aarch64 --reference net.onnx --json

top-1, top-5   share of samples whose label is the largest, or among the five largest,
               of the first output; of equal values the lower index counts as larger
agreement      share of samples with the same top-1 as the reference
SQNR           10 log10(sum ref^2 / sum (ref - out)^2) over all outputs, in dB
--json         one object {{"n", "top1", "top5", "agreement", "sqnr_db"}}; percentages
               from 0 to 100; null: no labels, no reference, or no error at all

A network with int8 inputs and outputs is fed and read through its own scales.

{DATA}"""

INSPECT = """\
examples:
  neon8 inspect net.n8                    inputs, outputs, steps, kernels, proofs
  neon8 inspect net.n8 --target aarch64   with the kernels that ARM would choose
  neon8 inspect net.scales.json           scales, ranges, guards that fired
  neon8 inspect build/aarch64/libneon8.so machine, exports, kernels, alignment
"""

CONVERT = """\
example:
  neon8 convert net.scales.json --to ncnn -o net.table

ncnn   the .table of ncnn2int8: 127 / threshold, weights per channel, then inputs. ncnn
       is symmetric and takes the larger end of each range, so calibrate with --scheme
       symmetric for this purpose.
"""


class UsageError(Neon8Error):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as everything else of neon8 does."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        text = f"{message} (see '{self.prog} --help')"
        raise UsageError(text)


def make_parser() -> argparse.ArgumentParser:
    """The whole grammar; the chosen command's name lands in `command`."""
    parser = _Parser(
        prog="neon8",
        description=OVERVIEW,
        epilog="`neon8 COMMAND --help` has examples for each command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"neon8 {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands"
    )

    def add(name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    _calibrate(
        add("calibrate", "choose the scales of a network from samples", CALIBRATE)
    )
    _compile(add("compile", "turn a network and its scales into an .n8 file", COMPILE))
    _run(add("run", "run an .n8 file on arrays", RUN))
    _evaluate(add("evaluate", "measure a network, float or int8, on samples", EVALUATE))
    _inspect(add("inspect", "say what is in a file that neon8 made", INSPECT))
    _convert(add("convert", "write a scale table in another tool's format", CONVERT))
    return parser


def _calibrate(parser: argparse.ArgumentParser) -> None:
    _model(parser, "MODEL.onnx", "the float network")
    _data(parser)
    parser.add_argument(
        "--method", choices=METHODS, default="mse", help="how thresholds are chosen"
    )
    parser.add_argument(
        "--scheme",
        choices=("auto", "symmetric"),
        default="auto",
        help="where zero points may lie",
    )
    _output(parser, "M.scales.json", required=True)
    _quiet(parser)


def _compile(parser: argparse.ArgumentParser) -> None:
    _model(parser, "MODEL.onnx", "the float network")
    parser.add_argument(
        "--scales",
        type=Path,
        required=True,
        metavar="M.scales.json",
        help="its scale table, from `neon8 calibrate`",
    )
    parser.add_argument(
        "--io",
        choices=("float", "int8"),
        default="float",
        help="type of the inputs and outputs (default: float)",
    )
    _output(parser, "MODEL.n8", required=True)


def _run(parser: argparse.ArgumentParser) -> None:
    _model(parser, "MODEL.n8", "the int8 network")
    parser.add_argument(
        "--input",
        type=Path,
        required=True,
        metavar="X.npy",
        help="one sample, or many along the first axis",
    )
    _output(parser, "Y.npy", required=False)
    _target(parser)
    _quiet(parser)


def _evaluate(parser: argparse.ArgumentParser) -> None:
    _model(parser, "MODEL", "the network, MODEL.onnx (FP32, onnxruntime) or MODEL.n8")
    _data(parser)
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="MODEL.onnx",
        help="FP32 network to compare with",
    )
    _target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _quiet(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    _model(parser, "FILE", "MODEL.n8, M.scales.json, libneon8.so or libneon8.a")
    _target(parser)


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", type=Path, metavar="M.scales.json", help="the scale table"
    )
    parser.add_argument("--to", choices=("ncnn",), required=True, help="the format")
    _output(parser, "M.table", required=True)


def _model(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    parser.add_argument("model", type=Path, metavar=metavar, help=text)


def _output(parser: argparse.ArgumentParser, metavar: str, *, required: bool) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=required,
        metavar=metavar,
        help="the file to write; it appears whole or not at all",
    )


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, required=True, metavar="D", help="the samples, see below"
    )
    parser.add_argument(
        "--preprocess",
        type=Path,
        metavar="P.toml",
        help="how images become inputs, see below",
    )
    parser.add_argument(
        "--limit", type=_positive, metavar="N", help="use at most N samples"
    )
    parser.add_argument(
        "--skip",
        type=_not_negative,
        default=0,
        metavar="N",
        help="leave out the first N samples",
    )


def _target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        choices=("native", "aarch64"),
        default="native",
        help="this machine, or ARM through qemu (default: native)",
    )
    parser.add_argument(
        "--cpu", choices=CPUS, help="the core that qemu imitates (default: max)"
    )
    parser.add_argument(
        "--isa",
        choices=("c", "neon"),
        help="force the kernels (default: the best that the processor has)",
    )


def _quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress bar (there is none anyway where stderr is no terminal)",
    )


def _positive(text: str) -> int:
    number = _not_negative(text)
    if number == 0:
        message = "must be at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def _not_negative(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        message = f"{text!r} is not a whole number"
        raise argparse.ArgumentTypeError(message)
    return int(text)
