# SPDX-License-Identifier: Apache-2.0
"""Operators that compute nothing: Reshape and its likes, Dropout, Concat."""

from neon8.graph.graph import Concat, Node, Reshape
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    constant,
    failure,
    integer,
    shape_of,
)


def reshape(source: Source, node: OnnxNode) -> Node:
    """Flatten, Reshape, Squeeze, Unsqueeze, Identity, Dropout: the same values."""
    for name in (node.inputs[0], node.outputs[0]):
        shape_of(source, node, name)
    return Reshape(name=node.name, inputs=node.inputs[:1], output=node.outputs[0])


def dropout(source: Source, node: OnnxNode) -> Node:
    """Dropout, which does nothing at inference."""
    training = constant(source, node, 2)
    if training is not None and training.any():
        raise failure(source, node, "training_mode is set; export for inference")
    return reshape(source, node)


def concat(source: Source, node: OnnxNode) -> Node:
    """Concat along C, H or W."""
    rank = len(shape_of(source, node, node.outputs[0]))
    for name in node.inputs:
        shape_of(source, node, name)
    axis = integer(node, "axis", 1)
    axis += rank if axis < 0 else 0
    if axis == 0:
        raise failure(source, node, "cannot join along the batch")
    if len(node.inputs) == 1:
        return reshape(source, node)
    return Concat(name=node.name, inputs=node.inputs, output=node.outputs[0], axis=axis)


OPERATORS: dict[str, Convert] = {
    "Concat": concat,
    "Dropout": dropout,
    "Flatten": reshape,
    "Identity": reshape,
    "Reshape": reshape,
    "Squeeze": reshape,
    "Unsqueeze": reshape,
}
