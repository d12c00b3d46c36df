# SPDX-License-Identifier: Apache-2.0
"""Format: all that conversion, inspection and the documentation know of one format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from neon8.formats.foreign_table import ForeignTable
from neon8.graph.onnx_file import OnnxFile
from neon8.ir.graph import Graph
from neon8.operators.convolution import convolutions
from neon8.quant import table_json
from neon8.quant.checks import read_bytes
from neon8.quant.scale_table import BITS, ScaleTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What convert() was given.

    source: what errors call the file.  model, graph: the float network, as a file and
    imported.  base: the table whose scales stay where the file has none.  options: of
    the two formats, by name.
    """

    source: str = "table"
    model: OnnxFile | None = None
    graph: Graph | None = None
    base: ScaleTable | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def layer_sizes(self) -> dict[str, int]:
        """How many weights each layer of the network has; empty without a network."""
        layers = () if self.graph is None else convolutions(self.graph)
        return {node.name: node.weight.size for node in layers}


Change = Callable[[ForeignTable, Context], ForeignTable]


@dataclass(frozen=True, slots=True)
class NetworkWriter:
    """Format.write where it takes a scale for everything in a network."""

    write: Callable[[ScaleTable, Context], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Every function may raise TableError.

    recognise: True if a file that begins so has this format; binary files come with
    replacement characters.  read: a file.  symmetric: it has no zero points.  ranges:
    it has ranges of activations and no scales, so it does not say how many bits.  bits:
    that it can hold.  weights: it has weight scales.

    adopt: the names of the network for those of the tool, before a table that was read
    goes to another format.  prepare: what must change, with notes on what that loses,
    before write.  write: the bytes of the file.  network: the graph and the scales of a
    file that is a network as well as a table; True: in int8, for a format whose weights
    are that.  read_options, write_options: those of Context.options that it takes.
    """

    name: str
    recognise: Callable[[str], bool]
    read: Callable[[Path], ForeignTable | ScaleTable]
    write: Callable[[ForeignTable], bytes] | NetworkWriter
    adopt: Change = lambda table, _context: table
    prepare: Change = lambda table, _context: table
    network: Callable[[Path, bool], tuple[Graph, ScaleTable]] | None = None
    symmetric: bool = False
    ranges: bool = False
    bits: tuple[int, ...] = BITS
    weights: bool = False
    read_options: tuple[str, ...] = ()
    write_options: tuple[str, ...] = ()


def from_bytes(loads: Callable[..., ForeignTable]) -> Callable[[Path], ForeignTable]:
    """Make Format.read of a text file from loads(data, source=...)."""
    return lambda path: loads(read_bytes(path), source=str(path))


def begins_as_json(head: str, pattern: str = "") -> bool:
    """True if a file that begins with `head` is a JSON object with `pattern` in it."""
    return head.lstrip().startswith("{") and pattern in "".join(head.split())


NEON8 = Format(
    name="neon8",
    recognise=lambda head: begins_as_json(head, '"format":"neon8scaletable"'),
    read=table_json.load,
    write=NetworkWriter(lambda table, _context: table_json.dumps(table).encode()),
    weights=True,
)
"""Our own scale table."""
