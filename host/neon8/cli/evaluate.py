# SPDX-License-Identifier: Apache-2.0
"""neon8 evaluate."""

import argparse
from typing import TYPE_CHECKING

from neon8.cli import options

if TYPE_CHECKING:
    from neon8.evaluate.metrics import Evaluation

SUMMARY = "measure a network, float or int8, on samples"

HELP = f"""\
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

A network with int8 inputs and outputs is fed and read through its own scales. One that
takes an image, of compile --io-image, gets pixels: of --preprocess size, resize and
color count; scale, mean and std are in the network. A reference is for networks that
were compiled without --io-image and --io-layout nhwc, whose values are the same.

{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(
        parser, "MODEL", "the network, MODEL.onnx (FP32, onnxruntime) or MODEL.n8"
    )
    options.data(parser)
    options.shapes(parser)
    parser.add_argument(
        "--reference",
        type=options.existing,
        metavar="MODEL.onnx",
        help="FP32 network to compare with",
    )
    options.target(parser)
    options.as_json(parser)
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Measure a network on samples."""
    import json

    from neon8.cli.progress import watcher
    from neon8.evaluate.metrics import as_json, evaluate_model

    with watcher("evaluate", quiet=arguments.quiet) as watch:
        result = evaluate_model(
            arguments.model,
            arguments.data,
            reference=arguments.reference,
            target=arguments.target,
            cpu=options.cpu_of(arguments),
            isa=arguments.isa,
            max_bytes=arguments.max_bytes,
            shapes=options.shapes_of(arguments),
            preprocess=options.preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            watch=watch,
        )
    return json.dumps(as_json(result)) if arguments.json else as_text(result)


def as_text(result: "Evaluation") -> str:
    """One line a figure, and why a figure is missing."""
    from neon8.text import counted, decimals

    def line(name: str, value: float | None, unit: str, missing: str) -> str:
        note = f"({missing})" if value is None else unit
        return f"{name:<10} {decimals(value)} {note}"

    return "\n".join(
        (
            counted(result.n, "sample"),
            line("top-1", result.top1, "%", "no labels"),
            line("top-5", result.top5, "%", "no labels"),
            line("agreement", result.agreement, "%", "no reference"),
            line("SQNR", result.sqnr_db, "dB", "no reference"),
        )
    )
