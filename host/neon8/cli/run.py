# SPDX-License-Identifier: Apache-2.0
"""neon8 run."""

import argparse
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neon8 import text
from neon8.cli.common import check_output, cpu_of
from neon8.cli.progress import watcher
from neon8.cli.run_input import load_arrays, split, taken
from neon8.errors import DataError, ModelError
from neon8.evaluate.runner import Arrays, is_model_file, open_int8
from neon8.files import write_atomic
from neon8.text import counted

SHOWN_SAMPLES = 10


def run(arguments: argparse.Namespace) -> str:
    """Run a model on arrays; write the outputs or say what they are like."""
    if not is_model_file(arguments.model):
        raise ModelError(
            f"{arguments.model}: not an .n8 file; `neon8 compile` makes one from ONNX"
        )
    if arguments.output is not None:
        check_output(arguments.output, arguments.model, arguments.input)
    with (
        open_int8(
            arguments.model,
            target=arguments.target,
            cpu=cpu_of(arguments),
            isa=arguments.isa,
        ) as runner,
        watcher("run", quiet=arguments.quiet) as watch,
    ):
        arrays = load_arrays(arguments.input, list(runner.shapes))
        batches = split(arguments.input, arrays, runner.shapes, runner.dtypes)
        results = [
            runner.run(taken(arguments.input, batch, runner.dtypes))
            for batch in watch(batches)
        ]
    outputs = {
        name: np.concatenate([result[name] for result in results])
        for name in results[0]
    }
    if arguments.output is None:
        return summary(results)
    write_atomic(arguments.output, as_bytes(arguments.output, outputs))
    shapes = ", ".join(
        f"{text.printable(name)} {array.dtype} {text.shape(array.shape)}"
        for name, array in outputs.items()
    )
    return f"{arguments.output}: {counted(len(results), 'run')}: {shapes}"


def as_bytes(path: Path, outputs: Arrays) -> bytes:
    """The outputs as an .npy file, or as an .npz file where the name says so.

    DataError: several outputs do not go into one .npy file.
    """
    buffer = io.BytesIO()
    if path.suffix == ".npz":
        # Not np.savez: its own arguments are names that an output may have.
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, array in outputs.items():
                member = zipfile.ZipInfo(f"{name}.npy")
                with archive.open(member, "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    elif len(outputs) == 1:
        np.save(buffer, next(iter(outputs.values())), allow_pickle=False)
    else:
        raise DataError(
            f"{path}: the network has {len(outputs)} outputs: write an .npz"
        )
    return buffer.getvalue()


def summary(results: list[Arrays]) -> str:
    """A line for each output of the first samples."""
    rows = list(_rows(results[:SHOWN_SAMPLES]))
    header = ("run", "output", "type", "shape", "min", "max", "largest at")
    lines = text.columns(rows, header=header)
    if len(results) > SHOWN_SAMPLES:
        lines.append(
            f"  ... and {len(results) - SHOWN_SAMPLES} more; -o keeps them all"
        )
    return "\n".join(lines)


def _rows(results: list[Arrays]) -> Iterator[tuple[str, ...]]:
    for number, result in enumerate(results):
        for name, array in result.items():
            low, high = (float(value) for value in (array.min(), array.max()))
            yield (
                str(number),
                name,
                str(array.dtype),
                text.shape(array.shape),
                text.number(low),
                text.number(high),
                str(int(array.argmax())),
            )
