# SPDX-License-Identifier: Apache-2.0
"""ScaleTable: the scales of a network, as a value; table_json reads and writes it."""

from dataclasses import dataclass, field

from neon8 import text

SCHEMES = ("symmetric", "unsigned", "asymmetric")
"""The schemes of a tensor."""
TABLE_SCHEMES = ("auto", *SCHEMES, "symmetric_with_uint8")
"""The rules by which the schemes of tensors are chosen."""
NARROW = 8
"""The most bits that int8 holds; more are held in int16."""
BITS = (7, NARROW, *range(9, 17))
"""The bits of activations.  7 have 127 steps, as int8 Winograd wants."""
WIDE = 16
"""The bits of int16 weights, instead of NARROW."""
PRECISIONS = ("int16", "float")
"""What a tensor can have instead of the precision of all."""
WEIGHTS16 = "weights16"
"""What a layer can have: weights of WIDE bits; its reason code, too."""
NEAREST, LATTICE, CHOSEN, BALANCED = ROUNDINGS = (
    "nearest",
    "lattice",
    "chosen",
    "balanced",
)
"""How weights become integers; for the others see neon8.quant.lattice, rewrite.rounding
and quant.balanced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorScale:
    """How one activation is quantized: real = scale * (q - zero_point)  (1).

    threshold: (lo, hi), the real range that the scale covers; min, max: what was seen,
    None where the scale comes from a tool that does not say.  All real numbers are
    float32 values.  bits: of q, see BITS.  float32: it is not quantized at all; what
    makes it gives float32, and what reads it takes float32; the rest is what it would
    have been.  method: where it is not the table's.
    factors: of the channels of an equalized tensor, (C,), all above 0: a value of
    channel c is factors[c] times what (1) says, and `threshold` is what it is before;
    () where all are 1.
    offsets: of the channels, (C,), real values that are added to that; `threshold` is
    what it is before; () where all are 0.
    reasons: codes of the guards that fired, see neon8.quant.reasons.
    """

    scale: float
    zero_point: int
    scheme: str
    threshold: tuple[float, float]
    min: float | None
    max: float | None
    bits: int = NARROW
    float32: bool = False
    method: str | None = None
    factors: tuple[float, ...] = field(default=(), repr=False)
    offsets: tuple[float, ...] = field(default=(), repr=False)
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScale:
    """The weight scales of one convolution, one per output channel, float32 values.

    input: the activation that it reads; its scale is tensors[input].
    groups: of the convolution.  reasons: codes of the guards that fired, as above.
    bias_correction: (O,), what is added to the bias because rounded weights move the
    mean of a channel; () for nothing.
    bits: of its weights, NARROW or WIDE.
    rounding: one of ROUNDINGS, for 8 bits.  levels: of weights that were chosen, also
    on the lattice, a bit for each, see neon8.rewrite.rounding.  sqnr_loss: in dB of the
    layer's output, what rounding and the range of the input cost where they were chosen
    for speed.
    """

    input: str
    weight_scales: tuple[float, ...] = field(repr=False)
    groups: int = 1
    bits: int = NARROW
    bias_correction: tuple[float, ...] = field(default=(), repr=False)
    rounding: str = field(default="nearest", repr=False)
    levels: bytes = field(default=b"", repr=False)
    sqnr_loss: float | None = field(default=None, repr=False)
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScaleTable(text.Showing):
    """tensors: by ONNX tensor name; layers: by node name; samples: how many seen.

    reasons: codes of the guards that fired for all.  shapes: of inputs, as most samples
    had them, where --shape said what they may be.
    """

    model_name: str
    model_digest: str
    method: str
    scheme: str
    samples: int
    engine: str
    tensors: dict[str, TensorScale] = field(default_factory=dict)
    layers: dict[str, LayerScale] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def parts(self) -> list[text.Part]:
        """What it is of, and the scales of its tensors."""
        rows = [
            (
                name,
                text.number(each.scale),
                each.zero_point,
                "float32" if each.float32 else each.bits,
                each.scheme,
                text.span(*map(text.number, each.threshold)),
            )
            for name, each in self.tensors.items()
        ]
        pairs: list[tuple[str, object]] = [
            ("model", self.model_name),
            ("method", self.method),
            ("scheme", self.scheme),
            ("samples", self.samples),
            ("tensors", len(rows)),
            ("layers", len(self.layers)),
        ]
        header = ("tensor", "scale", "zero point", "bits", "scheme", "range")
        return [text.Fields(pairs), text.Table("tensors", rows, header)]
