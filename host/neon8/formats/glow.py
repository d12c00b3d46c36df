# SPDX-License-Identifier: Apache-2.0
"""Glow's profile: three YAML documents, the last a list of ranges with histograms.

    ---
    GlowToolsVersion: ''
    ...
    ---
    GraphPreLowerHash: 0x1A2B3C4D5E6F7788
    ...
    ---
    - NodeOutputName:  'conv1:0'
      Min:             -1.5
      Max:             2.25
      Histogram:       [ 12, 40, 310, 95, 3 ]
    ...

A name ends in the number of the node's result; ":0" is left out of ours. Older files
lack the first document. The histogram is read as it is, only Glow's own search for a
range uses it, and it may be empty. Glow refuses a profile whose hash is not that of its
graph.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import yaml

from neon8.errors import TableError
from neon8.formats.foreign_table import ForeignTable, Range, float32_range
from neon8.formats.format import Context, Format, from_bytes
from neon8.quant.checks import decode, parse_real, string

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
DEEPEST = 3
"""List, entry, histogram; yaml's own composer would follow any depth, in C."""
MOST_DOCUMENTS = 3
MOST_VALUES = 1 << 16
"""Tensors of a profile, or bins of a histogram; Glow's has 2048."""
MOST_KEYS = 16
"""Keys and values of one mapping: twice as many as an entry has."""
HASH = re.compile(r"0[xX][0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19}")
KEYS = ("NodeOutputName", "Min", "Max", "Histogram")
RESULT = ":0"
OTHER_RESULT = re.compile(r":[1-9]\d*$")
STRING = "tag:yaml.org,2002:str"
INT = "tag:yaml.org,2002:int"
FLOAT = "tag:yaml.org,2002:float"
NO_HASH = "0x0"
"""Where nobody says which."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One YAML node.  value: of a scalar; items: of a list; pairs: of a mapping."""

    where: str
    value: str | None = None
    items: list["_Node"] | None = None
    pairs: list[tuple["_Node", "_Node"]] | None = None

    def text(self, what: str) -> str:
        """The value of a scalar.  TableError: it is a list or a mapping."""
        if self.value is None:
            raise TableError(f"{self.where}: {what}: expected one value")
        return self.value


def loads(data: bytes, *, source: str = "profile") -> ForeignTable:
    """The ranges in a profile.  TableError names the line."""
    documents = _documents(decode(data, source), source)
    if len(documents) not in (2, 3):
        text = f"expected three YAML documents, there are {len(documents)}"
        raise TableError(f"{source}:1: {text}")
    version = ""
    if len(documents) == 3:
        version = _only(documents[0], "GlowToolsVersion")
    text = _only(documents[-2], "GraphPreLowerHash")
    if not HASH.fullmatch(text) or int(text, 0) >= 2**64:
        where = documents[-2].where
        raise TableError(f"{where}: GraphPreLowerHash: {text[:40]!r} is no 64-bit hash")
    tensors: dict[str, Range] = {}
    for node in _items(documents[-1], "expected a list of node outputs"):
        name, found = _entry(node)
        if name in tensors:
            raise TableError(f"{node.where}: {name!r} occurs twice")
        tensors[name] = found
    return ForeignTable(
        source=source,
        format="glow",
        tensors=dict(tensors),
        header={"tools": version, "hash": f"0x{int(text, 0):X}"},
    )


def _documents(text: str, source: str) -> list[_Node]:
    """The documents, at most the few that a profile has and one more."""
    events = yaml.parse(text, Loader=LOADER)
    documents: list[_Node] = []
    try:
        for event in events:
            if isinstance(event, yaml.NodeEvent):
                documents.append(_node(event, events, source, 1))
            if len(documents) > MOST_DOCUMENTS:
                break
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise TableError(f"{source}:{line}: is not YAML: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise TableError(f"{source}:{line}: is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise TableError(f"{source}:1: is not YAML: {error}") from error
    return documents


def _node(event: Any, events: Iterator[Any], source: str, depth: int) -> _Node:
    """The node that begins with `event`, with all in it."""
    where = f"{source}:{event.start_mark.line + 1}"
    if isinstance(event, yaml.ScalarEvent):
        return _Node(where, str(event.value))
    if isinstance(event, yaml.AliasEvent):
        raise TableError(f"{where}: has an alias, as no profile has")
    if depth > DEEPEST:
        raise TableError(f"{where}: is nested deeper than a profile")
    most = MOST_VALUES if isinstance(event, yaml.SequenceStartEvent) else MOST_KEYS
    nodes: list[_Node] = []
    for inner in events:
        if isinstance(inner, yaml.CollectionEndEvent):
            break
        nodes.append(_node(inner, events, source, depth + 1))
        if len(nodes) > most:
            raise TableError(f"{where}: has more than {most} values, as no profile has")
    if isinstance(event, yaml.SequenceStartEvent):
        return _Node(where, items=nodes)
    return _Node(where, pairs=list(zip(nodes[::2], nodes[1::2], strict=True)))


def _items(node: _Node, cause: str) -> list[_Node]:
    """The nodes of a list.  TableError with `cause`: it is none."""
    if node.items is None:
        raise TableError(f"{node.where}: {cause}")
    return node.items


def _fields(node: _Node, keys: tuple[str, ...]) -> dict[str, _Node]:
    """The values of a mapping with exactly these keys."""
    if node.pairs is None:
        raise TableError(f"{node.where}: expected {', '.join(keys)}")
    fields: dict[str, _Node] = {}
    for key, value in node.pairs:
        name = key.value or ""
        if name not in keys:
            text = f"key {name[:60]!r} is unknown; expected {', '.join(keys)}"
            raise TableError(f"{key.where}: {text}")
        if name in fields:
            raise TableError(f"{key.where}: key {name!r} occurs twice")
        fields[name] = value
    for name in keys:
        if name not in fields:
            raise TableError(f"{node.where}: {name} is missing")
    return fields


def _only(node: _Node, key: str) -> str:
    return _fields(node, (key,))[key].text(key)


def _entry(node: _Node) -> tuple[str, Range]:
    """A tensor and its range."""
    fields = _fields(node, KEYS)
    output = fields["NodeOutputName"]
    text = output.text("NodeOutputName")
    name = string(f"{output.where}: NodeOutputName", text.removesuffix(RESULT))

    def number(value: _Node, what: str) -> float:
        return parse_real(f"{value.where}: {name!r}: {what}", value.text(what))

    lo, hi = number(fields["Min"], "Min"), number(fields["Max"], "Max")
    if lo > hi:
        place = fields["Min"].where
        raise TableError(f"{place}: {name!r}: Min {lo:g} is above Max {hi:g}")
    bins = fields["Histogram"]
    items = _items(bins, f"{name!r}: Histogram: no list")
    counts = tuple(number(value, "Histogram") for value in items)
    if any(count < 0 for count in counts):
        raise TableError(f"{bins.where}: {name!r}: Histogram: a count is negative")
    return name, Range(lo=lo, hi=hi, histogram=counts)


def prepare(table: ForeignTable, _context: Context) -> ForeignTable:
    """Note it in `table` if nobody knows the hash of Glow's graph."""
    if "hash" in table.header:
        return table
    text = "the graph hash is 0x0, which Glow's loader refuses: put in the one"
    return table.with_note(f"{text} of a profile that it dumped of this network")


def dumps(table: ForeignTable) -> bytes:
    """The bytes of the profile.  TableError: no scales or ranges of tensors."""
    documents = (
        _mapping(("GlowToolsVersion", _quoted(table.header.get("tools", "")))),
        _mapping(("GraphPreLowerHash", _plain(table.header.get("hash", NO_HASH), INT))),
        yaml.SequenceNode("tag:yaml.org,2002:seq", list(_nodes(table))),
    )
    return bytes(
        yaml.serialize_all(
            documents,
            Dumper=DUMPER,
            encoding="utf-8",
            allow_unicode=True,
            explicit_start=True,
            explicit_end=True,
            width=2**30,
        )
    )


def _nodes(table: ForeignTable) -> Iterator[yaml.Node]:
    for where, name, entry in table.tensors_for("Glow needs ranges"):
        ends = float32_range(where, entry)
        numbered = table.format == "glow" and OTHER_RESULT.search(name)
        yield _mapping(
            ("NodeOutputName", _quoted(name if numbered else f"{name}{RESULT}")),
            ("Min", _plain(_digits(ends.lo))),
            ("Max", _plain(_digits(ends.hi))),
            (
                "Histogram",
                yaml.SequenceNode(
                    "tag:yaml.org,2002:seq",
                    [_plain(_digits(count)) for count in ends.histogram],
                    flow_style=True,
                ),
            ),
        )


def _mapping(*pairs: tuple[str, yaml.Node]) -> yaml.Node:
    items = [(yaml.ScalarNode(STRING, key), value) for key, value in pairs]
    return yaml.MappingNode("tag:yaml.org,2002:map", items, flow_style=False)


def _quoted(text: str) -> yaml.Node:
    return yaml.ScalarNode(STRING, text, style="'")


def _plain(text: str, tag: str = FLOAT) -> yaml.Node:
    return yaml.ScalarNode(tag, text)


def _digits(value: float) -> str:
    """All digits of the number, without an exponent: 2.25, 0.1000000000000000055..."""
    text = format(Decimal(value), "f")
    return text if "." in text else f"{text}.0"


FORMAT = Format(
    name="glow",
    recognise=lambda head: "NodeOutputName" in head or "GraphPreLowerHash" in head,
    read=from_bytes(loads),
    prepare=prepare,
    write=dumps,
    ranges=True,
)
