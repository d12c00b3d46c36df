# SPDX-License-Identifier: Apache-2.0
"""Which format a calibration file has, from its content."""

from typing import Any

from neon8.errors import TableError
from neon8.quant import strict_json
from neon8.quant.checks import decode

FORMATS = ("neon8", "ncnn", "trt", "glow", "ort", "ort-cache", "ort-overrides", "qdq")
"""All that can be read and written; ort and ort-cache are two layouts, read alike."""


def detect(data: bytes, *, source: str) -> str:
    """One of FORMATS.  TableError: none of them, or not enough to tell."""
    if data[:1] == b"\x08" or b"\0" in data[:512]:
        return "qdq"
    text = decode(data, source)
    head = text.lstrip()
    if head.startswith("TRT-"):
        return "trt"
    if head.startswith("{"):
        return _json(strict_json.loads(text, source=source), source)
    if "NodeOutputName" in text or "GraphPreLowerHash" in text:
        return "glow"
    first = [line.split(" ")[0] for line in text.split("\n")]
    if any("_param_" in word and not word.startswith("#") for word in first):
        return "ncnn"
    raise TableError(
        f"{source}:1: the content does not tell its format; name it with --from, one "
        f"of {', '.join(FORMATS)}"
    )


def _json(root: Any, source: str) -> str:
    if "format" in root and "tensors" in root:
        return "neon8"
    if root.get("CLS") == "TensorsData":
        return "ort-cache"
    values = list(root.values())
    if values and all(isinstance(value, dict) and "CLS" in value for value in values):
        return "ort"
    if values and all(isinstance(value, list) for value in values):
        return "ort-overrides"
    raise TableError(
        f"{source}:1: is JSON, and no table of neon8 or onnxruntime; name its format "
        "with --from"
    )
