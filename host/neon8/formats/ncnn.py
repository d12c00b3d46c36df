# SPDX-License-Identifier: Apache-2.0
"""ncnn's calibration table.

    <layer>_param_0 <127 / absmax of the weights, one for each output channel>
    <layer> <127 / threshold of the layer's input>

Writers put all weights first. ncnn is symmetric: the threshold is the larger end of the
range that our scale covers, whatever its zero point. ncnn's own reader forgives
everything and says nothing; this one says what ncnn would have made of the file.
"""

import re
from dataclasses import replace

import numpy as np

from neon8.errors import TableError
from neon8.formats import ncnn_param
from neon8.formats.foreign_table import (
    ForeignTable,
    QuantParams,
    float32_scale,
    to_params,
)
from neon8.formats.format import Context, Format, from_bytes
from neon8.quant.checks import NUMBER, decode_lines, double_scale, parse_real, real
from neon8.text import counted

LONGEST_NAME = 255
MARK = "_param_"
WEIGHTS = re.compile(r"(.+)_param_(\d{1,3})", re.ASCII)
FEWEST_DIGITS = 4
MOST_SCALES = 1 << 20
"""For one layer: as many output channels as a model file can have."""


def loads(data: bytes, *, source: str = "table") -> ForeignTable:
    """The table in a .table file.  TableError names the line.

    Lines that begin with # are comments, as they are for ncnn in effect.
    """
    lines = decode_lines(data, source)
    entries: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(lines, 1):
        where = f"{source}:{number}"
        text = line.removesuffix("\r")
        if not text.strip(" "):
            rest = sum(bool(later.strip(" \r")) for later in lines[number:])
            if rest:
                cause = "the line is empty; ncnn stops reading here and loses"
                raise TableError(f"{where}: {cause} {rest} more: remove it")
            break
        name, *words = filter(None, text.split(" "))
        if name.startswith("#"):
            continue
        _check_name(f"{where}: name {name[:60]!r}", name)
        if not words:
            raise TableError(f"{where}: {name!r} has no scales")
        if name in entries:
            text = f"{name!r} occurs twice, first in line {entries[name][0]}"
            raise TableError(f"{where}: {text}")
        entries[name] = (number, words)
    return _sorted_out(source, entries)


def _sorted_out(source: str, entries: dict[str, tuple[int, list[str]]]) -> ForeignTable:
    weights: dict[str, tuple[float, ...]] = {}
    inputs: dict[str, QuantParams] = {}
    other: dict[str, str] = {}
    imprecise = 0
    matches = {name: WEIGHTS.fullmatch(name) for name in entries if MARK in name}
    several = {m[1] for m in matches.values() if m and int(m[2]) != 0}
    for name, (number, words) in entries.items():
        where = f"{source}:{number}: {name!r}"
        match = matches.get(name)
        if name in matches and match is None:
            text = f"ncnn takes a name with {MARK!r} for weights; rename the layer"
            raise TableError(f"{where}: {text}")
        if match and match[1] in several:
            other[name] = " ".join(words)
            continue
        if len(words) > MOST_SCALES:
            raise TableError(f"{where}: has {len(words)} scales; no layer has as many")
        values = [_multiplier(where, word) for word in words]
        imprecise += sum(_digits(word) < FEWEST_DIGITS for word in words if "." in word)
        steps = tuple(double_scale(where, 1 / v) if v else 0.0 for v in values)
        if match:
            weights[match[1]] = steps
        elif len(steps) > 1 or steps[0] == 0:
            text = "the input of a layer has one scale, and it is not 0"
            raise TableError(f"{where}: {text}")
        else:
            inputs[name] = QuantParams(scale=steps[0])
    for name in inputs:
        if name not in weights and name not in several:
            text = (
                f"layer {name!r} has an input scale and no line {name}_param_0; "
                "ncnn2int8 would leave this and every later layer in float: remove, "
                "or comment out, both lines"
            )
            raise TableError(f"{source}:{entries[name][0]}: {text}")
    table = ForeignTable(
        source=source,
        format="ncnn",
        inputs=inputs,
        weights=weights,
        other=other,
        scales_per_group=True,
    )
    if not imprecise:
        return table
    text = f"ncnn's %f left fewer than {FEWEST_DIGITS} digits of"
    return table.with_note(f"{text} {counted(imprecise, 'scale')}")


def _check_name(where: str, name: str) -> None:
    if any(letter.isspace() or not letter.isprintable() for letter in name):
        raise TableError(f"{where}: ncnn ends a name at the first blank")
    if len(name.encode()) > LONGEST_NAME:
        text = f"ncnn reads at most {LONGEST_NAME} bytes of a name"
        raise TableError(f"{where}: {text}, '{MARK}0' included")


def _multiplier(where: str, word: str) -> float:
    """127 / threshold, not negative; 0 is a channel without weights."""
    if word.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        text = f"a scale of {word} is 127 / 0, of a channel or tensor that is all zero"
        raise TableError(f"{where}: {text}; write 0 for a channel of weights")
    value = parse_real(where, word)
    if value < 0:
        raise TableError(f"{where}: {word} is negative")
    return value


def _digits(word: str) -> int:
    """How many significant digits were written."""
    match = NUMBER.fullmatch(word)
    digits = match[1].replace(".", "").lstrip("0") if match else ""
    return len(digits) or FEWEST_DIGITS  # 0.000 is an exact 0


def per_group(table: ForeignTable) -> ForeignTable:
    """`table` with one weight scale for each group, which is all that ncnn reads.

    Where they differ within a group it is the largest, as only that covers all weights;
    a note says so.
    """
    weights = dict(table.weights)
    coarser = []
    for name, groups in table.groups.items():
        scales = weights.get(name, ())
        if groups == 1 or not scales:
            continue
        count = max(len(scales) // groups, 1)
        most = [max(scales[at : at + count]) for at in range(0, len(scales), count)]
        weights[name] = tuple(most * (groups // len(most)))
        if scales != tuple(scale for scale in most for _ in range(count)):
            coarser.append(name)
    table = replace(table, weights=weights)
    if not coarser:
        return table
    layers = counted(len(coarser), "layer")
    text = f"ncnn has one weight scale for each group: the largest, for {layers}"
    return table.with_note(f"{text}, as for {coarser[0]!r}")


def prepare(table: ForeignTable, context: Context) -> ForeignTable:
    """`table` with one weight scale for each group, named after the .param if given."""
    table = per_group(table)
    param = context.options.get("ncnn_param")
    if param is None:
        return table
    return ncnn_param.to_param_names(
        table, ncnn_param.load(param), source=param, sizes=context.layer_sizes
    )


def adopt(table: ForeignTable, context: Context) -> ForeignTable:
    """`table`, named after the .param if given, with the layer names of the network."""
    param = context.options.get("ncnn_param")
    if param is None:
        return table
    sizes = context.layer_sizes
    own = tuple(sizes) or tuple(context.base.layers if context.base else ())
    if not own:
        text = "names of a .param say nothing without the network: add --model"
        raise TableError(f"{table.source}: {text} net.onnx")
    return ncnn_param.from_param_names(
        table, ncnn_param.load(param), own, source=param, sizes=sizes
    )


def dumps(table: ForeignTable) -> bytes:
    """The bytes of the .table file.

    TableError: a name that ncnn misreads, a layer without weights or input scale.
    """
    inputs = {
        name: to_params(table.tensors[tensor])
        for name, tensor in table.reads.items()
        if tensor in table.tensors
    }
    inputs.update(table.inputs)
    if not table.weights:
        text = f"ncnn needs the weight scales of layers, and it has {table.contents}"
        raise TableError(f"{table.source}: {text}; --model names the network")
    weights_only = table.format == "ncnn" and not inputs
    lines = []
    for name in table.weights:
        where = f"{table.source}: layer {name!r}"
        _check_name(where, f"{name}{MARK}0")
        if MARK in name:
            text = f"ncnn takes a name that contains {MARK!r} for a line of weights"
            raise TableError(f"{where}: {text}; rename the node")
        if name.startswith("#"):
            raise TableError(f"{where}: this would be a comment; rename the node")
        if name not in inputs and not weights_only:
            text = f"ncnn needs the scale of its input, and it has {table.contents}"
            raise TableError(f"{where}: {text}; --model names the network")
        multipliers = (
            real(where, 1 / scale if scale else 0.0) for scale in table.weights[name]
        )
        lines.append(" ".join([f"{name}{MARK}0", *map(_text, multipliers)]))
    for name in table.weights:
        if name in inputs:
            where = f"{table.source}: layer {name!r}: its input"
            scale = float32_scale(where, inputs[name])
            # Nothing but zeros ever came in, so any multiplier does.
            multiplier = real(where, 1 / scale) if scale else 1.0
            lines.append(f"{name} {_text(multiplier)}")
    lines += [f"{name} {words}" for name, words in table.other.items()]
    return "".join(f"{line}\n" for line in lines).encode()


def _text(multiplier: float) -> str:
    """%f, as ncnn writes it, loses digits; the reader scans both.

    At least the nine digits that every float32 has, more where the next float32 is
    nearer to those than this is.
    """
    for digits in range(9, 18):
        text = f"{multiplier:.{digits}g}"
        if np.float32(text) == np.float32(multiplier):
            break
    return text


def _recognise(head: str) -> bool:
    first = (line.partition(" ")[0] for line in head.split("\n"))
    return any(MARK in word and not word.startswith("#") for word in first)


FORMAT = Format(
    name="ncnn",
    recognise=_recognise,
    read=from_bytes(loads),
    adopt=adopt,
    prepare=prepare,
    write=dumps,
    symmetric=True,
    bits=(8,),
    weights=True,
    read_options=("ncnn_param",),
    write_options=("ncnn_param",),
)
