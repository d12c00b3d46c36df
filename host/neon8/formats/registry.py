# SPDX-License-Identifier: Apache-2.0
"""Which formats there are, and the module of each.  Imports nothing heavy for --help.

A format is a row here and a module with its descriptor, FORMAT.
"""

from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING

from neon8.errors import TableError
from neon8.files import open_regular, reading

if TYPE_CHECKING:
    from neon8.formats.format import Format

HEAD = 1 << 16
"""How many bytes of a file must tell its format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """summary: for --help.  descriptor: "module:attribute" in neon8.formats."""

    summary: str
    descriptor: str


ROWS = {
    "neon8": Row(summary="neon8's own .scales.json", descriptor="format:NEON8"),
    "qdq": Row(
        summary="ONNX with QuantizeLinear and DequantizeLinear nodes",
        descriptor="qdq:FORMAT",
    ),
    "trt": Row(summary="TensorRT's calibration cache", descriptor="trt:FORMAT"),
    "ort": Row(summary="onnxruntime's calibration.json", descriptor="ort:FORMAT"),
    "ort-cache": Row(
        summary="the same for its calibration_cache_path", descriptor="ort:CACHE"
    ),
    "ort-overrides": Row(
        summary="its TensorQuantOverrides as JSON", descriptor="ort_overrides:FORMAT"
    ),
    "glow": Row(summary="Glow's profile, YAML", descriptor="glow:FORMAT"),
    "ncnn": Row(summary="the .table of ncnn2int8", descriptor="ncnn:FORMAT"),
}
"""By the name that --from and --to take, in the order in which detect() asks: a format
that is hard to mistake stands before one that is not."""

NAMES = tuple(ROWS)


def help_lines() -> str:
    """One line for each format, indented by two."""
    width = max(map(len, ROWS))
    return "".join(f"  {name:{width}}  {row.summary}\n" for name, row in ROWS.items())


def find(name: str) -> "Format":
    """The descriptor of a format.  TableError: there is none of this name."""
    if name not in ROWS:
        raise TableError(f"format {name!r} is not one of {', '.join(NAMES)}")
    module, _, attribute = ROWS[name].descriptor.partition(":")
    found: Format = getattr(import_module(f"neon8.formats.{module}"), attribute)
    return found


def detect(data: bytes, *, source: str) -> str:
    """The name of the format of a file.  TableError: its beginning does not tell.

    data: the file, or its first HEAD bytes.
    """
    head = data[:HEAD].decode("utf-8-sig", errors="replace")
    for name in NAMES:
        if find(name).recognise(head):
            return name
    text = "the content does not tell its format; name it with --from, one"
    raise TableError(f"{source}:1: {text} of {', '.join(NAMES)}")


def detect_file(path: str | PathLike[str]) -> str:
    """detect() of the file `path`.  TableError: it cannot be read, too."""
    with reading(path, TableError), open_regular(path) as file:
        return detect(file.read(HEAD), source=str(path))
