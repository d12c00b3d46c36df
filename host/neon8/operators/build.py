# SPDX-License-Identifier: Apache-2.0
"""The Program while it grows: which form of a tensor exists, and how to get another."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neon8.errors import CompileError
from neon8.ir.graph import Graph, Node
from neon8.ir.program import Op, Tensor
from neon8.operators.conversion import DequantizeOp, QuantizeOp, RequantizeOp
from neon8.operators.scales import is_int16, quantized
from neon8.quant.int16_fit import Fit
from neon8.quant.proof import Enlarged
from neon8.quant.scale_table import ScaleTable
from neon8.quant.weights import multiplier_ok

INT8 = "int8"
INT16 = "int16"
FLOAT = "float32"
INT32 = "int32"
"""The one form of tensors that are not real  (27)."""


@dataclass(slots=True, kw_only=True)
class Build:
    """Grows in order of execution.

    io: FLOAT, or INT8 for inputs and outputs as the table has them. forms: of each
    graph tensor the program's tensors by type, first the one that others are made of.
    consumers: graph tensor to the nodes that read it, once per read.
    inside: graph tensors that exist in the middle of a step only.
    islands: the nodes that run in float32, by output, see domains.py.
    max_sqnr_loss: weight scales may grow at this cost, see int16_fit.py, or None.
    fits: what that would take or took, of each layer that needs it.
    enlarged: the channels whose weight scales grew so that int32 holds their sums.
    original: tensors that are not real keep the type of the file, for its own nodes.
    last: inputs and outputs that the outside has N H W C, and images: inputs that it
    has as bytes; so no form of them here has their names.
    """

    graph: Graph
    table: ScaleTable
    io: str
    consumers: dict[str, list[Node]]
    islands: dict[str, str]
    max_sqnr_loss: float | None = None
    fits: list[Fit] = field(default_factory=list)
    enlarged: list[Enlarged] = field(default_factory=list)
    original: bool = False
    last: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    forms: dict[str, dict[str, str]] = field(default_factory=dict)
    inside: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """True if graph tensor `name` has been computed."""
        return bool(self.forms.get(name))

    def own_type(self, name: str) -> str:
        """INT16 if the table gives graph tensor `name` more than 8 bits, else INT8.

        INT32 if it is not real.
        """
        if not self.graph.tensors[name].real:
            return INT32
        return INT16 if is_int16(self.table, name) else INT8

    def outside_type(self, name: str) -> str:
        """The form in which the outside sees input or output `name`."""
        quantizes = self.io == INT8 or not self.graph.tensors[name].real
        return self.own_type(name) if quantizes else FLOAT

    def declare(self, name: str, dtype: str) -> Tensor:
        """Adds graph tensor `name` in one of its forms: INT8, INT16 or FLOAT.

        One that is not real is INT32, whichever is asked for.

        Of an input or output, the form that the outside sees keeps the ONNX name; of
        any other tensor the form that comes first does. INT8 of a tensor with more bits
        is a grid of 8 bits over the same range.
        """
        source = self.graph.tensors[name]
        dtype = dtype if source.real else INT32
        outside = name in self.graph.inputs or name in self.graph.outputs
        taken = name in self.tensors
        taken = taken or (outside and dtype != self.outside_type(name))
        taken = taken or name in self.last or name in self.images
        unique = self.fresh(f"{name}_{dtype}") if taken else name
        if dtype in (FLOAT, INT32):
            keeps = self.original and not source.real
            kind = source.dtype if keeps else dtype
            tensor = Tensor(name=unique, dims=source.dims, dtype=kind)
        else:
            narrow = dtype == INT8
            tensor = quantized(self.graph, self.table, name, narrow=narrow)
            tensor = replace(tensor, name=unique)
        self.forms.setdefault(name, {})[dtype] = unique
        return self.add(tensor)

    def result(self, name: str) -> Tensor:
        """Adds graph tensor `name` as the table has it, INT8 or INT16."""
        return self.declare(name, self.own_type(name))

    def made_by(self, node: Node) -> Tensor:
        """Adds the output of `node`, in the type in which that runs."""
        runs = self.type_of(node)
        return self.declare(
            node.output, FLOAT if runs == FLOAT else self.own_type(node.output)
        )

    def temporary(self, tensor: Tensor, label: str) -> Tensor:
        """Adds a tensor that the graph does not know, named after `tensor`."""
        return self.add(replace(tensor, name=self.fresh(f"{tensor.name}_{label}")))

    def int8(self, name: str) -> Tensor:
        """The int8 form of graph tensor `name`, made here if there is another."""
        return self.take(name, INT8)

    def own(self, name: str) -> Tensor:
        """Graph tensor `name` as the table has it, int8 or int16."""
        return self.take(name, self.own_type(name))

    def float32(self, name: str) -> Tensor:
        """The float form of graph tensor `name`, dequantized here if need be."""
        return self.take(name, FLOAT)

    def type_of(self, node: Node) -> str:
        """FLOAT if the node is in a float island, else INT8, of whatever width."""
        return FLOAT if node.output in self.islands else INT8

    def take(self, name: str, dtype: str) -> Tensor:
        """Graph tensor `name` in one of its forms, made here of its first one."""
        forms = self.forms[name]
        dtype = dtype if self.graph.tensors[name].real else INT32
        if dtype not in forms:
            first, source = next(iter(forms.items()))
            out, made = self.declare(name, dtype), self.tensors[source]
            if first == FLOAT:
                self.step(QuantizeOp, name, (made,), out)
            elif dtype == FLOAT:
                self.step(DequantizeOp, name, (made,), out)
            else:
                self.requantize(name, made, out, clamp=(out.lo, out.hi))
        return self.tensors[forms[dtype]]

    def wants_float(self, name: str) -> bool:
        """True if nothing reads graph tensor `name` as integers, see domains.py."""
        if self.graph.quantized:
            return name not in self.table.tensors
        readers = self.consumers[name]
        floats = all(self.type_of(reader) == FLOAT for reader in readers)
        if name in self.graph.outputs:
            return floats and self.io == FLOAT
        return floats and len(readers) > 0

    def rescaled(self, layer: str, source: Tensor, like: Tensor) -> Tensor:
        """`source`, or a copy on the grid of `like` where values cannot be moved."""
        if levels_mean_the_same(source, like):
            return source
        out = replace(like, name=source.name, dims=source.dims)
        out = self.temporary(out, "rescaled")
        self.requantize(layer, source, out, clamp=(out.lo, out.hi))
        return out

    def requantize(
        self,
        layer: str,
        source: Tensor,
        out: Tensor,
        *,
        clamp: tuple[int, int],
        slope: float = 1.0,
    ) -> None:
        """Appends source -> out with another scale, a clamp and a leaky slope."""
        self.step(
            RequantizeOp,
            layer,
            (source,),
            out,
            scale=ratio(layer, source, out),
            slope=np.float32(slope),
            lo=clamp[0],
            hi=clamp[1],
        )

    def step(
        self,
        kind: type[Op],
        layer: str,
        sources: Sequence[Tensor],
        out: Tensor,
        /,
        **fields: Any,
    ) -> None:
        """Appends a step of `layer` from `sources` to `out`, with these fields."""
        inputs = tuple(source.name for source in sources)
        self.ops.append(kind(name=layer, inputs=inputs, output=out.name, **fields))

    def add(self, tensor: Tensor) -> Tensor:
        """Puts a tensor into the program."""
        self.tensors[tensor.name] = tensor
        return tensor

    def fresh(self, name: str) -> str:
        """`name`, lengthened until neither graph nor program has it."""
        while name in self.tensors or name in self.graph.tensors:
            name += "_"
        return name


def levels_mean_the_same(source: Tensor, out: Tensor) -> bool:
    """True if levels of `source` are right in `out` and inside its range."""
    same = source.scale == out.scale and source.zero_point == out.zero_point
    same = same and source.dtype == out.dtype
    return same and source.lo >= out.lo and source.hi <= out.hi


def ratio(layer: str, source: Tensor, out: Tensor, *, count: int = 1) -> np.float32:
    """float32(scale_source / (scale_out * count)), or CompileError if out of range."""
    exact = np.float64(source.scale) / (np.float64(out.scale) * count)
    text = f"scale {source.scale:.4g} of tensor {source.name!r} is too far from scale"
    return in_range(layer, exact, f"{text} {out.scale:.4g} of {out.name!r}")


def in_range(layer: str, exact: np.float64, trouble: str) -> np.float32:
    """A multiplier as float32, or CompileError if it is none for every back end."""
    with np.errstate(over="ignore", under="ignore"):
        value: np.float32 = np.float32(exact)
    if value == 0 or not multiplier_ok(value):
        raise CompileError(f"layer {layer!r}: {trouble}; correct the table")
    return value
