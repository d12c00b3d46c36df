# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, for a review or the summary of a CI job.

Names come from files that anyone may have made: they stand in code spans, where they
can be neither markup nor a mention.
"""

import re
from collections.abc import Iterator, Sequence

from neon8.inspection.diagnosis import summary
from neon8.report.facts import Compared, Report
from neon8.report.words import NAMES, decibels, gain_of, range_of, value_of, verdict
from neon8.text import counted, decimals, printable

MOST = 10
"""Rows of what there may be hundreds of."""


def as_markdown(report: Report) -> str:
    """The whole text."""
    return "\n".join(_lines(report)) + "\n"


def code(name: str) -> str:
    """A code span that holds any name, in a table, too."""
    shown = printable(name).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", shown)), default=0)
    marks = "`" * (longest + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{marks}{space}{shown}{space}{marks}" if shown else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _lines(report: Report) -> Iterator[str]:
    yield f"# int8 report of {code(report.model)}"
    yield ""
    yield f"{verdict(report)}."
    yield ""
    said = f"Diagnosis of {counted(report.diagnosis.n, 'sample')}"
    yield f"{said}: {code(summary(report.diagnosis))}, {code(report.diagnose)}"
    yield from _summary(report)
    for other in report.compared:
        yield from _compared(report, other)
    yield from _costs(report)
    yield from _remedies(report)
    yield from _samples(report)
    if report.curve:
        yield from _curve(report)
    yield ""
    yield f"neon8 {report.version}, kernels of {report.where}"


def _summary(report: Report) -> Iterator[str]:
    commands = list(dict.fromkeys(each.command for each in report.figures))
    rows = [
        (
            NAMES[each.name],
            value_of(each),
            range_of(each),
            each.meaning,
            str(commands.index(each.command) + 1),
        )
        for each in report.figures
    ]
    yield from _table(("figure", "value", "95 % range", "what", "command"), rows)
    if report.predictions:
        yield from _table(
            ("board", "core", "ms a run", "range", "command"),
            [
                (
                    code(p.board),
                    p.core,
                    f"{p.ms:.3g}",
                    f"{p.low:.3g} to {p.high:.3g}",
                    code(p.command),
                )
                for p in report.predictions
            ],
        )
    yield ""
    for number, command in enumerate(commands, 1):
        yield f"{number}. {code(command)}"


def _compared(report: Report, other: Compared) -> Iterator[str]:
    yield ""
    yield f"## {code(report.table)} against {code(other.table)}"
    rows = []
    for name, mine, theirs in (
        ("top-1 %", report.evaluation.top1, other.evaluation.top1),
        ("agreement %", report.evaluation.agreement, other.evaluation.agreement),
    ):
        if mine is not None:
            rows.append((name, decimals(mine), decimals(theirs), ""))
    size = report.figure("size")
    own = "" if size is None else str(int(size.value))
    rows.append(("bytes", own, str(other.size), ""))
    rows.append(("SQNR", "", "", gain_of("output ", other.gain)))
    for name, each in other.gains.items():
        said = gain_of(name, each)
        rows.append((code(name), "", "", f"{said}, worse" if each.loses else said))
    yield from _table(("", "this", "other", "gain"), rows)
    count = len(other.differences)
    yield ""
    yield f"{counted(count, 'entry').replace('entrys', 'entries')} differ" + (
        "s" if count == 1 else ""
    )
    if count:
        yield from _table(
            ("name", "what", "this", "other"),
            [
                (code(each.name), code(each.what), code(each.this), code(each.other))
                for each in other.differences[:MOST]
            ],
        )
        if count > MOST:
            yield ""
            yield f"and {count - MOST} more"


def _costs(report: Report) -> Iterator[str]:
    worst = report.diagnosis.by_cost()[:MOST]
    yield ""
    yield "## What costs most"
    rows = [
        (
            code(each.name),
            code(each.layer),
            str(each.bits),
            decibels(each.alone_db),
            decibels(each.sqnr_db),
            decimals(100 * each.clipped),
        )
        for each in worst
    ]
    header = ("tensor", "layer", "bits", "alone", "so far", "beyond %")
    yield from _table(header, rows)
    for line in report.diagnosis.guards:
        yield ""
        yield f"- {code(line)}"


def _remedies(report: Report) -> Iterator[str]:
    plan = report.diagnosis.plan
    if not plan:
        return
    yield ""
    yield "## Remedies, each on top of those before it"
    rows = [
        (
            code(each.target),
            each.kind,
            f"{each.gain:+.2f} dB",
            decibels(each.sqnr_db),
            decimals(each.cost),
            code(each.how),
        )
        for each in plan
    ]
    header = ("for", "what", "gain", "SQNR", "cost", "command")
    yield from _table(header, rows)


def _samples(report: Report) -> Iterator[str]:
    name = report.class_of
    if report.confusions:
        yield ""
        yield "## Classes that change"
        rows = [
            (
                *map(code, map(report.class_of, (e.wanted, e.got))),
                *map(str, (e.samples, e.lost, e.gained)),
            )
            for e in report.confusions[:MOST]
        ]
        header = ("FP32", "int8", "samples", "label lost", "label gained")
        yield from _table(header, rows)
    if report.samples:
        yield ""
        yield "## Samples that lose most"
        rows = [
            (
                code(each.name),
                decibels(each.sqnr_db),
                code(report.class_of(each.label)),
                *(
                    code(", ".join(f"{name(s.index)}: {s.score:.4g}" for s in scores))
                    for scores in (each.wanted, each.got)
                ),
            )
            for each in report.samples[:MOST]
        ]
        yield from _table(("sample", "SQNR", "label", "FP32", "int8"), rows)


def _curve(report: Report) -> Iterator[str]:
    yield ""
    yield "## Accuracy over cost, size and time"
    rows = [
        (
            "*" if each.best else "",
            f"{each.cost:.3f}",
            str(each.size),
            "-" if each.ms is None else f"{each.ms:.3g}",
            decibels(each.sqnr_db),
            code(", ".join(each.changed)),
            code(each.to),
        )
        for each in report.curve
    ]
    yield from _table(("", "cost", "bytes", "ms", "SQNR", "changed", "to"), rows)
