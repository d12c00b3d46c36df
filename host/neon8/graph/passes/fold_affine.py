# SPDX-License-Identifier: Apache-2.0
"""A depthwise 1x1 convolution goes into the weights of the convolution before it."""

from dataclasses import replace

import numpy as np

from neon8.ir.graph import FloatArray, Graph, Node
from neon8.ir.rewrite import count_uses, rebuild
from neon8.operators.convolution import Conv2d
from neon8.operators.source import Float64Array, float32


def fold_affine(graph: Graph) -> Graph:
    """A depthwise 1x1 convolution goes into the weights of the convolution before it.

    This folds BatchNormalization, added biases and multiplications by constants.
    """
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(next(iter(node.inputs), ""))
        if (
            isinstance(before, Conv2d)
            and isinstance(node, Conv2d)
            and _is_affine(node)
            and before.activation.identity
            and uses[before.output] == 1
        ):
            factor = node.weight[:, 0, 0, 0].astype(np.float64)
            weight = float32(before.weight * factor.reshape(-1, 1, 1, 1))
            bias = float32(before.bias * factor + node.bias)
            # What is too large for float32 stays in two steps, as in the file.
            if np.isfinite(weight).all() and np.isfinite(bias).all():
                del made[before.output]
                node = replace(
                    before,
                    output=node.output,
                    pre_activation=node.output,
                    weight=weight,
                    bias=bias,
                    weight_scales=_scaled(before.weight_scales, factor),
                    exact_bias=None,
                )
        made[node.output] = node
    return rebuild(graph, made.values())


def _scaled(scales: FloatArray | None, factor: Float64Array) -> FloatArray | None:
    """The scales of weights times `factor`, whose integers stay or change their sign.

    Where the factor is 0 all of them become 0, and any scale will do.
    """
    if scales is None:
        return None
    return float32(scales * np.where(factor == 0, 1.0, np.abs(factor)))


def _is_affine(node: Conv2d) -> bool:
    return (
        node.groups == len(node.weight)
        and node.weight.shape[1:] == (1, 1, 1)
        and node.strides == node.spread == (1, 1)
        and node.pads == (0, 0, 0, 0)
    )
