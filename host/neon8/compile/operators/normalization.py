# SPDX-License-Identifier: Apache-2.0
"""LRN and instance normalization, which look at their input before they scale it."""

import numpy as np

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower
from neon8.compile.scales import clamp_of, slope_of
from neon8.graph.graph import InstanceNorm, Lrn, Node


def lower_lrn(b: Build, node: Lrn) -> None:
    """(18)."""
    inputs = (b.int8(node.inputs[0]).name,)
    out = b.declare(node.output, INT8)
    values = np.array([node.size, node.alpha, node.beta, node.bias], np.float32)
    b.ops.append(
        program.Lrn(name=node.name, inputs=inputs, output=out.name, values=values)
    )


def lower_instance_norm(b: Build, node: InstanceNorm) -> None:
    """(19)."""
    inputs = (b.int8(node.inputs[0]).name,)
    out = b.declare(node.output, INT8)
    lo, hi = clamp_of(node.activation, out)
    values = np.concatenate((node.gamma, node.beta, [node.epsilon]))
    b.ops.append(
        program.InstanceNorm(
            name=node.name,
            inputs=inputs,
            output=out.name,
            values=values.astype(np.float32),
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


LOWER: dict[type[Node], Lower] = {InstanceNorm: lower_instance_norm, Lrn: lower_lrn}
