# SPDX-License-Identifier: Apache-2.0
"""The grammar of the command line.  Imports nothing heavy: --help is instant."""

import argparse
from pathlib import Path
from typing import NoReturn

from neon8.cli import options_calibration as cli_calibration
from neon8.cli.help import (
    CALIBRATE,
    COMPARE,
    COMPILE,
    CONVERT,
    EVALUATE,
    INSPECT,
    OVERVIEW,
    RUN,
)
from neon8.cli.help_calibration import MERGE, OBSERVE, SOLVE
from neon8.cli.options_calibration import not_negative, positive
from neon8.cli.options_methods import method
from neon8.errors import Neon8Error
from neon8.formats.registry import NAMES as FORMATS
from neon8.quant.scale_table import TABLE_SCHEMES
from neon8.version import __version__

CPUS = ("cortex-a53", "neoverse-n1", "max")


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
    _observe(add("observe", "collect statistics from samples", OBSERVE))
    _merge(add("merge", "make one file of what several runs observed", MERGE))
    _solve(add("solve", "choose the scales from what was observed", SOLVE))
    _compile(add("compile", "turn a network and its scales into an .n8 file", COMPILE))
    _run(add("run", "run an .n8 file on arrays", RUN))
    _evaluate(add("evaluate", "measure a network, float or int8, on samples", EVALUATE))
    _compare(add("compare", "measure all methods on your own network", COMPARE))
    _inspect(add("inspect", "say what is in a file that neon8 made", INSPECT))
    _convert(add("convert", "turn one tool's scales into another's", CONVERT))
    return parser


def _calibrate(parser: argparse.ArgumentParser) -> None:
    _model(parser, "MODEL.onnx", "the float network")
    _data(parser)
    cli_calibration.observing(parser)
    cli_calibration.solving(parser)
    _output(parser, "M.scales.json", required=True)
    _quiet(parser)


def _observe(parser: argparse.ArgumentParser) -> None:
    _model(parser, "MODEL.onnx", "the float network")
    _data(parser)
    cli_calibration.shard(parser)
    cli_calibration.observing(parser)
    _output(parser, "M.calib", required=True)
    _quiet(parser)


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="A.calib", help="what observe wrote"
    )
    _output(parser, "M.calib", required=True)


def _solve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "calib", type=Path, metavar="M.calib", help="what observe or merge wrote"
    )
    cli_calibration.solving(parser)
    _output(parser, "M.scales.json", required=True)


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


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "calibration", type=Path, metavar="M.calib", help="from `neon8 observe`"
    )
    _model(parser, "MODEL.onnx", "the float network that it is of")
    _data(parser)
    parser.add_argument(
        "--methods", type=method, nargs="+", metavar="METHOD", help="instead of all"
    )
    parser.add_argument(
        "--schemes",
        choices=TABLE_SCHEMES,
        nargs="+",
        help="instead of auto, symmetric and symmetric_with_uint8",
    )
    parser.add_argument(
        "--override",
        type=Path,
        metavar="RANGES.json",
        help="your own ranges for some tensors",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _quiet(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    _model(parser, "FILE", "MODEL.n8, M.scales.json, libneon8.so or libneon8.a")
    _target(parser)


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=Path, metavar="A", help="the calibration file")
    parser.add_argument(
        "--from",
        dest="source_format",
        choices=FORMATS,
        metavar="F",
        help="its format (default: the content tells)",
    )
    parser.add_argument(
        "--to", choices=FORMATS, required=True, metavar="G", help="the other format"
    )
    files = (
        ("--names", "MAP.json", "old names -> new ones"),
        ("--model", "MODEL.onnx", "the float network, for what A does not say"),
        ("--onto", "M.scales.json", "our table, for scales that A does not have"),
        ("--ncnn-param", "NET.param", "name ncnn's entries after its layers"),
    )
    for option, metavar, text in files:
        parser.add_argument(option, type=Path, metavar=metavar, help=text)
    parser.add_argument(
        "--trt-version", metavar="V", help="of the header: 8.6.1, or 8601"
    )
    _output(parser, "B", required=True)


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
        "--limit", type=positive, metavar="N", help="use at most N samples"
    )
    parser.add_argument(
        "--skip",
        type=not_negative,
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
        metavar="LEVEL",
        help="force the kernels, as in 'c' or 'neon' (default: the processor's best)",
    )


def _quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress bar (there is none anyway where stderr is no terminal)",
    )
