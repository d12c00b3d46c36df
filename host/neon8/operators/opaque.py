# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes that neon8 cannot run, as they are, in files that can hold them."""

from dataclasses import dataclass

from neon8.ir.graph import Graph, Node
from neon8.ir.program import Op
from neon8.operators.build import FLOAT, Build
from neon8.operators.family import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque(Node):
    """An ONNX node that neon8 cannot run.

    operator: a foreign domain stands before it, with a dot.  reason: why not, and the
    way round, for people.  inputs: all tensors that it reads and that are no constants,
    those of its branches and loops included.  output: the first of its outputs that are
    read; more: the others.
    """

    reason: str
    more: tuple[str, ...] = ()

    runs = False
    unrounded = True

    @property
    def outputs(self) -> tuple[str, ...]:
        """All tensors that it makes."""
        return (self.output, *self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueOp(Op):
    """An ONNX node as it is, for files that hold such: no .n8 file does.

    more: its outputs but the first.  reads, makes: what the network calls its inputs
    and outputs.
    """

    more: tuple[str, ...]
    reads: tuple[str, ...]
    makes: tuple[str, ...]


def opaque_nodes(graph: Graph) -> tuple[Opaque, ...]:
    """The nodes that keep a network from being compiled, in order of execution."""
    return tuple(node for node in graph.nodes if isinstance(node, Opaque))


def lower_opaque(b: Build, node: Opaque) -> None:
    """Takes and gives float32, and tensors of other types as they are."""
    sources = [b.float32(name) for name in node.inputs]
    first, *more = (b.declare(name, FLOAT) for name in node.outputs)
    b.step(
        OpaqueOp,
        node.name,
        sources,
        first,
        more=tuple(tensor.name for tensor in more),
        reads=node.inputs,
        makes=node.outputs,
    )


FAMILY = Family(
    lower_float={Opaque: lower_opaque},
    qdq={OpaqueOp: lambda n, op: n.original(n, op)},
)
