# SPDX-License-Identifier: Apache-2.0
"""A depthwise 1x1 convolution goes into the weights of the convolution before it."""

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import count_uses, rebuild


def fold_affine(graph: Graph) -> Graph:
    """A depthwise 1x1 convolution goes into the weights of the convolution before it.

    This folds BatchNormalization, added biases and multiplications by constants.
    """
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(next(iter(node.inputs), ""))
        if node.weighted and before is not None and uses[before.output] == 1:
            both = before.followed_by(node)
            if both is not None:
                del made[before.output]
                node = both
        made[node.output] = node
    return rebuild(graph, made.values())
