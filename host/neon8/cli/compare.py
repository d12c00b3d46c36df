# SPDX-License-Identifier: Apache-2.0
"""neon8 compare."""

import argparse
from typing import TYPE_CHECKING

from neon8.cli import options
from neon8.quant.scale_table import TABLE_SCHEMES

if TYPE_CHECKING:
    from neon8.evaluate.compare import Comparison

SUMMARY = "measure all methods on your own network"

HELP = f"""\
examples:
  neon8 compare net.calib net.onnx --data test.npz
  neon8 compare net.calib net.onnx --data photos/ --preprocess imagenet.toml \\
      --skip 100 --limit 200 --methods mse kl percentile:99.9 --schemes auto

Every method is solved with every scheme, compiled and run by the int8 library on this
PC, whose results are those of the device to the last bit. Take other samples than for
the calibration. The table has the best by SQNR first.

SQNR           10 log10(sum ref^2 / sum (ref - out)^2) over all outputs, in dB; for a
               network that ends in Softmax, over the inputs of the Softmax
agreement      share of samples with the same top-1 as the float network
guards         number of tensors with a reason code in the table
top-1          share of samples whose label is the largest, if there are labels
--json         {{"reference": {{...}}, "rows": [{{"method", "scheme", "guards",
               "failure", "n", "top1", "top5", "agreement", "sqnr_db"}}, ...]}}

{options.CHOOSING}
{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    parser.add_argument(
        "calibration",
        type=options.existing,
        metavar="M.calib",
        help="from `neon8 observe`",
    )
    options.model(parser, "MODEL.onnx", "the float network that it was made from")
    options.data(parser)
    options.shapes(parser)
    parser.add_argument(
        "--methods",
        type=options.method,
        nargs="+",
        metavar="METHOD",
        help="instead of all",
    )
    parser.add_argument(
        "--schemes",
        choices=TABLE_SCHEMES,
        nargs="+",
        metavar="SCHEME",
        help="instead of auto, symmetric and symmetric_with_uint8",
    )
    options.override(parser)
    options.as_json(parser)
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Measure every method with every scheme."""
    from neon8.calibrate import calib_file, overrides
    from neon8.calibrate.thresholds.methods import COMPARED
    from neon8.cli.progress import watcher
    from neon8.evaluate.compare import SCHEMES, compare

    own = arguments.override
    observation = calib_file.load(arguments.calibration)
    with watcher("compare", quiet=arguments.quiet) as watch:
        found = compare(
            observation,
            arguments.model,
            arguments.data,
            methods=arguments.methods or COMPARED,
            schemes=arguments.schemes or SCHEMES,
            overrides=None if own is None else overrides.load(own),
            shapes=options.shapes_of(arguments),
            preprocess=options.preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            watch=watch,
        )
    return as_json(found) if arguments.json else as_text(found)


def as_json(found: "Comparison") -> str:
    """One object; a row without figures has a failure."""
    import json

    from neon8.evaluate import metrics

    rows = [
        {
            "method": row.method,
            "scheme": row.scheme,
            "guards": row.guards,
            "failure": row.failure,
            **({} if row.result is None else metrics.as_json(row.result)),
        }
        for row in found.rows
    ]
    return json.dumps({"reference": metrics.as_json(found.reference), "rows": rows})


def as_text(found: "Comparison") -> str:
    """A table, the best first and marked, and what stopped those without figures."""
    from neon8.text import columns, counted, decimals

    labels = found.reference.top1 is not None
    header = ["", "method", "scheme", "SQNR dB", "agreement %", "guards"]
    rows = []
    for number, row in enumerate(found.rows):
        result = row.result
        figures: tuple[float | None, ...] = (None, None, None)
        if result is not None:
            figures = result.sqnr_db, result.agreement, result.top1
        sqnr, agreement, top1 = map(decimals, figures)
        best = "*" if number == 0 and result is not None else ""
        rows.append(
            [best, row.method, row.scheme, sqnr, agreement, str(row.guards), top1]
        )
    rows.append(["", "float", "", "-", "-", "-", decimals(found.reference.top1)])
    if labels:
        header.append("top-1 %")
    lines = columns([row[: len(header)] for row in rows], header=header)
    failures = [
        f"{row.method}, {row.scheme}: {row.failure}"
        for row in found.rows
        if row.failure is not None
    ]
    samples = counted(found.reference.n, "sample")
    return "\n".join(
        [f"{samples}, int8 as on the device; * is the best by SQNR", *lines, *failures]
    )
