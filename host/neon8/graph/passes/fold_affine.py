# SPDX-License-Identifier: Apache-2.0
"""A depthwise 1x1 convolution goes into the weights of the convolution before it."""

from neon8.ir.graph import Graph
from neon8.ir.rewrite import joined


def fold_affine(graph: Graph) -> Graph:
    """A depthwise 1x1 convolution goes into the weights of the convolution before it.

    This folds BatchNormalization, added biases and multiplications by constants.
    """
    return joined(
        graph, lambda before, node: before.followed_by(node) if node.weighted else None
    )
