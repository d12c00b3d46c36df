# SPDX-License-Identifier: Apache-2.0
"""neon8 run."""

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from neon8.cli import options
from neon8.settings.reader import add_options

if TYPE_CHECKING:
    from neon8.data.arrays import Arrays

SUMMARY = "run an .n8 file on arrays"

HELP = """\
examples:
  neon8 run net.n8 --input x.npy -o y.npy
  neon8 run net.n8 --input x.npy -o y.npy --target aarch64 --cpu cortex-a53
  neon8 run net.n8 --input x.npy -o y.npy --target armv7 --cpu cortex-a9
  neon8 run net.n8 --input photos/ -o y.npz --target ssh:pi@raspberrypi.local
  neon8 run net.n8 --input x.npy --isa c
  neon8 run net.n8 --input photo.jpg --preprocess imagenet.toml
  neon8 run net.cut.json --input x.npy -o y.npz

X.npy holds one sample, with or without its batch axis, or many along the first axis;
the outputs come in the same order. It may be an image, too, or a folder of images or of
.npy files. An image is resized only if the network does not take its size, to the
nearest that it takes; --preprocess says what else is to be done with its pixels.

A network with several inputs takes an .npz with one array for each, under its name; one
with several outputs writes an .npz. Without -o a summary is printed. A network with
int8 inputs takes int8 arrays as they are. Where dimensions are open, as `neon8 inspect`
shows, each sample has its own.

NET.cut.json, from `neon8 compile --cut`, is a network of which onnxruntime runs what
stands before and after the .n8 file; with --target, the .n8 file alone runs there.

--target aarch64, and armv7 for 32-bit ARM, run the NEON kernels under qemu-user; the
bytes are the same as on this PC. In a checkout of neon8 `make aarch64 armv7` builds
them; an installed neon8 brings them along.

--target ssh:[user@]host[:port], and adb[:serial] for Android, run it on a board, which
needs neither Python nor neon8: a static program, the model and batches of samples go
there, and all is removed in the end. ssh must let you in without a password. The bytes
that come back are compared with those of this PC, and others are an error.
"""

SHOWN_RUNS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.n8", "the int8 network, or NET.cut.json")
    text = "one sample, or many along the first axis; or an image, or a folder"
    options.file(parser, "--input", "X.npy", text, required=True)
    options.output(parser, "Y.npy", required=False)
    options.quiet(parser)
    add_options(parser, "target", "data", "run")


def run(arguments: argparse.Namespace) -> str:
    """Run a model on arrays; write the outputs or say what they are like."""
    import numpy as np

    from neon8 import text
    from neon8.calibrate.run.threads import cores
    from neon8.cli.progress import watcher
    from neon8.data.arrays import open_runs, to_bytes
    from neon8.data.parallel import side_by_side
    from neon8.errors import DataError, ModelError
    from neon8.files import write_atomic
    from neon8.runtime.targets import is_model_file, open_model

    model, inputs, output = arguments.model, arguments.input, arguments.output
    if not is_model_file(model):
        raise ModelError(
            f"{model}: not an .n8 file; `neon8 compile` makes one from ONNX"
        )
    settings = arguments.settings
    with (
        open_model(model, settings.target) as runner,
        watcher("run", quiet=arguments.quiet) as watch,
    ):
        taken = runner.taken(runner.dtypes)
        samples = open_runs(inputs, taken, settings.data)
        workers = min(settings.run.workers or runner.best or cores(), runner.most)
        several = side_by_side(
            samples, lambda sample: runner.run(sample.inputs), workers=workers
        )
        with several as found, ExitStack() as ending:
            ending.callback(runner.stop)  # before waiting for the threads
            results = list(watch(found))
    if output is None:
        return summary(results)
    try:
        outputs = {
            name: np.concatenate([np.atleast_1d(result[name]) for result in results])
            for name in results[0]
        }
    except ValueError as error:
        differ = "the sizes of its outputs differ from run to run"
        differ += "; give samples of one size, or leave out -o"
        raise DataError(f"{model}: {differ}") from error
    write_atomic(output, to_bytes(output, outputs))
    shapes = ", ".join(
        f"{text.printable(name)} {array.dtype} {text.shape(array.shape)}"
        for name, array in outputs.items()
    )
    return f"{output}: {text.counted(len(results), 'run')}: {shapes}"


def summary(results: "list[Arrays]") -> str:
    """A line for each output of the first runs."""
    from neon8 import text

    rows = [
        (
            str(number),
            name,
            str(array.dtype),
            text.shape(array.shape),
            text.number(float(array.min())) if array.size else text.UNKNOWN,
            text.number(float(array.max())) if array.size else text.UNKNOWN,
            str(int(array.argmax())) if array.size else text.UNKNOWN,
        )
        for number, result in enumerate(results[:SHOWN_RUNS])
        for name, array in result.items()
    ]
    header = ("run", "output", "type", "shape", "min", "max", "largest at")
    lines = text.columns(rows, header=header)
    if len(results) > SHOWN_RUNS:
        lines.append(f"  ... and {len(results) - SHOWN_RUNS} more; -o keeps them all")
    return "\n".join(lines)
