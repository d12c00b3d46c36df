# SPDX-License-Identifier: Apache-2.0
"""ScaleTable: the scales of a network, as a value. table/json_format.py reads and writes it."""

from dataclasses import dataclass, field

SCHEMES = ("symmetric", "unsigned", "asymmetric")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorScale:
    """How one activation is quantized: real = scale * (q - zero_point)  (1).

    threshold: (lo, hi), the real range that the scale covers; min, max: what was seen.
    reasons: codes of the guards that fired, e.g. "dead".
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
    """

    input: str
    weight_scales: tuple[float, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTable:
    """tensors: by ONNX tensor name; layers: by node name; samples: how many were seen."""

    model_name: str
    model_digest: str
    method: str
    scheme: str
    samples: int
    engine: str
    tensors: dict[str, TensorScale] = field(default_factory=dict)
    layers: dict[str, LayerScale] = field(default_factory=dict)
