# SPDX-License-Identifier: Apache-2.0
"""Residual streams: sums of sums, which have 16 bits where 8 would lose too much.

Every sum rounds all that was added up so far once more, so noise grows from block to
block; and a normalization after it enlarges what is small in the whole, such as one
token among others. A stream goes on after a normalization that sums read. Where only
sums and normalizations read such tensors, 16 bits cost little time, as no product has
them, and memory only where the stream is what fills it. What a convolution reads keeps
its 8 bits.
"""

from collections.abc import Collection, Mapping

from neon8.calibrate.recipe.branches import LEAST_NOISE, mean_square, merged
from neon8.calibrate.statistics.histogram import Histogram
from neon8.ir.graph import Graph
from neon8.ir.groups import held
from neon8.quant.scale_table import TensorScale


def streams(
    graph: Graph,
    groups: Mapping[str, str],
    histograms: Mapping[str, Histogram],
    tensors: Mapping[str, TensorScale],
    closed: Collection[str] = (),
) -> frozenset[str]:
    """The scale groups that get 16 bits.

    groups: tensor -> its group.  histograms: of the sources.  tensors: with 8 bits.
    closed: groups for which the user has set something.
    """
    shut = {"", *closed, *(groups.get(name, "") for name in graph.inputs)}
    inside: set[str] = set()
    for node in graph.nodes:
        read = {groups[name] for name in node.inputs if name in groups}
        if node.adds or node.makes_factors:
            inside |= read if not node.sign else {groups.get(node.output, "")}
        elif not node.shares_scale:
            shut |= read
    found = inside - shut
    chains: dict[str, set[str]] = {}
    for node in graph.nodes:
        if node.adds or node.makes_factors:
            ends = (*node.inputs, node.output)
            near = {groups[name] for name in ends if name in groups}
            joined = near.union(*(chains.get(group, ()) for group in near))
            chains |= dict.fromkeys(joined, joined)
    sources, noise = held(graph), dict.fromkeys(found, 0.0)
    members: dict[str, set[str]] = {}
    for name, group in groups.items():
        if group in found:
            members.setdefault(group, set()).update(sources[name])
    for group, names in members.items():
        power = mean_square(merged(histograms, names)) if names else 0.0
        if power:
            noise[group] = tensors[group].scale ** 2 / 12 / power
    return frozenset(
        group
        for group in found
        if sum(noise[each] for each in sorted(chains[group] & found)) > LEAST_NOISE
    )
