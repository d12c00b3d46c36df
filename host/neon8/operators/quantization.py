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
    source = forms.get(b.own_type(node.inputs[0]))
    if source is None:
        inputs = (b.float32(node.inputs[0]).name,)
        out = b.result(node.output)
        b.ops.append(QuantizeOp(name=node.name, inputs=inputs, output=out.name))
        return
    tensor, out = b.tensors[source], b.result(node.output)
    if levels_mean_the_same(tensor, out):
        step = ReshapeOp(name=node.name, inputs=(source,), output=out.name)
        b.ops.append(step)
    else:
        b.requantize(node.name, tensor, out, clamp=(out.lo, out.hi))


FAMILY = Family(lower={FakeQuantize: lower_fake_quantize})
