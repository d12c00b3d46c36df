# SPDX-License-Identifier: Apache-2.0
"""What a set of samples says about a network: all that thresholds are chosen from.

An Observation depends on the set of samples alone, not on their order, on batches or on
how the work was divided: merge() of any two that share no sample gives what observing
both sets at once would have given. calib_file makes bytes of it and reads them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from neon8.arrays import FloatArray
from neon8.calibrate.statistics import channels, histogram
from neon8.calibrate.statistics.channels import ChannelStatistics
from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.statistics.observer import Extreme
from neon8.calibrate.statistics.patches import Patches
from neon8.calibrate.statistics.patches import merge as merge_patches
from neon8.errors import CalibrationError

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorObservation:
    """smallest, largest: where the extremes were seen; None without a finite value."""

    histogram: Histogram
    smallest: Extreme | None
    largest: Extreme | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerFacts:
    """What solving needs to know about one convolution, without the model.

    input, output, pre_activation: tensor names as in Conv2d.  weight_shape:
    (O, I / groups, kh, kw).  weight_absmax, bias: (O,).  patches: rows of its input.
    """

    input: str
    output: str
    pre_activation: str
    weight_shape: tuple[int, int, int, int]
    groups: int
    strides: tuple[int, int]
    weight_absmax: FloatArray
    bias: FloatArray
    patches: Patches


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """model_digest: SHA-256 of the ONNX file, hex.  engine: reference.FACTS.

    preprocess_digest: of the settings of --preprocess, "" without.  samples: digests of
    all samples, ascending, each once.  tensors: the tensors whose values are new, by
    name, in order of execution.  channels: by name, of every convolution's input and
    pre-activation.  layers: the convolutions by node name.  scale_groups: every tensor
    of the network -> the one that names the group with which it shares its scale.
    """

    model_name: str
    model_digest: str
    engine: dict[str, str]
    preprocess_digest: str
    samples: tuple[str, ...]
    tensors: dict[str, TensorObservation]
    channels: dict[str, ChannelStatistics]
    layers: dict[str, LayerFacts]
    scale_groups: dict[str, str]


def merge(first: Observation, second: Observation) -> Observation:
    """What observing the samples of both gives.

    CalibrationError: they are of other models, engines or preprocessing, or share a
    sample; it names the first field or sample in question.
    """
    check_settings(first, second)
    again = set(first.samples).intersection(second.samples)
    if again:
        raise CalibrationError(
            f"both hold the sample with digest {min(again)} ({len(again)} such samples "
            "in all); counting it twice would be wrong: merge shards that do not "
            "overlap, of data without duplicates"
        )
    return replace(
        first,
        samples=tuple(sorted((*first.samples, *second.samples))),
        tensors=_both(first.tensors, second.tensors, merge_tensors),
        channels=_both(first.channels, second.channels, channels.merge),
        layers=_both(first.layers, second.layers, _merge_layers),
    )


def merge_tensors(
    first: TensorObservation, second: TensorObservation
) -> TensorObservation:
    """What the values of both give."""
    return TensorObservation(
        histogram=histogram.merge(first.histogram, second.histogram),
        smallest=_extreme(first.smallest, second.smallest, sign=1),
        largest=_extreme(first.largest, second.largest, sign=-1),
    )


def _extreme(
    first: Extreme | None, second: Extreme | None, *, sign: int
) -> Extreme | None:
    """The smaller (sign 1) or larger (-1) one; of equal ones the smaller digest."""
    known = [extreme for extreme in (first, second) if extreme is not None]
    return min(known, key=lambda e: (sign * e.value, e.sample), default=None)


def _merge_layers(first: LayerFacts, second: LayerFacts) -> LayerFacts:
    return replace(first, patches=merge_patches(first.patches, second.patches))


def _both(
    first: Mapping[str, Value],
    second: Mapping[str, Value],
    join: Callable[[Value, Value], Value],
) -> dict[str, Value]:
    return {name: join(value, second[name]) for name, value in first.items()}


def check_settings(first: Observation, second: Observation) -> None:
    """CalibrationError unless both are of one model, engine and preprocessing."""
    for what, one, other in _settings(first, second):
        if one != other:
            raise CalibrationError(
                f"{what} is {one!r} in one and {other!r} in the other; "
                "observe both with the same settings"
            )
    if _shape(first) != _shape(second):
        raise CalibrationError(
            "one model, but other tensors or layers were observed: "
            "observe both with the same version of neon8"
        )


def _settings(
    first: Observation, second: Observation
) -> list[tuple[str, str | None, str | None]]:
    keys = sorted({*first.engine, *second.engine})
    return [
        ("the model's digest", first.model_digest, second.model_digest),
        *(
            (f"the engine's {key}", first.engine.get(key), second.engine.get(key))
            for key in keys
        ),
        (
            "the digest of the preprocessing",
            first.preprocess_digest or None,
            second.preprocess_digest or None,
        ),
    ]


def _shape(observation: Observation) -> Any:
    """What must be equal, as a value."""
    return (
        observation.model_name,
        list(observation.tensors),
        [(name, len(c.count)) for name, c in observation.channels.items()],
        list(observation.scale_groups.items()),
        [
            (
                name,
                facts.input,
                facts.output,
                facts.pre_activation,
                facts.weight_shape,
                facts.groups,
                facts.strides,
                facts.weight_absmax.tobytes(),
                facts.bias.tobytes(),
            )
            for name, facts in observation.layers.items()
        ],
    )
