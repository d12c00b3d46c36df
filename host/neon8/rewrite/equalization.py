# SPDX-License-Identifier: Apache-2.0
"""Cross-layer equalization: a network with the factors of a scale table in it  (5c).

Offsets come in with them, see neon8.rewrite.absorption.

A factor f of a channel says that its values are f times those of the int8 network. The
convolution that makes the channel divides weights and bias by f, those that read it
multiply weights by f: the network computes the same function, and its channels share
the range of one scale better. Between the two may stand what treats each channel for
itself and a multiple of it as a multiple: pools, PRelu, sums; and what moves values,
along with which their channels' factors go: Concat, Split, a shuffle of channels. A
function of one value takes factors in its tables and gives others, and so do products
in their multipliers. What a layer normalization makes has them in gamma and beta, but
what it reads has none, as they would change mean and variance.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import DoubleArray, Int64Array
from neon8.errors import CompileError
from neon8.ir.graph import Activation, Graph, Node
from neon8.operators.convolution import Conv2d
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.absorption import with_offsets

CHANNELS = 1
"""The axis of channels."""
EQUALIZED = "equalized"
"""Reason code of a tensor with factors."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """Channel made[i] of the output has values of channel read[i] of `source`."""

    source: str
    read: Int64Array
    made: Int64Array


def equalized(graph: Graph, table: ScaleTable) -> Graph:
    """`graph` with all factors and offsets of `table` in the weights and biases.

    CompileError: those of a tensor are not as many as its channels; or what makes or
    reads the tensor cannot have them, see links() and absorption.
    """
    known = [(n, entry) for n, entry in table.tensors.items() if n in graph.tensors]
    factors = {name: np.array(each.factors) for name, each in known if each.factors}
    offsets = {name: np.array(each.offsets) for name, each in known if each.offsets}
    for what, found in (("offsets", offsets), ("factors", factors)):
        _check(graph, found, what)
    if offsets:
        graph = with_offsets(graph, offsets)
    return with_factors(graph, factors) if factors else graph


def _check(graph: Graph, found: Mapping[str, DoubleArray], what: str) -> None:
    """CompileError: the network, or a tensor in it, cannot have these."""
    if found and graph.quantized:
        text = "a network that was quantized elsewhere cannot be equalized"
        raise CompileError(f"{text}; delete the {what} in the table")
    made = {name for node in graph.nodes for name in node.outputs}
    for name, values in found.items():
        channels = graph.tensors[name].shape[CHANNELS]
        if len(values) != channels:
            text = f"has {len(values)} {what} in the table, for {channels} channels"
            raise CompileError(f"tensor {name!r} {text}")
        if name in graph.outputs or name not in made:
            text = f"is seen from outside, where it cannot have {what}"
            raise CompileError(f"tensor {name!r} {text}; delete them in the table")


def with_factors(graph: Graph, factors: Mapping[str, DoubleArray]) -> Graph:
    """equalized(), with factors that fit the tensors.  CompileError as there."""
    return replace(
        graph, nodes=tuple(_rewritten(graph, n, factors) for n in graph.nodes)
    )


def restored(node: Conv2d, table: ScaleTable) -> Conv2d:
    """A layer of an equalized graph for values that are not divided by factors."""

    def inverse(name: str) -> DoubleArray | None:
        entry = table.tensors.get(name)
        return 1 / np.array(entry.factors) if entry and entry.factors else None

    return node.with_factors(
        [inverse(each) for each in node.inputs], inverse(node.output)
    )


def homogeneous(activation: Activation) -> bool:
    """True if f(a x) = a f(x) for all a > 0, but for an upper bound."""
    return activation.lo in (-np.inf, 0.0)


def absorbs(graph: Graph, node: Node) -> bool:
    """True if what the node reads and what it makes may have any factors.

    Those of the output are at most 1 where the activation has an upper bound.
    """
    return node.absorbs_factors(graph) and homogeneous(node.activation)


def makes(node: Node) -> bool:
    """True if what the node makes may have any factors, and what it reads none.

    They are at most 1 where the activation has an upper bound.
    """
    return node.makes_factors and homogeneous(node.activation)


def links(graph: Graph, node: Node) -> tuple[Link, ...] | None:
    """Whose channels those of the output are, so that they have the same factors.

    None: it cannot have factors, or may read and make any, see absorbs().
    """
    if node.by_channel:
        free = homogeneous(node.activation) and node.activation.hi == np.inf
        channels = {_channels(graph, name) for name in (*node.inputs, node.output)}
        return tuple(_joined(graph, node)) if free and len(channels) == 1 else None
    if node.joins:
        return tuple(_joined(graph, node))
    return _moved(graph, node) if node.moves else None


def _joined(graph: Graph, node: Node) -> Iterator[Link]:
    """One channel after another where channels are joined, else the same of each."""
    first = 0
    for name in node.inputs:
        own = np.arange(_channels(graph, name))
        yield Link(name, own, first + own)
        first += len(own) if node.joins_channels else 0


def _moved(graph: Graph, node: Node) -> tuple[Link, ...] | None:
    """From where each channel of the output has values, found by moving numbers."""
    source, out = (graph.tensors[name] for name in (node.inputs[0], node.output))
    channels = source.shape[CHANNELS]
    numbers = np.arange(channels, dtype=np.int32).reshape(-1, 1, 1)
    found = node.moved(np.broadcast_to(numbers, source.shape)).reshape(out.shape)
    rows = found.swapaxes(0, CHANNELS).reshape(out.shape[CHANNELS], -1)
    put = rows < 0
    if node.fill and put.any():
        return None
    read = rows.max(axis=1)
    made = np.arange(len(rows))
    if (put | (rows == read[:, np.newaxis])).all():
        made, read = made[read >= 0], read[read >= 0]
    else:
        pairs = np.sort((made[:, np.newaxis] * channels + rows)[~put], kind="stable")
        first = np.insert(pairs[1:] != pairs[:-1], 0, values=True)
        made, read = np.divmod(pairs[first], channels)
    return (Link(source.name, read, made),)


def _channels(graph: Graph, name: str) -> int:
    return graph.tensors[name].shape[CHANNELS]


def _rewritten(graph: Graph, node: Node, factors: Mapping[str, DoubleArray]) -> Node:
    """With the factors of what it reads and makes."""
    near = [name for name in (*node.inputs, *node.outputs) if name in factors]
    if not near:
        return node
    made = factors.get(node.output)
    free = node.makes_factors and not any(name in factors for name in node.inputs)
    if node.absorbs_factors(graph) or free:
        if made is not None:
            _check_activation(node, made)
        return node.with_factors([factors.get(name) for name in node.inputs], made)
    known = links(graph, node)
    if known is None:
        text = f"layer {node.name!r} makes or reads it, and cannot have factors"
        raise CompileError(f"tensor {near[0]!r}: {text}; delete them in the table")
    for link in known:
        read = factors.get(link.source, np.ones(_channels(graph, link.source)))
        every = np.ones(_channels(graph, node.output)) if made is None else made
        if (read[link.read] != every[link.made]).any():
            text = f"other factors than tensor {node.output!r}, which has its channels"
            raise CompileError(f"tensor {link.source!r} has {text}; correct the table")
    return node


def _check_activation(node: Node, factors: DoubleArray) -> None:
    """CompileError if the activation keeps the output from having them."""
    if not homogeneous(node.activation):
        text = f"its activation begins at {node.activation.lo:g}"
        raise CompileError(
            f"tensor {node.output!r} cannot have factors: {text}; delete them in the "
            "table"
        )
    if node.activation.hi < np.inf and factors.max() > 1:
        # An upper bound is the same for all channels of the int8 network.
        raise CompileError(
            f"tensor {node.output!r} has a factor above 1, {factors.max():.7g}, which "
            f"would lift its bound of {node.activation.hi:g}; correct the table"
        )
