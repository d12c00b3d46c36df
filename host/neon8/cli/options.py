# SPDX-License-Identifier: Apache-2.0
"""Arguments and help texts that several commands share, besides settings.

Imports nothing heavy.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neon8.errors import Neon8Error, SetupError
from neon8.machines import NATIVE
from neon8.settings import methods
from neon8.settings.fields import existing, output_file, settings_of
from neon8.settings.reader import argument
from neon8.settings.stages import STAGES

INPUT = argument(existing)
OUTPUT = argument(output_file)
OUTPUTS = ("output", "plot")
"""Arguments that name a file to write; settings say so themselves."""

DATA = """\
data:
  x.npz               an array x, x_train, images, data ..., or one for each input of
                      the network under its name; y, y_train, labels ... are classes,
                      one integer per sample
  x.npz:x_test        the array x_test of the file, and the classes y_test
  x.npy               samples along the first axis
  x.jpg, x.png        one image
  folder/             .npy files, one sample each, in the order of their names
  folder/             JPEG and PNG images; labels.txt, if there, holds lines
                      'file class' and sets the order
  uint8 arrays are images, N H W C; other arrays are what the network takes, cast to
  its type. With bounds in --shape each sample of a folder has its own size; an image
  is cropped to the next smaller that is allowed, or by resize = "stretch" resized to
  the nearest. A network with a fixed batch takes that many samples at once; --limit
  and --skip count single samples, and a last batch that is not full is left out with
  a warning. A .calib file counts the samples of a batch as one.

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
What the weights tell besides ranges is used unless --plain says otherwise; the table
holds all of it:
  step          weights that are multiples of one step, as training with simulated
                rounding leaves them, get that step as their scale
  equalized     channels of very different sizes get factors, which the weights of the
                layers around them absorb, so that one scale suits all
  absorbed      channels whose means lie far apart, with no activation or padding after
                them, get offsets, which the biases around them absorb
  own           values that a Concat joins with much larger ones, and that other layers
                read, too, keep finer steps, and the Concat reads a requantized copy
  corrected     rounding weights shifts the mean of a channel; its bias shifts it back
"""

PRECISION = """\
--precision int16:NAME  a tensor, or the output of a layer, has 16 bits, or as many as
        keep the accumulators of the layers that read it inside int32. These layers,
        additions, pools and moves read it as it is, all others a copy of 8 bits
--precision float:NAME  it is not quantized: the layer that makes it gives float32, and
        those that read it run in float32, which costs much more
--precision weights16:NAME  a layer has weights of 16 bits, or as many as keep its
        accumulators inside int32, at the cost of int16 activations
        Tensors that share a scale share their precision. The table says what was chosen
"""

METRIC = """\
--metric KIND, or KIND=OUTPUT, says what the network is for; larger is better:
    top1         share of samples with the label, or without labels with the reference's
                 class
    boxes        F1 of the reference's boxes, as --detection reads them, which evaluate
                 --help describes
    keypoints    distance of the highest places of maps (N, K, H, W), in cells, below 0
    masks        IoU of (N, classes, H, W), mean of the classes that are there
    embedding    cosine
    text         1 - edit distance / length, of the letters that CTC reads
    sqnr         nothing but SQNR
  or MODULE:FUNCTION of your own, in the working directory or on the path:
  def f(wanted, got, labels) takes the outputs of the reference and of the int8 network
  for one sample, each a dict of arrays, and its labels, a tuple that may be empty, and
  returns a number
"""

OVERRIDE = """\
overrides, a JSON file; what it says wins over the samples:
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
    """A goal is out of reach; the command has done what comes nearest.

    report: the text that it prints all the same.
    """

    def __init__(self, text: str, report: str) -> None:
        super().__init__(text)
        self.report = report


def same_there(arguments: argparse.Namespace, what: str) -> str:
    """A line about what has the same bytes on another target; "" without one."""
    where = arguments.settings.target.target
    return "" if where == NATIVE else f"\n{where}: {what} have the bytes of this PC"


def file(
    parser: argparse.ArgumentParser, name: str, metavar: str, text: str, **more: Any
) -> None:
    """Add a file that the command reads.  more: of argparse."""
    parser.add_argument(name, type=INPUT, metavar=metavar, help=text, **more)


def model(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """Add the file that the command is about."""
    file(parser, "model", metavar, text)


def data(parser: argparse.ArgumentParser) -> None:
    """The samples."""
    text = "the samples: a file, an array in it, or a folder"
    file(parser, "--data", "D", text, required=True)


def output(
    parser: argparse.ArgumentParser, metavar: str, *, required: bool = True
) -> None:
    """Add --output, the file that the command writes."""
    parser.add_argument(
        "-o",
        "--output",
        type=OUTPUT,
        required=required,
        metavar=metavar,
        help="the file to write, whole or not at all; - is standard output",
    )


def quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress, no notes and no warnings; results and errors only",
    )


def as_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def outputs(arguments: argparse.Namespace) -> list[Path]:
    """The files that the command will write."""
    found = [value for value, writes in _values(arguments) if writes]
    return [value for value in found if isinstance(value, Path)]


def check_files(arguments: argparse.Namespace) -> None:
    """Raise SetupError for outputs that cannot be written, before any work is done.

    Their folder is missing, a folder has the name, the file is also an input, or two
    outputs are one file.
    """
    inputs = [
        path
        for value, writes in _values(arguments)
        if not writes
        for path in (value if isinstance(value, list | tuple) else [value])
        if isinstance(path, Path)
    ]
    if getattr(arguments, "data", None) is not None:
        from neon8.data.sources import chosen

        inputs.append(chosen(arguments.data)[0])
    seen: list[Path] = []
    for path in outputs(arguments):
        if not path.parent.is_dir():
            raise SetupError(f"{path}: no folder {str(path.parent)!r}; create it first")
        if path.is_dir():
            raise SetupError(f"{path}: is a folder; name a file in it")
        if any(_same(path, other) for other in inputs):
            raise SetupError(f"{path}: is an input; name another file to write")
        if path.resolve() in seen:
            raise SetupError(f"{path}: is to be written twice; name another file")
        seen.append(path.resolve())


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _values(arguments: argparse.Namespace) -> Iterator[tuple[Any, bool]]:
    """The values of all arguments and settings, and whether each is a file to write."""
    for name, value in vars(arguments).items():
        if "." not in name:
            yield value, name in OUTPUTS
    for stage in getattr(arguments, "stages", ()):
        for name, each in settings_of(STAGES[stage]).items():
            yield getattr(getattr(arguments.settings, stage), name), each.kind.writes
