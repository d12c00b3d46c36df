# SPDX-License-Identifier: Apache-2.0
"""Read and write .calib files, which hold an Observation; see docs/calib-format.md.

The bytes are canonical: equal observations give equal bytes, and loads() accepts no
others. It trusts nothing and checks that all numbers agree with each other.
"""

import math
import re
from collections.abc import Callable
from itertools import pairwise
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from neon8.arrays import AnyArray
from neon8.calibrate import container
from neon8.calibrate.observation import LayerFacts, Observation, Shapes
from neon8.calibrate.statistics.channels import (
    FIELDS,
    ChannelStatistics,
    empty,
    join,
)
from neon8.calibrate.statistics.histogram import BINS, LOG_BINS, Histogram, exponent_of
from neon8.calibrate.statistics.observer import Extreme, TensorObservation
from neon8.calibrate.statistics.patches import CHANNELS, ROWS, Patches
from neon8.errors import CalibrationError
from neon8.files import read_file, reading, write_atomic
from neon8.ir.graph import Activation

Value = TypeVar("Value")

KIND = container.Kind("a .calib file", b"n8calib\n", 3)
NOBODY = 0xFFFFFFFF
"""Index of a sample for tensors without a finite value."""
_SHA256 = re.compile("[0-9a-f]{64}")
_MOST = 1 << 62
"""Bound on the values of one tensor, so that no sum of counts overflows."""
_LARGEST = (1 << 31) - 1


def save(observation: Observation, path: str | PathLike[str]) -> None:
    """Write a .calib file, whole or not at all.  SetupError."""
    write_atomic(path, dumps(observation))


def load(path: str | PathLike[str]) -> Observation:
    """Read a .calib file.  CalibrationError names file, place and cause."""
    with reading(path, CalibrationError):
        data = read_file(path)
    return loads(data, source=str(path))


def dumps(observation: Observation) -> bytes:
    """The bytes of a .calib file."""
    return container.dumps(KIND, *pack(observation))


def loads(data: bytes, *, source: str) -> Observation:
    """Read the bytes of a .calib file.  CalibrationError names `source` and cause."""
    try:
        observation = unpack(*container.loads(KIND, data))
    except CalibrationError as error:
        raise CalibrationError(f"{source}: {error}") from error
    if dumps(observation) != data:
        text = "is not canonical, so neon8 did not write it"
        raise CalibrationError(f"{source}: {text}")
    return observation


def pack(observation: Observation) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The facts and arrays of the container that holds `observation`."""
    facts = {
        "model": {"name": observation.model_name, "digest": observation.model_digest},
        "engine": observation.engine,
        "preprocess": observation.preprocess_digest,
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
            }
            for name, layer in observation.layers.items()
        ],
        "scale_groups": list(observation.scale_groups.items()),
    }
    if observation.shapes:
        facts["shapes"] = [[s, count] for s, count in observation.shapes.items()]
    digests = bytes.fromhex("".join(observation.samples))
    arrays = {"samples": np.frombuffer(digests, "u1").reshape(-1, 32)}
    arrays |= _pack_tensors(observation)
    arrays |= _pack_channels([*observation.channels.values()])
    for number, layer in enumerate(observation.layers.values()):
        arrays |= _pack_layer(f"layers.{number}.", layer)
    return facts, arrays


def _pack_tensors(observation: Observation) -> dict[str, AnyArray]:
    """Arrays of all tensors, along the first axis."""
    index = {digest: i for i, digest in enumerate(observation.samples)}
    tensors = [*observation.tensors.values()]
    histograms = [tensor.histogram for tensor in tensors]
    count = len(tensors)

    def mark(extreme: Extreme | None) -> tuple[int, int]:
        if extreme is None:
            return NOBODY, 0
        return index[extreme.sample], extreme.channel

    return {
        "tensors.exponent": np.array([h.exponent for h in histograms], "<i4"),
        "tensors.limits": np.array(
            [(h.minimum, h.maximum) for h in histograms], "<f4"
        ).reshape(count, 2),
        "tensors.extremes": np.array(
            [(mark(tensor.smallest), mark(tensor.largest)) for tensor in tensors], "<u4"
        ).reshape(count, 2, 2),
        "tensors.apart": np.array(
            [(h.zeros, h.nans, h.infs) for h in histograms], "<u8"
        ).reshape(count, 3),
        "tensors.counts": np.array(
            [(h.positive, h.negative) for h in histograms], "<u8"
        ).reshape(count, 2, BINS),
    }


def _pack_channels(channels: list[ChannelStatistics]) -> dict[str, AnyArray]:
    """Arrays of the channels of all tensors, one after another."""
    joined = join([empty(0), *channels])
    return {
        f"channels.{name}": getattr(joined, name).astype(f"<{kind}")
        for name, (kind, _) in FIELDS.items()
    }


def _pack_layer(at: str, layer: LayerFacts) -> dict[str, AnyArray]:
    patches = layer.patches
    limits = [patches.activation.lo, patches.activation.hi, patches.activation.slope]
    return {
        f"{at}weight_absmax": layer.weight_absmax.astype("<f4"),
        f"{at}bias": layer.bias.astype("<f4"),
        f"{at}activation": np.array(limits, "<f8"),
        f"{at}patches.weights": patches.weights.astype("<f4"),
        f"{at}patches.bias": patches.bias.astype("<f4"),
        f"{at}patches.groups": patches.groups.astype("<u4"),
        f"{at}patches.keys": patches.keys.astype("<u8"),
        f"{at}patches.rows": patches.rows.astype("<f4"),
    }


def unpack(facts: Any, arrays: dict[str, AnyArray]) -> Observation:
    """Undo pack().  CalibrationError: the cause, without the file's name."""
    keys = "channels engine layers model preprocess scale_groups tensors"
    if isinstance(facts, dict) and "shapes" in facts:
        keys = keys.replace("scale_groups", "scale_groups shapes")
    fields = _object(facts, keys, "the header")
    model = _object(fields["model"], "digest name", "model")
    engine = fields["engine"]
    if not isinstance(engine, dict):
        raise CalibrationError("engine: expected an object")
    if fields["preprocess"] != "":
        _digest(fields["preprocess"], "preprocess")
    left = dict(arrays)
    digests = _take(left, "samples", "u1", None, 32)
    samples = tuple(row.tobytes().hex() for row in digests)
    if any(a >= b for a, b in pairwise(samples)):
        raise CalibrationError("samples: are not in order, or one is there twice")
    names = list(_unique(fields["tensors"], "tensors", lambda name: (name, None)))
    sizes = _unique(fields["channels"], "channels", _channel)
    layers = _unique(fields["layers"], "layers", _layer_facts)
    observation = Observation(
        model_name=_name(model["name"], "model.name"),
        model_digest=_digest(model["digest"], "model.digest"),
        engine={_name(k, "engine"): _name(v, f"engine.{k}") for k, v in engine.items()},
        preprocess_digest=fields["preprocess"],
        samples=samples,
        tensors=_unpack_tensors(left, names, samples),
        channels=_unpack_channels(left, sizes),
        layers={
            name: _unpack_layer(left, f"layers.{number}.", name, layer)
            for number, (name, layer) in enumerate(layers.items())
        },
        scale_groups=_unique(fields["scale_groups"], "scale_groups", _group),
        shapes=_shapes(fields.get("shapes", []), len(samples)),
    )
    if left:
        raise CalibrationError(f"array {min(left)!r} belongs to nothing")
    _check_names(observation)
    if not samples and (
        any(t.histogram.total for t in observation.tensors.values())
        or any(c.count.any() for c in observation.channels.values())
        or any(len(f.patches.keys) for f in observation.layers.values())
    ):
        raise CalibrationError("has values but no samples")
    return observation


def _take(
    left: dict[str, AnyArray], name: str, dtype: str, *shape: int | None
) -> AnyArray:
    """Take an array out of `left`; it must have this type and shape, None: any size."""
    array = left.pop(name, None)
    if array is None:
        raise CalibrationError(f"array {name!r} is missing")
    sizes = zip(array.shape, shape, strict=False)
    if (
        array.dtype != np.dtype(dtype)
        or array.ndim != len(shape)
        or any(want not in (None, size) for size, want in sizes)
    ):
        raise CalibrationError(f"array {name!r} is of another type or shape")
    return array


def _unpack_tensors(
    left: dict[str, AnyArray], names: list[str], samples: tuple[str, ...]
) -> dict[str, TensorObservation]:
    count = len(names)
    exponents = _take(left, "tensors.exponent", "i4", count).tolist()
    limits = _take(left, "tensors.limits", "f4", count, 2).tolist()
    extremes = _take(left, "tensors.extremes", "u4", count, 2, 2).tolist()
    apart = _take(left, "tensors.apart", "u8", count, 3).tolist()
    counts = _take(left, "tensors.counts", "u8", count, 2, BINS)
    result = {}
    for index, name in enumerate(names):
        (minimum, maximum), (zeros, nans, infs) = limits[index], apart[index]
        histogram = Histogram(
            exponent=exponents[index],
            positive=counts[index, 0],
            negative=counts[index, 1],
            zeros=zeros,
            nans=nans,
            infs=infs,
            minimum=minimum,
            maximum=maximum,
        )
        problem = _histogram_problem(histogram)
        if problem is not None:
            raise CalibrationError(f"tensor {name!r}: {problem}")
        seen: list[Extreme | None] = []
        for value, (sample, channel) in zip(
            limits[index], extremes[index], strict=True
        ):
            if histogram.total == 0 and (sample, channel) == (NOBODY, 0):
                seen.append(None)
            elif histogram.total > 0 and sample < len(samples):
                digest = samples[sample]
                seen.append(Extreme(value=value, sample=digest, channel=channel))
            else:
                text = "an extreme is of no sample in the file"
                raise CalibrationError(f"tensor {name!r}: {text}")
        result[name] = TensorObservation(
            histogram=histogram, smallest=seen[0], largest=seen[1]
        )
    return result


def _histogram_problem(histogram: Histogram) -> str | None:
    """The contradiction in a histogram, or None."""
    sides = (histogram.positive, histogram.negative)
    counts = [int(side.max()) for side in sides]
    most = _MOST // (2 * BINS + 3)
    if max(*counts, histogram.zeros, histogram.nans, histogram.infs) > most:
        return "its counts are out of range"
    minimum, maximum = histogram.minimum, histogram.maximum
    if histogram.total == 0:
        unset = (math.inf, -math.inf, exponent_of(0.0))
        if (minimum, maximum, histogram.exponent) != unset:
            return "it has limits but no values"
        return None
    if not -math.inf < minimum <= maximum < math.inf or _negative_zero(
        np.array([minimum, maximum])
    ):
        return "its minimum and maximum are out of order"
    if histogram.exponent != exponent_of(max(-minimum, maximum, 0.0)):
        return "its range does not match minimum and maximum"
    for side, limit in zip(sides, (maximum, -minimum), strict=True):
        used = np.flatnonzero(side)
        last = int(used[-1]) if used.size else -1
        bins = math.ldexp(max(limit, 0.0), LOG_BINS - histogram.exponent)
        if last != (int(bins) if limit > 0 else -1):
            return "its counts do not match minimum and maximum"
    if histogram.zeros == 0 and 0.0 in (minimum, maximum):
        return "its counts do not match minimum and maximum"
    return None


def _unpack_channels(
    left: dict[str, AnyArray], sizes: dict[str, int]
) -> dict[str, ChannelStatistics]:
    count = sum(sizes.values())
    taken: dict[str, Any] = {
        name: _take(left, f"channels.{name}", kind, count, *axes)
        for name, (kind, axes) in FIELDS.items()
    }
    joined = ChannelStatistics(**taken)
    some = joined.count > 0
    limits = np.isfinite(joined.minimum) & np.isfinite(joined.maximum)
    limits &= joined.minimum <= joined.maximum
    limits &= joined.quietest <= np.maximum(-joined.minimum, joined.maximum)
    none = (joined.minimum == np.inf) & (joined.maximum == -np.inf)
    none &= joined.quietest == np.inf
    if (
        not np.where(some, limits, none).all()
        or (joined.count < 0).any()
        or not (joined.quietest >= 0).all()
        or (joined.count > _MOST // BINS).any()
        or _negative_zero(joined.minimum)
        or _negative_zero(joined.maximum)
        or _negative_zero(joined.quietest)
        or (joined.squares[:, -1] >> np.uint64(63)).any()
        or joined.total[~some].any()
        or joined.squares[~some].any()
    ):
        raise CalibrationError("the statistics of channels contradict themselves")
    result, at = {}, 0
    for name, size in sizes.items():
        result[name] = joined.part(slice(at, at + size))
        at += size
    return result


def _unpack_layer(
    left: dict[str, AnyArray], at: str, name: str, facts: dict[str, Any]
) -> LayerFacts:
    shape = facts["weight_shape"]
    out, taps = shape[0], math.prod(shape[1:])
    chosen = min(out, CHANNELS)
    absmax = _take(left, f"{at}weight_absmax", "f4", out)
    bias = _take(left, f"{at}bias", "f4", out)
    lo, hi, slope = _take(left, f"{at}activation", "f8", 3).tolist()
    weights = _take(left, f"{at}patches.weights", "f4", chosen, taps)
    some_bias = _take(left, f"{at}patches.bias", "f4", chosen)
    groups = _take(left, f"{at}patches.groups", "u4", chosen).astype(np.int64)
    keys = _take(left, f"{at}patches.keys", "u8", None)
    rows = _take(left, f"{at}patches.rows", "f4", len(keys), None, taps)
    most = min(chosen, facts["groups"])
    if len(keys) > ROWS or not 1 <= rows.shape[1] <= most:
        raise CalibrationError(f"layer {name!r}: rows are out of range")
    if not lo <= hi or not math.isfinite(slope):
        raise CalibrationError(f"layer {name!r}: its activation makes no sense")
    if not all(np.isfinite(a).all() for a in (absmax, bias, weights, some_bias, rows)):
        raise CalibrationError(f"layer {name!r}: has NaN or infinite values")
    if (absmax < 0).any() or (groups >= rows.shape[1]).any():
        raise CalibrationError(f"layer {name!r}: has values out of range")
    if (keys[1:] < keys[:-1]).any():
        raise CalibrationError(f"layer {name!r}: its rows are not in order")
    return LayerFacts(
        **facts,
        weight_absmax=absmax,
        bias=bias,
        patches=Patches(
            keys=keys,
            rows=rows,
            weights=weights,
            bias=some_bias,
            groups=groups,
            activation=Activation(lo=lo, hi=hi, slope=slope),
        ),
    )


def _negative_zero(values: AnyArray) -> bool:
    return bool(((values == 0) & np.signbit(values)).any())


def _check_names(observation: Observation) -> None:
    """Raise CalibrationError unless every name refers to something."""
    groups, channels = observation.scale_groups, observation.channels
    for name, group in groups.items():
        if groups.get(group) != group:
            raise CalibrationError(f"scale_groups: {name!r} has no group")
    for name in observation.tensors:
        if name not in groups:
            raise CalibrationError(f"tensors: {name!r} has no scale group")
    for group in set(groups.values()) - {groups[n] for n in observation.tensors}:
        raise CalibrationError(f"scale_groups: nothing was observed of {group!r}")
    for name, layer in observation.layers.items():
        out, inputs = layer.weight_shape[0], layer.weight_shape[1] * layer.groups
        if layer.input not in groups or layer.output not in groups:
            raise CalibrationError(f"layer {name!r}: its tensors are unknown")
        for tensor, count in ((layer.input, inputs), (layer.pre_activation, out)):
            if tensor not in channels or len(channels[tensor].count) != count:
                text = f"statistics of the channels of {tensor!r} are missing"
                raise CalibrationError(f"layer {name!r}: {text}")


def _layer_facts(value: Any) -> tuple[Any, dict[str, Any]]:
    keys = "groups input name output pre_activation strides weight_shape"
    fields = dict(_object(value, keys, "layers"))
    name = fields.pop("name")
    what = f"layer {name!r}"
    for key in ("input", "output", "pre_activation"):
        _name(fields[key], what)
    fields["weight_shape"] = _integers(fields["weight_shape"], 4, what)
    fields["strides"] = _integers(fields["strides"], 2, what)
    if fields["weight_shape"][0] % _integer(fields["groups"], what):
        raise CalibrationError(f"{what}: groups do not divide its outputs")
    return name, fields


def _channel(value: Any) -> tuple[Any, int]:
    name, count = _pair(value, "channels")
    return name, _integer(count, f"channels {name!r}")


def _shapes(value: Any, samples: int) -> dict[Shapes, int]:
    """Shapes of samples, and how many of all have them."""
    found: dict[Shapes, int] = {}
    for item in value if isinstance(value, list) else [value]:
        given, count = _pair(item, "shapes")
        pairs = (_pair(each, "shapes") for each in _items(given, "shapes"))
        shape = tuple(
            (_name(name, "shapes"), _integers(dims, len(_items(dims, "shapes")), name))
            for name, dims in pairs
        )
        found[shape] = _integer(count, "shapes")
    if sum(found.values()) > samples:
        raise CalibrationError("shapes: of more samples than there are")
    return found


def _items(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise CalibrationError(f"{what}: expected lists")
    return value


def _group(value: Any) -> tuple[Any, str]:
    name, group = _pair(value, "scale_groups")
    return name, _name(group, f"scale_groups {name!r}")


def _unique(
    value: Any, what: str, read: Callable[[Any], tuple[Any, Value]]
) -> dict[str, Value]:
    """Read a list of named entries, none of them twice."""
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


def _integer(value: Any, what: str) -> int:
    if type(value) is not int or not 1 <= value <= _LARGEST:
        raise CalibrationError(f"{what}: expected an integer above 0")
    return value


def _integers(value: Any, count: int, what: str) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) != count:
        raise CalibrationError(f"{what}: expected lists of {count} integers")
    return tuple(_integer(item, what) for item in value)
