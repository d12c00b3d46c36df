# SPDX-License-Identifier: Apache-2.0
"""Files of any tool as functions on paths; what they need is more than others need."""

from collections.abc import Mapping
from pathlib import Path

from neon8.formats.conversion import Converted, convert
from neon8.inspection.describe import describe


def convert_table(
    path: str | Path,
    to: str,
    *,
    source_format: str | None = None,
    names: Mapping[str, str] | None = None,
    model: str | Path | None = None,
    onto: str | Path | None = None,
    ncnn_param: str | Path | None = None,
    trt_version: str | None = None,
) -> Converted:
    """A calibration file of any tool in the format of another; see docs/formats.md.

    The rest is as for `neon8 convert`.  TableError, GraphError, CompileError.
    """
    return convert(
        path,
        to,
        source_format=source_format,
        names=names,
        model=model,
        onto=onto,
        ncnn_param=ncnn_param,
        trt_version=trt_version,
    )


def inspect_file(path: str | Path) -> str:
    """What `neon8 inspect` prints about a file."""
    return describe(Path(path))
