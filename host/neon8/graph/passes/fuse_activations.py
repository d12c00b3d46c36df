# SPDX-License-Identifier: Apache-2.0
"""Each activation goes into the node before it.

A tensor is quantized only after the activation that follows it, so an activation
belongs to the node that makes its input unless something else reads that, too.
"""

from dataclasses import replace

from neon8.ir.graph import Activation, Graph, Node
from neon8.ir.rewrite import count_uses, rebuild
from neon8.operators.activation import Activate
from neon8.operators.arithmetic import Binary, Sum, WithConstant
from neon8.operators.convolution import Conv2d
from neon8.operators.normalization import InstanceNorm
from neon8.operators.pooling import Pool

TAKES = Activate | Binary | Conv2d | InstanceNorm | Pool | Sum | WithConstant
"""The nodes that have an activation."""


EXTREMES = ("minimum", "maximum")
"""Functions that give a value of one operand, without a sum or product to round."""


def fuse_activations(graph: Graph) -> Graph:
    """Each Activate goes into the node before it if that can take it."""
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(next(iter(node.inputs), ""))
        if (
            isinstance(node, Activate)
            and isinstance(before, TAKES)
            and uses[before.output] == 1
        ):
            both = _compose(before.activation, node.activation)
            leaky_pool = isinstance(before, Pool) and node.activation.slope != 1
            compares = isinstance(before, WithConstant) and before.function in EXTREMES
            if both is not None and not leaky_pool and not compares:
                del made[before.output]
                node = replace(before, output=node.output, activation=both)
        made[node.output] = node
    return rebuild(graph, made.values())


def _compose(first: Activation, then: Activation) -> Activation | None:
    """One activation that does both, None if there is none."""
    if first.identity:
        return then
    if then.slope != 1:
        return None
    return Activation(
        lo=min(max(first.lo, then.lo), then.hi),
        hi=min(max(first.hi, then.lo), then.hi),
        slope=first.slope,
    )
