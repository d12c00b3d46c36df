# SPDX-License-Identifier: Apache-2.0
"""What a set of samples says about a network: everything thresholds are chosen from.

An Observation depends only on the set of samples, not on their order, on batches or on
how the work was divided: merge() of two that share no sample gives what observing both
sets at once would have given. calib_file.py reads and writes it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from neon8.arrays import FloatArray
from neon8.calibrate.statistics import channels, histogram
from neon8.calibrate.statistics.channels import ChannelStatistics
from neon8.calibrate.statistics.observer import Extreme, TensorObservation
from neon8.calibrate.statistics.patches import Patches
from neon8.calibrate.statistics.patches import merge as merge_patches
from neon8.errors import CalibrationError
from neon8.text import Fields, Part, Showing

Value = TypeVar("Value")

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""The shape of each input of a sample, with its name."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Observation(Showing):
    """Everything observed of one network on one set of samples.

    model_digest: SHA-256 of the ONNX file, hex.  engine: reference.FACTS and the CPU.
    preprocess_digest: of the settings of --preprocess, or "".  samples: digests,
    ascending, each once.  tensors: those with values of their own, by name, in order of
    execution.  channels: for inputs and pre-activations of convolutions, by name.
    layers: convolutions by node name.  scale_groups: every tensor of the network -> the
    tensor that names its scale group.  shapes: where --shape says what they may be, the
    shapes of samples, ascending, and how many have them.
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
    shapes: dict[Shapes, int] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """How much was observed."""
        named = ("samples", "tensors", "layers")
        counts = [(name, len(getattr(self, name))) for name in named]
        return [Fields([("model", self.model_name), *counts])]

    @property
    def usual_shapes(self) -> dict[str, tuple[int, ...]] | None:
        """The shapes of most samples, of several the smallest; None if unknown."""
        least = min(self.shapes, key=lambda s: (-self.shapes[s], s), default=None)
        return None if least is None else dict(least)


def merge(first: Observation, second: Observation) -> Observation:
    """Merge observations of two sets of samples.

    CalibrationError: they differ in model, engine or preprocessing, or share a sample;
    it names the first field or sample.
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
        channels=_both_channels(first, second),
        layers=_both(
            first.layers,
            second.layers,
            lambda a, b: replace(a, patches=merge_patches(a.patches, b.patches)),
        ),
        shapes=dict(sorted((Counter(first.shapes) + Counter(second.shapes)).items())),
    )


def _both_channels(
    first: Observation, second: Observation
) -> dict[str, ChannelStatistics]:
    """Those of tensors that have as many channels at all shapes.

    In a network with open dimensions the axis of channels may be one of them.
    """
    for one, other in ((first, second), (second, first)):
        if not one.samples:
            return other.channels
    return {
        name: channels.merge(one, second.channels[name])
        for name, one in first.channels.items()
        if name in second.channels
        and len(one.count) == len(second.channels[name].count)
    }


def merge_tensors(
    first: TensorObservation, second: TensorObservation
) -> TensorObservation:
    """Merge the statistics of one tensor on two sets of samples."""
    return TensorObservation(
        histogram=histogram.merge(first.histogram, second.histogram),
        smallest=_extreme(first.smallest, second.smallest, sign=1),
        largest=_extreme(first.largest, second.largest, sign=-1),
    )


def _extreme(
    first: Extreme | None, second: Extreme | None, *, sign: int
) -> Extreme | None:
    """The smaller (sign 1) or larger (-1) extreme; on a tie the smaller digest."""
    known = [extreme for extreme in (first, second) if extreme is not None]
    return min(known, key=lambda e: (sign * e.value, e.sample), default=None)


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
    if structure(first) != structure(second):
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


def check_model(observation: Observation, digest: str, where: object) -> None:
    """CalibrationError unless it is of the model at `where`, which has this digest."""
    if observation.model_digest != digest:
        raise CalibrationError(
            f"{where}: the calibration file is of another model, "
            f"{observation.model_name} ({observation.model_digest[:12]}..., not "
            f"{digest[:12]}...); observe this one"
        )


def structure(observation: Observation) -> Any:
    """Everything that must be equal before a merge, as a comparable value."""
    return (
        observation.model_name,
        list(observation.tensors),
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
