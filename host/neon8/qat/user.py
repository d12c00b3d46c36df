# SPDX-License-Identifier: Apache-2.0
"""The user's model and data, as `neon8 qat` takes them."""

import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from neon8.data.inputs import of_shapes
from neon8.data.samples import gather
from neon8.errors import DataError, GraphError
from neon8.settings.stages import DEFAULTS, Settings

INPUT = "image"


@dataclass(frozen=True, slots=True)
class Labelled:
    """images: (N, ...) float32.  labels: (N,) int64."""

    images: torch.Tensor
    labels: torch.Tensor


def build(path: Path, function: str) -> tuple[nn.Module, tuple[int, ...]]:
    """What a function in a Python file returns: a model, and the shape of a sample.

    The folder of the file is searched for the modules that it imports.  GraphError:
    there is no such function, it fails, or returns something else.
    """
    where = f"{path}: {function}()"
    if path.suffix != ".py" or not path.is_file():
        raise GraphError(f"{path}: is no Python file that is there")
    try:
        made = _called(path, function)
    except Exception as error:  # whatever the user's code raises
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise GraphError(f"{where}: {text}") from error
    try:
        model, shape = made
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError) as error:
        text = "returns no model with the shape of a sample, like (net, (3, 224, 224))"
        raise GraphError(f"{where}: {text}") from error
    if not isinstance(model, nn.Module) or not sizes or min(sizes) < 1:
        text = "returns no torch.nn.Module with the shape of a sample"
        raise GraphError(f"{where}: {text}")
    return model, sizes


def _called(path: Path, function: str) -> Any:
    """What the function returns, or raises."""
    sys.path.insert(0, str(path.resolve().parent))
    try:
        return runpy.run_path(str(path))[function]()
    finally:
        sys.path.pop(0)


def read(data: Path, shape: tuple[int, ...], settings: Settings = DEFAULTS) -> Labelled:
    """All samples and their classes, in memory.  DataError: some have none."""
    inputs = of_shapes({INPUT: (1, *shape)})
    images, labels = [], []
    for sample in gather(data, inputs, settings=settings):
        if not sample.labels:
            text = "has no class, and training needs them; see labels below --help"
            raise DataError(f"{sample.name}: {text}")
        images.append(sample.inputs[INPUT])
        labels.append(sample.labels[0])
    return Labelled(
        torch.from_numpy(np.concatenate(images)),
        torch.tensor(labels, dtype=torch.int64),
    )
