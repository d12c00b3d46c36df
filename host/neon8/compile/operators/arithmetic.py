# SPDX-License-Identifier: Apache-2.0
"""Add, and activations that no node took in."""

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower, ratio
from neon8.compile.scales import clamp_of, slope_of
from neon8.graph.graph import Activate, Add, Node, Pool


def lower_add(b: Build, node: Add) -> None:
    """A sum that no convolution took in  (6)."""
    first, second = (b.int8(name) for name in node.inputs)
    out = b.declare(node.output, INT8)
    lo, hi = clamp_of(node.activation, out)
    b.ops.append(
        program.Add(
            name=node.name,
            inputs=(first.name, second.name),
            output=out.name,
            scale=ratio(node.name, first, out),
            residual_scale=ratio(node.name, second, out),
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


def lower_activate(b: Build, node: Activate) -> None:
    """A requantization with the activation in its clamp and slope."""
    source = b.int8(node.inputs[0])
    activate(b, node, source, b.declare(node.output, INT8))


def activate(
    b: Build,
    node: Activate | Pool,
    source: program.Tensor,
    out: program.Tensor,
) -> None:
    """source -> out with the activation of `node` and the scale of `out`."""
    b.requantize(
        node.name,
        source,
        out,
        clamp=clamp_of(node.activation, out),
        slope=float(slope_of(node.name, node.activation)),
    )


LOWER: dict[type[Node], Lower] = {Activate: lower_activate, Add: lower_add}
