# SPDX-License-Identifier: Apache-2.0
"""What is masked before a Softmax has no scale.

Attention masks put -1e4, -1e9 or the lowest float in place of scores, or add them: a
scale for these would leave none for the scores. So nobody observes such tensors, and
who makes or reads them does so in float32, unless neon8.rewrite.masks has a range.
"""

from dataclasses import replace

from neon8.ir.graph import Graph

HIGHEST = -5000.0
"""Lower constants stand for -infinity: e to half of that is 0 in float32."""


def hide_masks(graph: Graph) -> Graph:
    """Hide what such constants make, moved, multiplied or added to something else."""
    if graph.quantized:
        return graph
    hidden: set[str] = set()
    for node in graph.nodes:
        taken_on = node.keeps_values or node.sign or node.multiple is not None
        if node.lowest <= HIGHEST or (taken_on and hidden.intersection(node.inputs)):
            hidden.update(node.outputs)
    hidden.difference_update(graph.outputs)
    tensors = {
        name: replace(tensor, hidden=True) if name in hidden and tensor.real else tensor
        for name, tensor in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)
