# SPDX-License-Identifier: Apache-2.0
"""The JSON header of a .calib file: all names and sizes, none of the statistics."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from neon8.calibrate.observation import Observation
from neon8.calibrate.statistics.patches import CHANNELS, ROWS
from neon8.errors import CalibrationError

Value = TypeVar("Value")

_SHA256 = re.compile("[0-9a-f]{64}")
_LARGEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerHeader:
    """Of one convolution.  rows, row_groups: the n and G of its Patches."""

    input: str
    output: str
    pre_activation: str
    weight_shape: tuple[int, int, int, int]
    groups: int
    strides: tuple[int, int]
    rows: int
    row_groups: int

    @property
    def taps(self) -> int:
        """Weights of one output channel."""
        _, inputs, height, width = self.weight_shape
        return inputs * height * width

    @property
    def chosen(self) -> int:
        """How many output channels have their weights in the file."""
        return min(self.weight_shape[0], CHANNELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """samples: how many.  tensors: names.  channels: name -> C.

    The rest is as in Observation.
    """

    model_name: str
    model_digest: str
    engine: dict[str, str]
    preprocess_digest: str
    samples: int
    tensors: tuple[str, ...]
    channels: dict[str, int]
    layers: dict[str, LayerHeader]
    leaders: dict[str, str]


def header_text(observation: Observation) -> bytes:
    """The header of `observation`: one line of ASCII, keys in order, no spaces."""
    value = {
        "model": {"name": observation.model_name, "digest": observation.model_digest},
        "engine": observation.engine,
        "preprocess": observation.preprocess_digest,
        "samples": len(observation.samples),
        "tensors": list(observation.tensors),
        "channels": [[name, len(c.count)] for name, c in observation.channels.items()],
        "layers": [
            {
                "name": name,
                "input": layer.input,
                "output": layer.output,
                "pre_activation": layer.pre_activation,
                "weight_shape": layer.weight_shape,
                "groups": layer.groups,
                "strides": layer.strides,
                "rows": layer.patches.rows.shape[:2],
            }
            for name, layer in observation.layers.items()
        ],
        "leaders": list(observation.leaders.items()),
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_header(text: bytes) -> Header:
    """header_text() backwards.  CalibrationError names what is wrong, not the file."""
    try:
        value = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise CalibrationError("the header is not JSON in ASCII") from error
    keys = "channels engine layers leaders model preprocess samples tensors"
    fields = _object(value, keys, "the header")
    model = _object(fields["model"], "digest name", "model")
    engine = fields["engine"]
    if not isinstance(engine, dict):
        raise CalibrationError("engine: expected an object")
    if fields["preprocess"] != "":
        _digest(fields["preprocess"], "preprocess")
    header = Header(
        model_name=_name(model["name"], "model.name"),
        model_digest=_digest(model["digest"], "model.digest"),
        engine={_name(k, "engine"): _name(v, f"engine.{k}") for k, v in engine.items()},
        preprocess_digest=fields["preprocess"],
        samples=_integer(fields["samples"], "samples"),
        tensors=tuple(_unique(fields["tensors"], "tensors", lambda n: (n, None))),
        channels=_unique(fields["channels"], "channels", _channel),
        layers=_unique(fields["layers"], "layers", _layer),
        leaders=_unique(fields["leaders"], "leaders", _leader),
    )
    _check(header)
    return header


def _check(header: Header) -> None:
    """That names refer to something."""
    leaders = header.leaders
    for name, leader in leaders.items():
        if leaders.get(leader) != leader:
            raise CalibrationError(f"leaders: {name!r} has no leader")
    led = {leaders[name] for name in header.tensors if name in leaders}
    for name in header.tensors:
        if name not in leaders:
            raise CalibrationError(f"tensors: {name!r} has no leader")
    for leader in set(leaders.values()) - led:
        raise CalibrationError(f"leaders: nothing was observed of {leader!r}")
    for name, layer in header.layers.items():
        if layer.input not in leaders or layer.output not in leaders:
            raise CalibrationError(f"layer {name!r}: its tensors are unknown")
        out, inputs = layer.weight_shape[0], layer.weight_shape[1] * layer.groups
        if header.channels.get(layer.input) != inputs:
            raise CalibrationError(f"layer {name!r}: channels of its input are missing")
        if header.channels.get(layer.pre_activation) != out:
            raise CalibrationError(f"layer {name!r}: its output's channels are missing")


def _layer(value: Any) -> tuple[Any, LayerHeader]:
    keys = "groups input name output pre_activation rows strides weight_shape"
    fields = _object(value, keys, "layers")
    what = f"layer {fields['name']!r}"
    shape = _integers(fields["weight_shape"], 4, what)
    strides = _integers(fields["strides"], 2, what)
    rows, row_groups = _integers(fields["rows"], 2, what, least=0)
    layer = LayerHeader(
        input=_name(fields["input"], what),
        output=_name(fields["output"], what),
        pre_activation=_name(fields["pre_activation"], what),
        weight_shape=(shape[0], shape[1], shape[2], shape[3]),
        groups=_integer(fields["groups"], what, least=1),
        strides=(strides[0], strides[1]),
        rows=rows,
        row_groups=row_groups,
    )
    if rows > ROWS or not 1 <= row_groups <= min(layer.chosen, layer.groups):
        raise CalibrationError(f"{what}: rows are out of range")
    if shape[0] % layer.groups:
        raise CalibrationError(f"{what}: groups do not divide its outputs")
    return fields["name"], layer


def _channel(value: Any) -> tuple[Any, int]:
    name, count = _pair(value, "channels")
    return name, _integer(count, f"channels {name!r}", least=1)


def _leader(value: Any) -> tuple[Any, str]:
    name, leader = _pair(value, "leaders")
    return name, _name(leader, f"leaders {name!r}")


def _unique(
    value: Any, what: str, read: Callable[[Any], tuple[Any, Value]]
) -> dict[str, Value]:
    """A list of entries that each have a name, no name twice."""
    if not isinstance(value, list):
        raise CalibrationError(f"{what}: expected a list")
    result: dict[str, Value] = {}
    for item in value:
        name, entry = read(item)
        if _name(name, what) in result:
            raise CalibrationError(f"{what}: {name!r} is there twice")
        result[name] = entry
    return result


def _object(value: Any, keys: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or sorted(value) != keys.split():
        raise CalibrationError(f"{what}: expected an object with the keys {keys}")
    return value


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise CalibrationError(f"{what}: expected pairs")
    return value[0], value[1]


def _name(value: Any, what: str) -> str:
    # A lone surrogate is no text: printing it would fail much later.
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise CalibrationError(f"{what}: expected a name")
    return value


def _digest(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise CalibrationError(f"{what}: expected 64 hexadecimal digits")
    return value


def _integer(value: Any, what: str, *, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= _LARGEST:
        raise CalibrationError(f"{what}: expected an integer from {least}")
    return value


def _integers(value: Any, count: int, what: str, *, least: int = 1) -> list[int]:
    if not isinstance(value, list) or len(value) != count:
        raise CalibrationError(f"{what}: expected lists of {count} integers")
    return [_integer(item, what, least=least) for item in value]
