# SPDX-License-Identifier: Apache-2.0
"""ScaleTable: the scales of a network, as a value; json_format reads and writes it."""

from dataclasses import dataclass, field

SCHEMES = ("symmetric", "unsigned", "asymmetric")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorScale:
    """How one activation is quantized: real = scale * (q - zero_point)  (1).

    threshold: (lo, hi), the real range that the scale covers; min, max: what was seen.
    All real numbers are float32 values.
    reasons: codes of the guards that fired: "dead" (all values are zero, the scale is
    made up), "few" (too few values to choose from: minimum and maximum it is), "guard"
    (the method clipped too much energy, the range was widened).
    """

    scale: float
    zero_point: int
    scheme: str
    threshold: tuple[float, float]
    min: float
    max: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScale:
    """The weight scales of one convolution, one per output channel, float32 values.

    input: the activation that it reads; its scale is tensors[input].
    reasons: "dead:N" (channel N has no weights), "bias:N" (the scale of channel N was
    enlarged so that its bias fits int32).
    """

    input: str
    weight_scales: tuple[float, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTable:
    """tensors: by ONNX tensor name; layers: by node name; samples: how many seen."""

    model_name: str
    model_digest: str
    method: str
    scheme: str
    samples: int
    engine: str
    tensors: dict[str, TensorScale] = field(default_factory=dict)
    layers: dict[str, LayerScale] = field(default_factory=dict)
