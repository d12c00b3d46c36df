# SPDX-License-Identifier: Apache-2.0
"""The options that several commands share, and what their values mean.

An option of a single command is in the module of that command. Imports nothing heavy.
"""

import argparse
import math
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from neon8.calibrate.thresholds import methods
from neon8.errors import CalibrationError, DataError, Neon8Error, SetupError
from neon8.files import STDOUT
from neon8.machines import DEFAULT_CPU, EMULATIONS, NATIVE, TARGETS
from neon8.quant.scale_table import BITS, PRECISIONS, TABLE_SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neon8.calibrate.run.run import Options
    from neon8.data.preprocess import Preprocess

MAX_SQNR_LOSS = {"--accumulator-aware": 0.1, "--fast": 6.0}
"""Defaults, in dB, by the option whose cost they limit."""
MOST_DECIBELS = 200

DATA = """\
data:
  x.npz               an array x, x_train, images, data ..., or one for each input of
                      the network under its name; y, y_train, labels ... are classes,
                      one integer per sample
  x.npz:x_test        the array x_test of the file, and the classes y_test
  x.npy               samples along the first axis
  folder/             .npy files, one sample each, in the order of their names
  folder/             JPEG and PNG images; labels.txt, if there, holds lines
                      'file class' and sets the order
  uint8 arrays are images, N H W C; other arrays are what the network takes, and their
  numbers are cast to its type. A network with a fixed batch takes so many samples at
  once; --limit and --skip count single ones, before that, and what does not fill the
  last batch is left out with a warning. A .calib file counts
  the samples of a batch as one.

preprocessing, a TOML file; value = (raw * scale - mean) / std, N C H W float32:
  size = [224, 224]           # height, width
  resize = "short"            # none: centre crop only | stretch | short side, then crop
  short = 256                 # for resize = "short"
  color = "rgb"               # rgb | bgr | gray
  scale = 0.00392156862745098
  mean = [0.485, 0.456, 0.406]
  std = [0.229, 0.224, 0.225]
"""

CHOOSING = f"""\
methods:
{methods.describe()}
  Whatever the method, a range that clips more than 0.1 % of the energy is widened.
schemes:
  auto         unsigned where a tensor is never negative, else asymmetric (default)
  symmetric    zero point 0 everywhere
  unsigned     unsigned where a tensor is never negative, else symmetric, with a warning
  asymmetric   any zero point, for every tensor
  symmetric_with_uint8  unsigned where a tensor is never negative, else symmetric
"""

RECIPE = """\
The weights say more than
ranges, and what follows is done with them unless --plain; the table has all of it:
  step          weights that are multiples of one step, as training with simulated
                rounding leaves them, get that step as their scale
  equalized     channels of very different sizes get factors, which the layers around
                them take into their weights, so that they share one scale well
  absorbed      channels with means far apart, without an activation or padding behind
                them, get offsets, which the biases around them take back
  corrected     what rounded weights take from the mean of a channel is added to its
                bias
"""

PRECISION = """\
--precision int16:NAME  a tensor, or the output of a layer, has 16 bits, or the most
        with which the sums of the layers that read it are proved to fit int32. They,
        sums, pools and moves take it as it is, anything else a copy of 8 bits
--precision float:NAME  it is not quantized: what makes it gives float32, and what reads
        it runs in float32, which costs much more
        Tensors that share a scale share their precision. The table says what was chosen
"""

OVERRIDE = """\
overrides, a JSON file; they win over what the samples say:
  {"tensors": {"input": {"min": -1, "max": 1},
               "conv*": {"threshold": 6},
               "fc": {"scale": 0.05, "zero_point": -128},
               "pool": {"method": "minmax", "scheme": "symmetric"},
               "conv1": {"bits": 16}}}
  A name wins over patterns. Tensors that share a scale share their overrides.
  A range that covers less than a millionth of the values seen is refused.
"""


class UsageError(Neon8Error):
    """The command line itself is wrong."""


class MissedError(Neon8Error):
    """A goal is out of reach, and the command has done what comes nearest to it.

    report: what it prints all the same.
    """

    def __init__(self, text: str, report: str) -> None:
        super().__init__(text)
        self.report = report


def model(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """The file that the command is about."""
    parser.add_argument("model", type=existing, metavar=metavar, help=text)


def plain(parser: argparse.ArgumentParser) -> None:
    """Ranges and absmax only."""
    parser.add_argument(
        "--plain",
        action="store_true",
        help="no steps, no equalization and no bias correction, see above",
    )


def output(
    parser: argparse.ArgumentParser, metavar: str, *, required: bool = True
) -> None:
    """The file that the command writes."""
    parser.add_argument(
        "-o",
        "--output",
        type=output_file,
        required=required,
        metavar=metavar,
        help="the file to write, whole or not at all; - is standard output",
    )


def output_file(text: str) -> Path:
    """A file to write; './-' is a file of that name."""
    return STDOUT if text == "-" else existing(text)


def existing(text: str) -> Path:
    """A path; the empty word, as of a variable that is not set, is none."""
    if not text:
        message = "is empty; is a variable not set?"
        raise argparse.ArgumentTypeError(message)
    return Path(text)


def check_output(output: Path, *inputs: Path | None) -> None:
    """SetupError, before any work is done, for an output that cannot be meant.

    A folder that is missing, a folder in the file's place, or one of the inputs, which
    are None where the user gave none.
    """
    if not output.parent.is_dir():
        raise SetupError(f"{output}: no folder {str(output.parent)!r}; create it first")
    if output.is_dir():
        raise SetupError(f"{output}: is a folder; name a file in it")
    for path in filter(None, inputs):
        known = output.exists() and path.exists()
        if known and output.samefile(path):
            raise SetupError(f"{output}: is an input; name another file to write")


def quiet(parser: argparse.ArgumentParser) -> None:
    """What is said on the way."""
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress, no notes and no warnings; results and errors only",
    )


def data(parser: argparse.ArgumentParser, *, limit: int | None = None) -> None:
    """The samples, and how they become inputs.  limit: how many by default."""
    parser.add_argument(
        "--data",
        type=existing,
        required=True,
        metavar="D",
        help="the samples, see below",
    )
    parser.add_argument(
        "--preprocess",
        type=existing,
        metavar="P.toml",
        help="how images become inputs, see below",
    )
    default = "" if limit is None else f" (default: {limit})"
    parser.add_argument(
        "--limit",
        type=positive,
        default=limit,
        metavar="N",
        help=f"use at most N samples{default}",
    )
    parser.add_argument(
        "--skip",
        type=not_negative,
        default=0,
        metavar="N",
        help="leave out the first N samples",
    )


def shapes(parser: argparse.ArgumentParser) -> None:
    """The dimensions that an ONNX file leaves open."""
    parser.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        dest="shapes",
        metavar="NAME=1,3,224,224",
        help="dimensions of an input of the ONNX file that leaves some open; may be "
        "given for several inputs (default: a free first one is 1)",
    )


def shapes_of(arguments: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """Input -> dimensions, of all --shape.  UsageError: one input twice."""
    found: dict[str, tuple[int, ...]] = {}
    for name, dims in arguments.shapes:
        if found.setdefault(name, dims) != dims:
            raise UsageError(f"--shape: input {name!r} has two shapes")
    return found


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    if not equals or not name:
        message = f"{text!r} is not of the form NAME=1,3,224,224"
        raise argparse.ArgumentTypeError(message)
    return name, tuple(map(positive, sizes.split(",")))


def preprocess_of(arguments: argparse.Namespace) -> "Preprocess | None":
    """The settings in the file of --preprocess.  DataError."""
    if arguments.preprocess is None:
        return None
    from neon8.data.preprocess import Preprocess

    return Preprocess.load(arguments.preprocess)


def data_file(arguments: argparse.Namespace) -> Path:
    """What --data names, without the array in it."""
    from neon8.data.sources import chosen

    return chosen(arguments.data)[0]


def as_json(parser: argparse.ArgumentParser) -> None:
    """The form of the results."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def target(parser: argparse.ArgumentParser) -> None:
    """Where the int8 network runs."""
    parser.add_argument(
        "--target",
        choices=TARGETS,
        default=NATIVE,
        help="this machine, or ARM under qemu (default: native)",
    )
    cores = "; ".join(
        f"{name}: {', '.join(emulation.cpus)}" for name, emulation in EMULATIONS.items()
    )
    parser.add_argument(
        "--cpu",
        choices=dict.fromkeys(c for e in EMULATIONS.values() for c in e.cpus),
        metavar="CORE",
        help=f"the core that qemu emulates, of {cores} (default: {DEFAULT_CPU})",
    )
    parser.add_argument(
        "--isa",
        metavar="LEVEL",
        help="use no kernels above this level: c, vector, avx2, "
        "avx512; neon, dotprod, i8mm "
        "(default: the processor's best)",
    )
    parser.add_argument(
        "--max-bytes",
        type=positive,
        metavar="N",
        help="memory that a model file may ask for (default: 1 GiB)",
    )


def cpu_of(arguments: argparse.Namespace) -> str:
    """The core of --cpu, which only means something under emulation.

    UsageError: it is not a core of the target.
    """
    cpu, target = arguments.cpu, arguments.target
    if cpu is None:
        return DEFAULT_CPU
    fitting = [name for name, e in EMULATIONS.items() if cpu in e.cpus]
    if target == NATIVE:
        remedy = f"add --target {' or '.join(fitting)}"
        raise UsageError(f"--cpu {cpu} is a core that qemu emulates: {remedy}")
    if target not in fitting:
        cores = ", ".join(EMULATIONS[target].cpus)
        raise UsageError(
            f"--cpu {cpu} is a core of {' and '.join(fitting)}, not of {target}, "
            f"whose cores are {cores}"
        )
    return str(cpu)


def side_by_side(parser: argparse.ArgumentParser) -> None:
    """How many samples are run at the same time: run, evaluate."""
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="threads that run samples side by side, each in a session of its own, or "
        "an emulated process; fewer where --max-bytes has no room for so many; the "
        "result is the same (default: one for each processor)",
    )


def observing(parser: argparse.ArgumentParser) -> None:
    """How the network is run on the samples: observe, calibrate."""
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="worker processes, each with one thread and the memory of one session; "
        "never more than there are samples; more than there are processors gains "
        "nothing (default: 1)",
    )
    parser.add_argument(
        "--engine",
        type=_engine,
        metavar="dask://HOST:PORT",
        help="work on a dask.distributed cluster, given its scheduler",
    )
    parser.add_argument(
        "--ignore-nonfinite",
        action="store_true",
        help="count NaN and infinite values that the network computes and go on, "
        "instead of stopping; in samples they are always errors",
    )
    parser.add_argument(
        "--report",
        type=output_file,
        metavar="convergence.json",
        help="write how the thresholds settle, and what set each extreme",
    )
    parser.add_argument(
        "--until-stable",
        type=_percent,
        metavar="PERCENT",
        help="stop when no threshold has moved by more than PERCENT of its range while "
        "the samples doubled; 1 is a good value",
    )


@contextmanager
def run_options(
    arguments: argparse.Namespace, *, shard: tuple[int, int] | None = None
) -> "Iterator[Options]":
    """What observing() and the data say of the run; its progress shows in the block.

    SetupError, DataError: an output that cannot be meant, before any work is done.
    """
    from neon8.calibrate.run.run import Options, no_progress
    from neon8.cli.progress import counter

    inputs = [arguments.model, data_file(arguments), arguments.preprocess]
    check_output(arguments.output, *inputs)
    if arguments.report is not None:
        check_output(arguments.report, *inputs)
        if arguments.report.resolve() == arguments.output.resolve():
            raise DataError(f"{arguments.report}: is the output; name another report")
    percent = arguments.until_stable
    with counter(arguments.command, quiet=arguments.quiet) as progress:
        yield Options(
            preprocess=preprocess_of(arguments),
            shapes=shapes_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            shard=shard,
            ignore_nonfinite=arguments.ignore_nonfinite,
            workers=arguments.workers,
            engine=arguments.engine,
            output=arguments.output,
            report=arguments.report,
            until_stable=None if percent is None else percent / 100,
            progress=progress or no_progress,
        )


def solving(parser: argparse.ArgumentParser) -> None:
    """How the scales are chosen: solve, calibrate."""
    parser.add_argument(
        "--method",
        type=method,
        default="mse",
        help="how thresholds are chosen, see below (default: mse)",
    )
    parser.add_argument(
        "--scheme",
        choices=TABLE_SCHEMES,
        default="auto",
        help="where zero points may lie (default: auto)",
    )
    parser.add_argument(
        "--bits",
        type=int,
        choices=BITS,
        default=8,
        metavar="N",
        help="bits of all activations, 7 to 16; more than 8 are held in int16 "
        "(default: 8)",
    )
    parser.add_argument(
        "--precision",
        type=_precision,
        action="append",
        default=[],
        metavar="int16:NAME",
        help="a tensor, or the output of a layer, with up to 16 bits, or float:NAME in "
        "float32, see below; may be given several times",
    )
    override(parser)


def precision_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Name -> precision, of all --precision.  UsageError: one name with two."""
    found: dict[str, str] = {}
    for precision, name in arguments.precision:
        if found.setdefault(name, precision) != precision:
            raise UsageError(f"--precision: {name!r} has two precisions")
    return found


def _precision(text: str) -> tuple[str, str]:
    precision, _, name = text.partition(":")
    if precision not in PRECISIONS or not name:
        message = f"{text!r} is not of the form int16:NAME or float:NAME"
        raise argparse.ArgumentTypeError(message)
    return precision, name


def override(parser: argparse.ArgumentParser) -> None:
    """The user's own ranges."""
    parser.add_argument(
        "--override",
        type=existing,
        metavar="ranges.json",
        help="your own ranges, which win over what is calibrated",
    )


def max_sqnr_loss(parser: argparse.ArgumentParser, owner: str, *, of: str) -> None:
    """How much of the signal to noise ratio an option may cost.

    owner: the option.  of: what of a layer the ratio is measured on.
    """
    parser.add_argument(
        "--max-sqnr-loss",
        type=_decibels,
        metavar="DB",
        help=f"with {owner}: what it may cost a layer, in dB of the signal to noise "
        f"ratio of its {of} (default: {MAX_SQNR_LOSS[owner]})",
    )


def max_sqnr_loss_of(arguments: argparse.Namespace, owner: str) -> float:
    """The limit, in dB.  UsageError: it is given, and its option `owner` is not."""
    given: float | None = arguments.max_sqnr_loss
    if given is None:
        return MAX_SQNR_LOSS[owner]
    if not getattr(arguments, owner.strip("-").replace("-", "_")):
        text = f"--max-sqnr-loss {given:g} is the limit of {owner}: add that"
        raise UsageError(text)
    return given


def method(text: str) -> str:
    """A method with or without its settings, for argparse."""
    try:
        return str(methods.parse(text))
    except CalibrationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def positive(text: str) -> int:
    """A whole number above 0."""
    number = not_negative(text)
    if number == 0:
        message = "must be at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def not_negative(text: str) -> int:
    """A whole number."""
    if not text.isascii() or not text.isdigit():
        message = f"{text!r} is not a whole number of 0 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = math.nan
    if not 0 < percent <= 100:
        message = f"{text!r} is not a percentage above 0 and up to 100"
        raise argparse.ArgumentTypeError(message)
    return percent


def _decibels(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST_DECIBELS:
        message = f"{text!r} is not a number of dB above 0 and up to {MOST_DECIBELS}"
        raise argparse.ArgumentTypeError(message)
    return value


def _engine(text: str) -> str:
    host, _, port = text.removeprefix("dask://").rpartition(":")
    if not text.startswith("dask://") or not host or not port.isdigit():
        message = f"{text!r} is not of the form dask://HOST:PORT"
        raise argparse.ArgumentTypeError(message)
    return text
