# SPDX-License-Identifier: Apache-2.0
"""What the recipe knows of a network before its scales are chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neon8.calibrate.observation import Observation
from neon8.calibrate.recipe.lattice_step import steps_of
from neon8.graph.graph import Conv2d, Graph
from neon8.quant.scale_table import LayerScale
from neon8.quant.weights import DoubleArray, weight_scales

STEP = "step"
"""Reason code of a layer with the steps of its weights as scales."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """graph: the network.  steps: of layers, see lattice_step.steps_of().

    means: of the channels of what each layer reads, (I,).
    """

    graph: Graph
    steps: Mapping[str, DoubleArray]
    means: Mapping[str, DoubleArray]

    def layer_scale(
        self, node: Conv2d, *, input_scale: float, input_bits: int
    ) -> LayerScale:
        """The scales of the weights of a layer, one for each output channel."""
        flat = np.abs(node.weight.reshape(len(node.weight), -1))
        entry = weight_scales(
            node.name,
            source=node.inputs[0],
            absmax=flat.max(axis=1),
            steps=self.steps[node.name],
            bias=node.bias,
            input_scale=input_scale,
            input_bits=input_bits,
            groups=node.groups,
        )
        if np.isnan(self.steps[node.name]).all():
            return entry
        return replace(entry, reasons=(STEP, *entry.reasons))


def prepare(observation: Observation, graph: Graph) -> Recipe:
    """The recipe for `graph`, of which `observation` is."""
    layers = [node for node in graph.nodes if isinstance(node, Conv2d)]
    return Recipe(
        graph=graph,
        steps={node.name: steps_of(node) for node in layers},
        means={
            name: observation.channels[name].mean()
            for name in dict.fromkeys(node.inputs[0] for node in layers)
        },
    )
