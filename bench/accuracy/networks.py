# SPDX-License-Identifier: Apache-2.0
"""The networks to measure, from a description like sample_zoo.toml.

[squeezenet]
model = "models/squeezenet1.1_fp32.onnx"      # seen from the folder, as data
data = "data/imagenet_200"                    # what neon8 takes as --data
calibrate = 100                               # the first samples
evaluate = 100                                # those after them
preprocess = { color = "bgr", mean = [104, 117, 123] }
harden = ["dense", "lattice_tensor"]          # names of harden.py
searches = ["mixed 1.25"]                     # recipes that take minutes
notes = { dense = "why this one loses more" } # for the page, where it does

Instead of a model, `draw` names a kind of drawn.py; letterbox = [416, 114] makes images
of that size of photographs, with that value around them; canvas = 96 makes as many
scenes of that size of digits, one half for those that calibrate; detection is what
evaluate's --detection takes.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from bench.accuracy import drawn, scenes
from bench.accuracy.harden import REWRITINGS
from neon8.data.preprocess import Preprocess, open_image
from neon8.data.samples import gather
from neon8.errors import DataError
from neon8.files import write_atomic

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "networks.toml"
SAMPLE = Path(__file__).with_name("sample_zoo.toml")


class DescriptionError(Exception):
    """What is wrong with the description, with its file and network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A float network and its samples.

    model: the folder itself if the network is to be drawn.
    """

    name: str
    data: Path
    model: Path
    calibrate: int
    evaluate: int
    preprocess: Preprocess | None = None
    harden: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    draw: str = ""
    letterbox: tuple[int, int] | None = None
    canvas: int = 0
    detection: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


def load(folder: Path) -> list[Network]:
    """All that networks.toml in the folder describes, or sample_zoo.toml without one.

    DescriptionError.
    """
    own = folder / FILE
    path = own if own.exists() else SAMPLE
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DescriptionError(f"{path}: {error}") from error
    return [_network(folder, path, name, entry) for name, entry in found.items()]


def _network(folder: Path, path: Path, name: str, entry: dict) -> Network:
    try:
        drawn_here = {"model": ""} if "draw" in entry else {}
        entry = drawn_here | entry
        files = {key: folder / entry.pop(key) for key in ("model", "data")}
        if "preprocess" in entry:
            values = entry["preprocess"].items()
            known = {k: tuple(v) if isinstance(v, list) else v for k, v in values}
            entry["preprocess"] = Preprocess(**known)
        network = Network(name=name, **files, **entry)
    except (KeyError, TypeError, DataError) as error:
        raise DescriptionError(f"{path}: [{name}]: {error}") from error
    for rewriting in (*network.harden, *network.notes):
        if rewriting not in REWRITINGS:
            text = f"there is no rewriting {rewriting!r}; {', '.join(REWRITINGS)}"
            raise DescriptionError(f"{path}: [{name}]: {text}")
    for file in files.values():
        if not file.exists():
            raise DescriptionError(f"{path}: [{name}]: there is no {file}")
    return network


def prepared(network: Network, folder: Path) -> Network:
    """With the data and the model that are to be made, which go into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    several: list[scenes.Scene] = []
    if network.letterbox or network.canvas:
        counts = network.calibrate, network.evaluate
        if network.letterbox:
            files = sorted(each for each in network.data.rglob("*.*") if _image(each))
            images = [boxed(each, *network.letterbox) for each in files[: sum(counts)]]
        else:
            several = scenes.scenes(network.data, network.canvas, counts)
            images = [scene.canvas for scene in several]
        path = folder / f"{network.name}.npz"
        np.savez(path, x=images)
        network = replace(network, data=path)
    if network.draw:
        path = folder / f"{network.name}.onnx"
        size = network.canvas or drawn.SIZE
        shapes = {"image": (1, 1, size, size)}
        found = gather(network.data, shapes, preprocess=network.preprocess)
        first = list(islice(found, network.calibrate))
        images = np.concatenate([sample.inputs["image"] for sample in first])
        if network.canvas:
            aims = scenes.maps(several[: len(first)], size // drawn.STRIDE)
        else:
            aims = drawn.classes([label for sample in first for label in sample.labels])
        model = drawn.draw(network.draw, images, aims)
        write_atomic(path, model.SerializeToString(deterministic=True))
        network = replace(network, model=path)
    return network


def _image(path: Path) -> bool:
    return path.suffix.lower() in (".jpg", ".jpeg", ".png")


def boxed(path: Path, size: int, fill: int) -> np.ndarray:
    """A photograph in the upper left of a square, its longer side filling it."""
    image = Image.fromarray(open_image(path))
    factor = size / max(image.size)
    small = [round(side * factor) for side in image.size]
    square = Image.new("RGB", (size, size), (fill,) * 3)
    square.paste(image.resize(small, Image.Resampling.BILINEAR))
    return np.asarray(square)
