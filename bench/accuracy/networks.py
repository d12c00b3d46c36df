# SPDX-License-Identifier: Apache-2.0
"""The networks to measure, from a description like sample_zoo.toml.

[squeezenet]
model = "models/squeezenet1.1_fp32.onnx"      # seen from the folder, as data
data = "data/imagenet_200"                    # what neon8 takes as --data
calibrate = 100                               # the first samples
evaluate = 100                                # those after them
preprocess = { color = "bgr", mean = [104, 117, 123] }
harden = ["dense", "lattice_tensor"]          # names of harden.py
notes = { dense = "why this one loses more" } # for the page, where it does
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.accuracy.harden import REWRITINGS

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
    """A float network and its samples.  preprocess: TOML as neon8 reads it, or ""."""

    name: str
    model: Path
    data: Path
    calibrate: int
    evaluate: int
    preprocess: str = ""
    harden: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def load(folder: Path, description: Path | None = None) -> list[Network]:
    """All of them, in the order of the file.  DescriptionError.

    description: if None, networks.toml in the folder, or sample_zoo.toml without one.
    """
    own = folder / FILE
    path = description or (own if own.exists() else SAMPLE)
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DescriptionError(f"{path}: {error}") from error
    return [_network(folder, path, name, entry) for name, entry in found.items()]


def _network(folder: Path, path: Path, name: str, entry: dict) -> Network:
    try:
        files = {key: folder / entry.pop(key) for key in ("model", "data")}
        settings = _toml(entry.pop("preprocess", {}))
        network = Network(name=name, preprocess=settings, **files, **entry)
    except (KeyError, TypeError) as error:
        raise DescriptionError(f"{path}: [{name}]: {error}") from error
    for rewriting in (*network.harden, *network.notes):
        if rewriting not in REWRITINGS:
            text = f"there is no rewriting {rewriting!r}; {', '.join(REWRITINGS)}"
            raise DescriptionError(f"{path}: [{name}]: {text}")
    for file in files.values():
        if not file.exists():
            raise DescriptionError(f"{path}: [{name}]: there is no {file}")
    return network


def _toml(settings: dict[str, object]) -> str:
    lines = {
        key: f'"{value}"' if isinstance(value, str) else str(value)
        for key, value in settings.items()
    }
    return "".join(f"{key} = {value}\n" for key, value in lines.items())
