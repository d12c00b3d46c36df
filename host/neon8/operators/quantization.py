# SPDX-License-Identifier: Apache-2.0
"""FakeQuantize: where a quantized file rounds what no other step rounds so."""

from dataclasses import dataclass, field

from neon8.ir.graph import Node, Quantization
from neon8.operators.build import Build, levels_mean_the_same
from neon8.operators.conversion import QuantizeOp
from neon8.operators.family import Family
from neon8.operators.movement import ReshapeOp


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeQuantize(Node):
    """y = x rounded to the levels of `quantization`: a Q/DQ pair of a quantized file.

    Only quantized files have it, and only where no other node rounds its own output so.
    """

    quantization: Quantization = field()

    by_value = True


def lower_fake_quantize(b: Build, node: FakeQuantize) -> None:
    """(2) from float; from integers, (6) with one operand."""
    forms = b.forms[node.inputs[0]]
    own = forms.get(b.own_type(node.inputs[0]))
    source = b.float32(node.inputs[0]) if own is None else b.tensors[own]
    out = b.result(node.output)
    if own is None:
        b.step(QuantizeOp, node.name, (source,), out)
    elif levels_mean_the_same(source, out):
        b.step(ReshapeOp, node.name, (source,), out)
    else:
        b.requantize(node.name, source, out, clamp=(out.lo, out.hi))


FAMILY = Family(lower={FakeQuantize: lower_fake_quantize})
