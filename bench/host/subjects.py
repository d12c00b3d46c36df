# SPDX-License-Identifier: Apache-2.0
"""The networks, as ONNX and as neon8 compiles them.

Their weights are random, which makes no difference to onnxruntime, and to neon8 only
where a faster kernel needs a proof about weights. A trained SqueezeNet may be given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

import neon8
from bench.networks import catalogue
from bench.networks.samples import images

CALIBRATION = 8
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A network.  image: what it is run on; macs: of one run."""

    title: str
    onnx: Path
    compiled: Path
    image: dict[str, np.ndarray]
    macs: int


NETWORKS = {
    "squeezenet1_1": "SqueezeNet 1.1",
    "mobilenet_v2": "MobileNetV2",
    "resnet50": "ResNet-50",
}
"""Names in the catalogue, and how the page calls them."""
TRAINED = "squeezenet1_1"
"""The one that may be given."""


def subjects(
    names: list[str], folder: Path, *, squeezenet: Path | None = None
) -> dict[str, Callable[[], Subject]]:
    """Functions that make the networks in this folder, by name."""
    return {
        name: partial(trained, name, squeezenet, folder)
        if squeezenet and name == TRAINED
        else partial(random, name, folder)
        for name in names
    }


def random(name: str, folder: Path) -> Subject:
    """A network of the catalogue."""
    _, proto = catalogue.build(name)
    path = folder / f"{name}.onnx"
    onnx.save(proto, path)
    return compiled(NETWORKS[name], path, folder)


def trained(name: str, path: Path, folder: Path) -> Subject:
    """That network in a file, on images that are as random."""
    return compiled(f"{NETWORKS[name]}, trained", path, folder)


def compiled(title: str, path: Path, folder: Path) -> Subject:
    """Calibrated and compiled as by default."""
    graph = neon8.load_graph(path)
    shapes = {name: graph.tensors[name].dims[1:] for name in graph.inputs}
    data = images(shapes, CALIBRATION, seed=SEED)
    file = folder / f"{path.stem}.n8"
    table = neon8.calibrate_model(path, data)
    neon8.save_model(neon8.compile_model(path, table), file)
    with neon8.Model.open(file) as model:
        macs = sum(step.macs for step in model.steps)
    return Subject(title=title, onnx=path, compiled=file, image=data[0], macs=macs)
