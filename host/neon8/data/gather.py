# SPDX-License-Identifier: Apache-2.0
"""Samples from wherever they come: a path as in --data, or any iterable."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from neon8.data.preprocess import Preprocess
from neon8.data.samples import Sample, Shapes, as_samples, open_samples
from neon8.errors import DataError
from neon8.graph.graph import Graph

Data = str | Path | Iterable[Any]


def gather(
    data: Data,
    inputs: Shapes | Graph,
    *,
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
) -> Iterable[Sample]:
    """Samples of `data` for a network with these inputs, one at a time.

    data: a path, or an iterable of arrays, of dicts from input name to array, or of
    Sample.  limit, skip: at most so many, behind the first so many.
    """
    if isinstance(data, str | Path):
        return open_samples(
            Path(data), inputs, preprocess=preprocess, limit=limit, skip=skip
        )
    if preprocess is not None:
        raise DataError(
            "preprocessing is for files; arrays come as the network takes them"
        )
    if skip < 0 or (limit is not None and limit < 1):
        raise DataError("data: limit must be positive and skip not negative")
    stop = None if limit is None else skip + limit
    return islice(iter(as_samples(data, inputs)), skip, stop)
