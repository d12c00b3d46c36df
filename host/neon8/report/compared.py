# SPDX-License-Identifier: Apache-2.0
"""Two tables of one network: how their entries differ, and which serves it better."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

from neon8.compile.compiler import compile_model
from neon8.data.samples import Data
from neon8.errors import TableError
from neon8.evaluate.evaluate import evaluate_model
from neon8.evaluate.measure import Figures
from neon8.evaluate.ranking import changes, rank_figures
from neon8.quant import table_json
from neon8.quant.reasons import condensed
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale
from neon8.report.facts import Compared, Difference
from neon8.report.samples import Book
from neon8.runtime.targets import CUT
from neon8.settings.stages import Settings
from neon8.text import counted

Entry = TensorScale | LayerScale


def load_table(path: Path, digest: str) -> ScaleTable:
    """Read a table of this network.  TableError."""
    table = table_json.load(path)
    if table.model_digest != digest:
        raise TableError(
            f"{path}: is of another network, {table.model_name} "
            f"({table.model_digest[:12]}..., not {digest[:12]}...); give one of this"
        )
    return table


def compared(
    path: Path,
    other: ScaleTable | None,
    table: ScaleTable,
    mine: Figures,
    *,
    model: Path,
    data: Data,
    settings: Settings,
) -> Compared:
    """Compile another table, run it on the same samples, and compare.

    other: None if `path` is an .n8 file, of which no table is known.  mine: what this
    table gives on the samples.  CompileError.
    """
    book, compiled = Book(0), path
    with TemporaryDirectory() as folder:
        if other is not None:
            compiled = Path(folder) / f"{path.stem}.n8"
            compile_model(model, other, output=compiled, settings=settings)
            if settings.compile.cut:
                compiled = compiled.with_suffix(f".cut{CUT}")
        found = evaluate_model(compiled, data, settings=settings, seen=book.add)
        size = compiled.stat().st_size
    theirs = book.figures()
    return Compared(
        table=str(path),
        size=size,
        evaluation=found,
        gain=rank_figures([theirs, mine], 0).gains[1],
        gains=changes(theirs, mine),
        differences=() if other is None else tuple(differences(table, other)),
    )


def differences(table: ScaleTable, other: ScaleTable) -> Iterator[Difference]:
    """The entries that are not the same."""
    yield from _differences("tensor", table.tensors, other.tensors)
    yield from _differences("layer", table.layers, other.layers)


def _differences(
    what: str, mine: Mapping[str, Entry], theirs: Mapping[str, Entry]
) -> Iterator[Difference]:
    for name in dict.fromkeys((*mine, *theirs)):
        one, two = mine.get(name), theirs.get(name)
        if one == two:
            continue
        changed = ""
        if one is not None and two is not None:
            names = [each.name for each in fields(one)]
            changed = ", ".join(
                n for n in names if getattr(one, n, None) != getattr(two, n, None)
            )
        yield Difference(
            name=name,
            what=f"{what}: {changed}" if changed else what,
            this=_said(one),
            other=_said(two),
        )


def _said(entry: Entry | None) -> str:
    if entry is None:
        return "not there"
    if isinstance(entry, TensorScale):
        kind = "float32" if entry.float32 else f"{entry.scheme}, {entry.bits} bits"
        said = f"{kind}, {entry.threshold[0]:.4g} .. {entry.threshold[1]:.4g}"
    else:
        scales = entry.weight_scales
        said = f"{entry.bits} bits, {entry.rounding}, {counted(len(scales), 'scale')} "
        said += f"{min(scales):.4g} .. {max(scales):.4g}"
    reasons = condensed(entry.reasons)
    return f"{said}, {reasons}" if reasons else said
