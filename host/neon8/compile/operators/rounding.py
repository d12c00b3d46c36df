# SPDX-License-Identifier: Apache-2.0
"""FakeQuantize: where a quantized file rounds what no other step rounds so."""

from neon8.compile import program
from neon8.compile.build import Build, Lower, levels_mean_the_same
from neon8.graph.graph import FakeQuantize, Node


def lower_fake_quantize(b: Build, node: FakeQuantize) -> None:
    """(2) from float; from integers, (6) with one operand."""
    forms = b.forms[node.inputs[0]]
    source = forms.get(b.own_type(node.inputs[0]))
    if source is None:
        inputs = (b.float32(node.inputs[0]).name,)
        out = b.result(node.output)
        b.ops.append(program.Quantize(name=node.name, inputs=inputs, output=out.name))
        return
    tensor, out = b.tensors[source], b.result(node.output)
    if levels_mean_the_same(tensor, out):
        step = program.Reshape(name=node.name, inputs=(source,), output=out.name)
        b.ops.append(step)
    else:
        b.requantize(node.name, tensor, out, clamp=(out.lo, out.hi))


LOWER: dict[type[Node], Lower] = {FakeQuantize: lower_fake_quantize}
