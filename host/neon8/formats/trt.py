# SPDX-License-Identifier: Apache-2.0
"""TensorRT's calibration cache.

    TRT-8601-EntropyCalibration2
    <tensor name>: <bits of the float32 T / 127 in hexadecimal, without leading zeros>

Activations only, symmetric; TensorRT takes weights from the network, T being the
largest of a channel. A name may hold anything but a line break, ": " included. A scale
of 0 is a tensor that was all zero, or that holds no real numbers.
"""

import math
import re
from dataclasses import replace

import numpy as np

from neon8.errors import TableError
from neon8.formats.foreign_table import ForeignTable, QuantParams, float32_scale
from neon8.formats.format import Context, Format, from_bytes
from neon8.quant.checks import decode_lines

HEADER = re.compile(r"TRT-(\d{4,7})-(\w+)", re.ASCII)
BITS = re.compile(r"[0-9a-fA-F]{1,8}")
DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{1,2})", re.ASCII)
VERSION = "8601"
"""TensorRT 8.6.1, where nobody says which."""
ALGORITHM = "EntropyCalibration2"


def loads(data: bytes, *, source: str = "cache") -> ForeignTable:
    """The table in a calibration cache.  TableError names the line."""
    lines = decode_lines(data, source)
    header = HEADER.fullmatch(lines[0].removesuffix("\r"))
    if header is None:
        text = "is not a TensorRT calibration cache: no line TRT-<version>-<algorithm>"
        raise TableError(f"{source}:1: {text}")
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    tensors: dict[str, QuantParams] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(lines[1:], 2):
        where = f"{source}:{number}"
        name, colon, digits = line.removesuffix("\r").rpartition(": ")
        if not colon or not name:
            raise TableError(f"{where}: expected <tensor>: <hexadecimal number>")
        if not BITS.fullmatch(digits):
            text = f"tensor {name!r}: {digits[:40]!r} is not a hexadecimal float32"
            raise TableError(f"{where}: {text}")
        if name in tensors:
            text = f"tensor {name!r} occurs twice, first in line {places[name]}"
            raise TableError(f"{where}: {text}")
        places[name] = number
        value = float(np.uint32(int(digits, 16)).view(np.float32))
        if not 0 <= value < math.inf:
            text = f"tensor {name!r}: {digits} is {value:g}, no scale"
            raise TableError(f"{where}: {text}; calibrate again")
        tensors[name] = QuantParams(scale=abs(value))
    return ForeignTable(
        source=source,
        format="trt",
        tensors=dict(tensors),
        header={"version": header[1], "algorithm": header[2]},
    )


def version_number(text: str) -> str:
    """8.6.1 or 8601, as in the header: 8601.  TableError: neither."""
    match = DOTTED.fullmatch(text)
    if match is None:
        if not HEADER.fullmatch(f"TRT-{text}-x"):
            cause = "is no version of TensorRT; write 8.6.1, or 8601"
            raise TableError(f"--trt-version {text!r} {cause}")
        return text
    major, minor, patch = (int(part) for part in match.groups())
    return str(major * (1000 if major < 10 else 10000) + minor * 100 + patch)


def prepare(table: ForeignTable, context: Context) -> ForeignTable:
    """`table` with the version for the header: the option's, its own, or VERSION."""
    if "trt_version" in context.options:
        version = version_number(context.options["trt_version"])
        return replace(table, header={**table.header, "version": version})
    if "version" not in table.header:
        text = f"the header says TensorRT {VERSION}, another one refuses it"
        return table.with_note(f"{text}: name yours with --trt-version")
    return table


def dumps(table: ForeignTable) -> bytes:
    """The bytes of the cache.

    TableError: no scales of tensors, a name with a line break.
    """
    version = table.header.get("version", VERSION)
    algorithm = table.header.get("algorithm", ALGORITHM)
    lines = [f"TRT-{version}-{algorithm}\n"]
    for where, name, entry in table.tensors_for("TensorRT needs scales"):
        if not name or "\n" in name or name.endswith("\r"):
            text = "the cache cannot hold a name with a line break; rename the tensor"
            raise TableError(f"{where}: {text}")
        bits = np.float32(float32_scale(where, entry)).view(np.uint32)
        lines.append(f"{name}: {bits:x}\n")
    return "".join(lines).encode()


FORMAT = Format(
    name="trt",
    recognise=lambda head: head.lstrip().startswith("TRT-"),
    read=from_bytes(loads),
    prepare=prepare,
    write=dumps,
    symmetric=True,
    bits=(8,),
    write_options=("trt_version",),
)
