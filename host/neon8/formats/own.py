# SPDX-License-Identifier: Apache-2.0
"""Our own scale table among the formats."""

from neon8.formats.format import Context, Format, NetworkWriter, begins_as_json
from neon8.quant import table_json
from neon8.quant.scale_table import ScaleTable


def _write(table: ScaleTable, context: Context) -> bytes:
    del context
    return table_json.dumps(table).encode()


def _recognise(head: str) -> bool:
    return begins_as_json(head, '"format":"neon8scaletable"')


FORMAT = Format(
    name="neon8",
    recognise=_recognise,
    read=table_json.load,
    write=NetworkWriter(_write),
    weights=True,
)
