# SPDX-License-Identifier: Apache-2.0
"""Statistics of the tensors, one sample at a time: nothing of a sample is kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neon8.calibrate import channels, histogram, twins
from neon8.calibrate.channels import ChannelStatistics
from neon8.calibrate.histogram import Histogram
from neon8.errors import CalibrationError
from neon8.graph.graph import Conv2d, Graph

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The smallest or largest value of a tensor and where it was seen.

    sample: the digest, the first in order of those that have the value.  channel: the
    first one of that sample.
    """

    value: float
    sample: str
    channel: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """Of one tensor.  histogram, channels: None if not asked for.

    smallest, largest: None if there is no finite value, or no histogram.
    """

    histogram: Histogram | None
    channels: ChannelStatistics | None
    smallest: Extreme | None
    largest: Extreme | None


def channel_inputs(graph: Graph) -> tuple[str, ...]:
    """The inputs of all convolutions, each once, in order of execution."""
    nodes = (node for node in graph.nodes if isinstance(node, Conv2d))
    return tuple(dict.fromkeys(node.inputs[0] for node in nodes))


def pre_activations(graph: Graph) -> tuple[str, ...]:
    """The outputs of all convolutions before their activations, each once."""
    nodes = (node for node in graph.nodes if isinstance(node, Conv2d))
    return tuple(dict.fromkeys(node.pre_activation for node in nodes))


class Observer:
    """Takes in samples and gives the statistics of all so far.

    histograms, channels: the names of tensors of which to take each kind; a name may
    be in both.
    """

    def __init__(
        self,
        *,
        histograms: Iterable[str],
        channels: Iterable[str],
        ignore_nonfinite: bool = False,
    ) -> None:
        self._histograms = dict.fromkeys(histograms, histogram.empty())
        self._channels: dict[str, ChannelStatistics | None] = dict.fromkeys(channels)
        self._smallest: dict[str, Extreme] = {}
        self._largest: dict[str, Extreme] = {}
        self._ignore_nonfinite = ignore_nonfinite

    def add(self, values: Mapping[str, Array], *, sample: str, digest: str) -> None:
        """One sample more.

        values: each tensor asked for, float32 of shape (1, C, ...).  sample: its name,
        for messages.  CalibrationError: a value is NaN or infinite; the sample then
        counts nowhere.
        """
        new = {name: _floats(values[name]) for name in self._histograms}
        new |= {name: _floats(values[name]) for name in self._channels}
        if not self._ignore_nonfinite:
            for name, array in new.items():
                _check_finite(name, array, sample)
        for name, old in self._histograms.items():
            one = histogram.of(new[name])
            self._histograms[name] = histogram.merge(old, one)
            if one.total:
                self._keep(name, new[name], one, digest)
        for name, before in self._channels.items():
            now = twins.channels_of(new[name])
            if before is not None:
                now = channels.merge(before, now)
            self._channels[name] = now

    def result(self) -> dict[str, Observed]:
        """Of all samples so far, by name."""
        return {
            name: Observed(
                histogram=self._histograms.get(name),
                channels=self._channels.get(name),
                smallest=self._smallest.get(name),
                largest=self._largest.get(name),
            )
            for name in {**self._histograms, **self._channels}
        }

    def _keep(
        self, name: str, values: npt.NDArray[np.float32], one: Histogram, digest: str
    ) -> None:
        for kept, value, sign in (
            (self._smallest, one.minimum, 1),
            (self._largest, one.maximum, -1),
        ):
            old = kept.get(name)
            if old is None or (sign * value, digest) < (sign * old.value, old.sample):
                channel = int(np.argwhere(values[0] == value)[0][0])
                kept[name] = Extreme(value=value, sample=digest, channel=channel)


def _floats(values: Array) -> npt.NDArray[np.float32]:
    floats = np.ascontiguousarray(values, dtype=np.float32)
    return floats.reshape(1, 1) if floats.ndim < 2 and floats.size == 1 else floats


def _check_finite(name: str, values: npt.NDArray[np.float32], sample: str) -> None:
    nans = int(np.count_nonzero(np.isnan(values)))
    infinite = int(np.count_nonzero(np.isinf(values)))
    if nans or infinite:
        text = f"{nans} NaN and {infinite} infinite values of {values.size}"
        raise CalibrationError(f"tensor {name!r}: {text} in sample {sample}")
