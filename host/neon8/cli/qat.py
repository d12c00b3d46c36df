# SPDX-License-Identifier: Apache-2.0
"""neon8 qat."""

import argparse
from functools import partial
from pathlib import Path

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "train a PyTorch classifier with the rounding of int8"

HELP = f"""\
examples:
  neon8 qat net.py:build --data train.npz -o net.q.onnx
  neon8 qat net.py:build --data photos/ --preprocess imagenet.toml --epochs 9 \\
      --rate 1e-4 -o net.q.onnx
  neon8 compile net.q.onnx -o net.n8

net.py is your own; build() returns the trained model and the shape of a sample:

  def build():
      model = Net()
      model.load_state_dict(torch.load("net.pt"))
      return model, (3, 224, 224)

It is trained by cross-entropy with Adam, whose rate falls to 0, and frozen for the last
third of the epochs. The file is ONNX with QuantizeLinear and DequantizeLinear and has
its scales inside. For other losses and data put three calls around your own loop:

  from neon8 import qat
  model = qat.prepare(model, images)     # a copy that rounds; images: a real batch
  ...                                    # train it
  model.freeze()                         # keep ranges and statistics
  ...                                    # train a little more
  model.export("net.q.onnx")

docs/qat.md says what is simulated. It needs torch: pip install 'neon8[qat]'.

{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    parser.add_argument(
        "model",
        type=_function,
        metavar="NET.py:FUNCTION",
        help="a Python file, and what in it makes the model",
    )
    options.data(parser)
    options.output(parser, "M.q.onnx")
    options.quiet(parser)
    add_options(parser, "data", "train")


def _function(text: str) -> tuple[Path, str]:
    path, _, function = text.rpartition(":")
    if not path or not function.isidentifier():
        message = f"{text!r} is not of the form net.py:build"
        raise argparse.ArgumentTypeError(message)
    return Path(path), function


def run(arguments: argparse.Namespace) -> str:
    """Train, freeze, export, and say what it changed."""
    import numpy as np

    from neon8.cli.progress import stages
    from neon8.errors import SetupError
    from neon8.text import counted, decimals

    try:
        from neon8.qat import prepare
    except ImportError as error:
        raise SetupError(str(error)) from error
    from neon8.qat.train import scores, train
    from neon8.qat.user import build, read

    path, function = arguments.model
    wanted = arguments.settings.train
    model, shape = build(path, function)
    found = read(arguments.data, shape, arguments.settings)
    images, labels = found.images, found.labels

    def top1(network: object) -> str:
        hits = scores(network, images).argmax(1) == labels.numpy()
        return decimals(100 * float(np.mean(hits)))

    rounded = prepare(model, images[: 8 * wanted.batch], scheme=wanted.scheme)
    before = top1(rounded)
    with stages(quiet=arguments.quiet) as progress:
        train(rounded, images, labels, wanted, partial(progress, "qat"))
    rounded.export(arguments.output)
    return (
        f"{arguments.output}: top-1 of the {counted(len(images), 'sample')}: "
        f"float {top1(model)} %, int8 {before} %, trained with rounding "
        f"{top1(rounded)} %"
    )
