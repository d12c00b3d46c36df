# SPDX-License-Identifier: Apache-2.0
"""neon8 report."""

import argparse
from typing import TYPE_CHECKING

from neon8.cli import options
from neon8.report.figures import condition, describe
from neon8.settings.reader import add_options, argument

if TYPE_CHECKING:
    from neon8.report.facts import Report

SUMMARY = "write all that is known of an int8 network into one file"

FORMATS = {".md": "markdown", ".json": "json"}
"""By the end of a file's name; others are HTML."""

HELP = f"""\
examples:
  neon8 report net.onnx net.scales.json net.n8 --data test.npz -o report.html
  neon8 report net.onnx net.scales.json net.n8 --data photos/ --preprocess p.toml \\
      --calib net.calib --boards rpi3b+ rpi5 --target aarch64 -o report.html
  neon8 report net.onnx new.scales.json new.n8 --data test.npz \\
      --compare old.scales.json --fail-if "loss > 0.5" --fail-if "worse > 0" -o r.md

It measures as evaluate and diagnose do: what int8 costs and where, layer by layer with
kernels, scales, weights, guards and remedies, and the samples that lose most. The HTML
file needs no network and no other file. Take other samples than for the calibration.
The diagnosis takes the first 20 of them. The int8 network runs here, with the bytes of
the device; --target and --cpu say whose kernels are named, and --boards for which
boards the time of a run is estimated, as `neon8 profile` does.

--fail-if "NAME OPERATOR NUMBER", with > >= < <= == or !=, may be given several times.
The report is written all the same, and the exit status is 3 if one holds. NAME is
{describe()}

{options.METRIC}
{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network")
    options.file(parser, "table", "M.scales.json", "its scale table")
    text = "what was compiled from both, or NET.cut.json of a network that was cut"
    options.file(parser, "compiled", "M.n8", text)
    options.data(parser)
    options.output(parser, "FILE")
    parser.add_argument(
        "--format",
        choices=("html", *FORMATS.values()),
        help="of the file (default: by its name; .md, .json, else HTML)",
    )
    parser.add_argument(
        "--fail-if",
        type=argument(condition),
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit with status 3 if it holds, as "loss > 0.5"',
    )
    options.quiet(parser)
    stages = ("network", "data", "target", "run", "evaluate", "judge")
    add_options(parser, *stages, "diagnose", "report")


def run(arguments: argparse.Namespace) -> str:
    """Gather, write, and judge."""
    from neon8.cli.progress import stages
    from neon8.files import write_atomic
    from neon8.report.gather import report_model
    from neon8.report.words import verdict
    from neon8.text import counted

    output, conditions = arguments.output, arguments.fail_if
    with stages(quiet=arguments.quiet) as progress:
        found = report_model(
            arguments.model,
            arguments.table,
            arguments.compiled,
            arguments.data,
            settings=arguments.settings,
            progress=progress,
        )
    failed = [each for each in conditions if each.holds(found.figures)]
    data = _written(found, arguments.format or FORMATS.get(output.suffix, "html"))
    write_atomic(output, data)
    said = f"{output}: {counted(len(data), 'byte')}; {verdict(found)}"
    if failed:
        raise options.MissedError("; ".join(map(str, failed)), said)
    return said


def _written(found: "Report", form: str) -> bytes:
    """The file in one of the forms."""
    if form == "json":
        import json

        from neon8.report.facts import as_json

        return (json.dumps(as_json(found), indent=1) + "\n").encode()
    if form == "markdown":
        from neon8.report.markdown import as_markdown

        return as_markdown(found).encode()
    from neon8.report.html import as_html

    return as_html(found).encode()
