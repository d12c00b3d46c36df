# SPDX-License-Identifier: Apache-2.0
"""Passes over the Graph, one module each; none changes what the network computes."""

from collections.abc import Callable

from neon8.graph.passes.compose_pointwise import compose_pointwise
from neon8.graph.passes.drop_reshapes import drop_reshapes
from neon8.graph.passes.fold_affine import fold_affine
from neon8.graph.passes.fold_flatten import fold_flatten
from neon8.graph.passes.fold_views import fold_views
from neon8.graph.passes.fuse_activations import fuse_activations
from neon8.graph.passes.hide_masks import hide_masks
from neon8.graph.passes.lay_rows import lay_rows
from neon8.graph.passes.merge_moves import merge_moves
from neon8.graph.passes.stay_rearranged import stay_rearranged
from neon8.graph.passes.take_parts import take_parts
from neon8.ir.graph import Graph

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    stay_rearranged,
    merge_moves,
    take_parts,
    lay_rows,
    drop_reshapes,
    fold_views,
    fold_flatten,
    compose_pointwise,
    fold_affine,
    fuse_activations,
    hide_masks,
)
"""In the order in which import applies them."""
