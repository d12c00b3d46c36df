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
from decimal import Decimal
from typing import Any

import yaml

from neon8.errors import TableError
from neon8.formats.foreign import ForeignTable, Span, written_span
from neon8.quant.checks import decode, parse_real, string

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
DEEPEST = 3
"""List, entry, histogram. The composer is recursive, in C, and must not see more."""
HASH = re.compile(r"0[xX][0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19}")
KEYS = ("NodeOutputName", "Min", "Max", "Histogram")
RESULT = ":0"
OTHER_RESULT = re.compile(r":[1-9]\d*$")
STRING = "tag:yaml.org,2002:str"
INT = "tag:yaml.org,2002:int"
FLOAT = "tag:yaml.org,2002:float"
NO_HASH = "0x0"
"""Where nobody says which."""


def loads(data: bytes, *, source: str = "profile") -> ForeignTable:
    """The ranges in a profile.  TableError names the line."""
    documents = _documents(decode(data, source), source)
    if len(documents) not in (2, 3):
        text = f"expected three YAML documents, there are {len(documents)}"
        raise TableError(f"{source}:1: {text}")
    version = ""
    if len(documents) == 3:
        version = _only(source, documents[0], "GlowToolsVersion")
    text = _only(source, documents[-2], "GraphPreLowerHash")
    if not HASH.fullmatch(text) or int(text, 0) >= 2**64:
        where = _where(source, documents[-2])
        raise TableError(f"{where}: GraphPreLowerHash: {text[:40]!r} is no 64-bit hash")
    if not isinstance(documents[-1], yaml.SequenceNode):
        where = _where(source, documents[-1])
        raise TableError(f"{where}: expected a list of node outputs")
    tensors: dict[str, Span] = {}
    for node in documents[-1].value:
        name, span = _entry(source, node)
        if name in tensors:
            raise TableError(f"{_where(source, node)}: {name!r} occurs twice")
        tensors[name] = span
    return ForeignTable(
        source=source,
        format="glow",
        tensors=dict(tensors),
        header={"tools": version, "hash": f"0x{int(text, 0):X}"},
    )


def _documents(text: str, source: str) -> list[yaml.Node]:
    try:
        depth = 0
        for event in yaml.parse(text, Loader=LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            line = event.start_mark.line + 1
            if depth > DEEPEST:
                raise TableError(f"{source}:{line}: is nested deeper than a profile")
            if isinstance(event, yaml.AliasEvent):
                raise TableError(f"{source}:{line}: has an alias, as no profile has")
        return list(yaml.compose_all(text, Loader=LOADER))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise TableError(f"{source}:{line}: is not YAML: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise TableError(f"{source}:{line}: is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise TableError(f"{source}:1: is not YAML: {error}") from error


def _where(source: str, node: yaml.Node) -> str:
    return f"{source}:{node.start_mark.line + 1}"


def _fields(
    source: str, node: yaml.Node, keys: tuple[str, ...]
) -> dict[str, yaml.Node]:
    """The values of a mapping with exactly these keys."""
    where = _where(source, node)
    if not isinstance(node, yaml.MappingNode):
        raise TableError(f"{where}: expected {', '.join(keys)}")
    fields: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name not in keys:
            text = f"key {name!r} is unknown; expected {', '.join(keys)}"
            raise TableError(f"{_where(source, key)}: {text}")
        if name in fields:
            raise TableError(f"{_where(source, key)}: key {name!r} occurs twice")
        fields[name] = value
    for name in keys:
        if name not in fields:
            raise TableError(f"{where}: {name} is missing")
    return fields


def _scalar(source: str, node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise TableError(f"{_where(source, node)}: {what}: expected one value")
    return str(node.value)


def _only(source: str, node: yaml.Node, key: str) -> str:
    return _scalar(source, _fields(source, node, (key,))[key], key)


def _entry(source: str, node: yaml.Node) -> tuple[str, Span]:
    fields = _fields(source, node, KEYS)
    where = _where(source, fields["NodeOutputName"])
    text = _scalar(source, fields["NodeOutputName"], "NodeOutputName")
    name = string(f"{where}: NodeOutputName", text.removesuffix(RESULT))

    def number(value: yaml.Node, what: str) -> float:
        at = f"{_where(source, value)}: {name!r}: {what}"
        return parse_real(at, _scalar(source, value, f"{name!r}: {what}"))

    lo, hi = number(fields["Min"], "Min"), number(fields["Max"], "Max")
    if lo > hi:
        place = _where(source, fields["Min"])
        raise TableError(f"{place}: {name!r}: Min {lo:g} is above Max {hi:g}")
    bins = fields["Histogram"]
    if not isinstance(bins, yaml.SequenceNode):
        raise TableError(f"{_where(source, bins)}: {name!r}: Histogram: no list")
    counts = tuple(number(value, "Histogram") for value in bins.value)
    if any(count < 0 for count in counts):
        place = _where(source, bins)
        raise TableError(f"{place}: {name!r}: Histogram: a count is negative")
    return name, Span(lo=lo, hi=hi, histogram=counts)


def dumps(table: ForeignTable) -> bytes:
    """The bytes of the profile.  TableError: no scales or ranges of tensors."""
    if not table.tensors:
        text = f"Glow needs ranges of tensors, and it has {table.holds}"
        raise TableError(f"{table.source}: {text}; --model names the network")
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
    for name, entry in table.tensors.items():
        span = written_span(f"{table.source}: tensor {name!r}", entry)
        numbered = table.format == "glow" and OTHER_RESULT.search(name)
        yield _mapping(
            ("NodeOutputName", _quoted(name if numbered else f"{name}{RESULT}")),
            ("Min", _plain(_digits(span.lo))),
            ("Max", _plain(_digits(span.hi))),
            (
                "Histogram",
                yaml.SequenceNode(
                    "tag:yaml.org,2002:seq",
                    [_plain(_digits(count)) for count in span.histogram],
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
