# SPDX-License-Identifier: Apache-2.0
"""Tensors of which few samples have not shown how large each channel can be.

A factor takes it that a channel that was small stays small. That holds for channels
that differ by their weights, but not for such as the bins of a spectrum: which of them
are large is another matter in each sample, and a factor would clip those that are next.
Where a SHARE of the channels is RISE times as large in one sample as in another, the
others may be yet, until there are ENOUGH samples.
"""

import numpy as np

from neon8.calibrate.observation import Observation
from neon8.calibrate.statistics.channels import ChannelStatistics
from neon8.ir.graph import Graph

ENOUGH = 16
RISE = 8
SHARE = 0.1


def unsteady(graph: Graph, observation: Observation) -> frozenset[str]:
    """The outputs of such layers, and what is made of them up to the next layer."""
    found: set[str] = set()
    if len(observation.samples) >= ENOUGH:
        return frozenset()
    for node in graph.nodes:
        own = node.pre_activation if node.weighted else node.output
        if node.weighted or node.makes_factors:
            known = observation.channels.get(own)
            rises = known is not None and _rises(known)
        else:
            rises = not found.isdisjoint(node.inputs)
        if rises:
            found.update(node.outputs)
    return frozenset(found)


def _rises(channels: ChannelStatistics) -> bool:
    largest = np.maximum(-channels.minimum, channels.maximum)
    rising = np.count_nonzero(largest > RISE * channels.quietest)
    return bool(rising >= max(1, SHARE * len(largest)))
