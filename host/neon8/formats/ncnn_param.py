# SPDX-License-Identifier: Apache-2.0
"""The text .param of an ncnn network: which layers its tools look for in a table.

7767517
<layers> <blobs>
<type> <name> <inputs> <outputs> <blob ...> <key>=<value> ...
"""

import re
from dataclasses import dataclass, replace

from neon8.errors import TableError
from neon8.formats.foreign_table import ForeignTable, with_layer_names
from neon8.quant.checks import decode_lines, read_bytes

MAGIC = "7767517"
TYPES = {"Convolution": 6, "ConvolutionDepthWise": 6, "InnerProduct": 2}
"""What a table is about, and the key of the number of weights."""
OPTION = re.compile(r"(-?\d{1,6})=(\S+)", re.ASCII)
WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamLayer:
    """One convolution or inner product.  size: how many weights it has in all."""

    line: int
    type: str
    name: str
    channels: int
    groups: int
    size: int

    @property
    def scales(self) -> int:
        """How many weight scales ncnn reads for it."""
        grouped = self.type == "ConvolutionDepthWise"
        return self.groups if grouped else self.channels


def load(path: str) -> tuple[ParamLayer, ...]:
    """loads() of a file.  TableError."""
    return loads(read_bytes(path), source=path)


def loads(data: bytes, *, source: str) -> tuple[ParamLayer, ...]:
    """The layers of the file that can be int8, in its order.  TableError: the line."""
    lines = decode_lines(data, source)
    if lines[0].strip() != MAGIC:
        raise TableError(f"{source}:1: is not a text .param of ncnn ({MAGIC})")
    counts = lines[1].split() if len(lines) > 1 else []
    if len(counts) != 2 or not all(map(WHOLE.fullmatch, counts)):
        raise TableError(f"{source}:2: expected the numbers of layers and of blobs")
    layers = []
    names: dict[str, int] = {}
    for number, line in enumerate(lines[2:], 3):
        words = line.split()
        if not words:
            continue
        where = f"{source}:{number}"
        blobs = words[2:4]
        if len(blobs) < 2 or not all(word.isdecimal() for word in blobs):
            raise TableError(f"{where}: expected a type, a name and two numbers")
        first = 4 + sum(int(word[:6]) for word in blobs)
        if len(words) < first or any(map(OPTION.fullmatch, words[4:first])):
            raise TableError(f"{where}: the names of blobs are missing")
        kind, name = words[:2]
        if name in names:
            text = f"layer {name!r} occurs twice, first in line {names[name]}"
            raise TableError(f"{where}: {text}")
        names[name] = number
        options = _options(where, words[first:])
        if kind in TYPES:
            layers.append(_layer(number, where, kind, name, options))
    if len(names) != int(counts[0]):
        text = f"line 2 says {counts[0]} layers, there are {len(names)}"
        raise TableError(f"{source}:{len(lines)}: {text}")
    return tuple(layers)


def _options(where: str, words: list[str]) -> dict[int, str]:
    options: dict[int, str] = {}
    for word in words:
        match = OPTION.fullmatch(word)
        if match is None:
            raise TableError(f"{where}: {word[:60]!r} is no key=value")
        options[int(match[1])] = match[2]
    return options


def _layer(
    line: int, where: str, kind: str, name: str, options: dict[int, str]
) -> ParamLayer:
    def number(key: int, default: str) -> int:
        text = options.get(key, default)
        if not WHOLE.fullmatch(text) or int(text) < 1:
            text = f"layer {name!r}: {key}={text[:40]} is no count"
            raise TableError(f"{where}: {text}")
        return int(text)

    return ParamLayer(
        line=line,
        type=kind,
        name=name,
        channels=number(0, "missing"),
        groups=number(7, "1") if kind == "ConvolutionDepthWise" else 1,
        size=number(TYPES[kind], "missing"),
    )


def to_param_names(
    table: ForeignTable,
    layers: tuple[ParamLayer, ...],
    *,
    source: str,
    sizes: dict[str, int],
) -> ForeignTable:
    """`table` with its layers, which are in order, named after those of the .param.

    sizes: how many weights each layer has, where that is known.  TableError: another
    number of layers or of scales.
    """
    pairs = _paired(table, tuple(table.weights), layers, source, sizes)
    weights = {}
    for name, layer in pairs.items():
        scales = table.weights[name]
        _check_scales(table, name, layer, source)
        weights[name] = scales * (layer.scales // len(scales))
    names = {name: layer.name for name, layer in pairs.items()}
    return with_layer_names(replace(table, weights=weights), names)


def from_param_names(
    table: ForeignTable,
    layers: tuple[ParamLayer, ...],
    own: tuple[str, ...],
    *,
    source: str,
    sizes: dict[str, int],
) -> ForeignTable:
    """`table`, named after a .param, with the names `own` of the same layers in order.

    TableError: another number of layers, a layer that the .param does not have.
    """
    names = {
        layer.name: name
        for name, layer in _paired(table, own, layers, source, sizes).items()
    }
    by_name = {layer.name: layer for layer in layers}
    for name in table.weights:
        if name not in names:
            raise TableError(f"{table.source}: layer {name!r} is not in {source}")
        _check_scales(table, name, by_name[name], source)
    return with_layer_names(table, names)


def _check_scales(
    table: ForeignTable, name: str, layer: ParamLayer, source: str
) -> None:
    """TableError: ncnn wants another number of weight scales."""
    count = len(table.weights[name])
    if count not in (1, layer.scales):
        text = f"layer {layer.name!r} takes {layer.scales} weight scales"
        text += f", and {name!r} of {table.source} has {count}"
        raise TableError(f"{source}:{layer.line}: {text}")


def _paired(
    table: ForeignTable,
    own: tuple[str, ...],
    layers: tuple[ParamLayer, ...],
    source: str,
    sizes: dict[str, int],
) -> dict[str, ParamLayer]:
    """The layers of the .param by the names `own`, in order.  TableError."""
    if len(own) != len(layers):
        text = f"has {len(layers)} convolutions and inner products"
        text += f", {table.source} goes with {len(own)} layers"
        raise TableError(f"{source}: {text}")
    for name, layer in zip(own, layers, strict=True):
        if sizes.get(name, layer.size) != layer.size:
            text = f"layer {layer.name!r} has {layer.size} weights"
            raise TableError(
                f"{source}:{layer.line}: {text}, and {name!r}, in its place in the "
                f"network of {table.source}, has {sizes[name]}: another order of layers"
            )
    return dict(zip(own, layers, strict=True))
