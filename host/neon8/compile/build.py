# SPDX-License-Identifier: Apache-2.0
"""The Program while it grows: which form of a tensor exists, and how to get another."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neon8.compile.int16_fit import Fit
from neon8.compile.program import Dequantize, Op, Quantize, Requantize, Tensor
from neon8.compile.scales import quantized
from neon8.errors import CompileError
from neon8.graph.graph import Graph, Node
from neon8.quant.scale_table import ScaleTable
from neon8.quant.weights import multiplier_ok

INT8 = "int8"
FLOAT = "float32"


@dataclass(slots=True, kw_only=True)
class Build:
    """Grows in order of execution.

    io: the type of the graph's inputs and outputs. forms: (graph tensor, type) to the
    program's tensor. consumers: graph tensor to the nodes that read it, once per read.
    inside: graph tensors that exist in the middle of a step only.
    islands: the nodes that run in float32, by output, see domains.py.
    fixed: convolutions requantize in integers  (10).
    max_sqnr_loss: weight scales may grow at this cost, see int16_fit.py, or None.
    fits: what that would take or took, of each layer that needs it.
    last: inputs and outputs that the outside has N H W C, and images: inputs that it
    has as bytes; so no form of them here has their names.
    """

    graph: Graph
    table: ScaleTable
    io: str
    consumers: dict[str, list[Node]]
    islands: dict[str, str]
    fixed: bool = False
    max_sqnr_loss: float | None = None
    fits: list[Fit] = field(default_factory=list)
    last: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    forms: dict[tuple[str, str], str] = field(default_factory=dict)
    inside: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """True if graph tensor `name` has been computed."""
        return (name, INT8) in self.forms or (name, FLOAT) in self.forms

    def declare(self, name: str, dtype: str) -> Tensor:
        """Adds graph tensor `name` in one of its forms.

        Of an input or output, the form that the outside sees keeps the ONNX name; of
        any other tensor the form that comes first does.
        """
        outside = name in self.graph.inputs or name in self.graph.outputs
        taken = name in self.tensors or (outside and dtype != self.io)
        taken = taken or name in self.last or name in self.images
        unique = self.fresh(f"{name}_{dtype}") if taken else name
        if dtype == INT8:
            tensor = replace(quantized(self.graph, self.table, name), name=unique)
        else:
            source = self.graph.tensors[name]
            dtype = FLOAT if source.real else source.dtype
            tensor = Tensor(name=unique, dims=source.dims, dtype=dtype)
        self.forms[name, INT8 if dtype == INT8 else FLOAT] = unique
        return self.add(tensor)

    def temporary(self, tensor: Tensor, label: str) -> Tensor:
        """Adds a tensor that the graph does not know, named after `tensor`."""
        return self.add(replace(tensor, name=self.fresh(f"{tensor.name}_{label}")))

    def int8(self, name: str) -> Tensor:
        """The int8 form of graph tensor `name`, quantized here if it is float."""
        if (name, INT8) not in self.forms:
            source = self.forms[name, FLOAT]
            out = self.declare(name, INT8)
            self.ops.append(Quantize(name=name, inputs=(source,), output=out.name))
        return self.tensors[self.forms[name, INT8]]

    def float32(self, name: str) -> Tensor:
        """The float form of graph tensor `name`, dequantized here if it is int8."""
        if (name, FLOAT) not in self.forms:
            source = self.forms[name, INT8]
            out = self.declare(name, FLOAT)
            self.ops.append(Dequantize(name=name, inputs=(source,), output=out.name))
        return self.tensors[self.forms[name, FLOAT]]

    def type_of(self, node: Node) -> str:
        """In which type the node reads and writes: INT8 or FLOAT."""
        return FLOAT if node.output in self.islands else INT8

    def take(self, name: str, dtype: str) -> Tensor:
        """Graph tensor `name` in one of its forms, made here if it is in the other."""
        return self.float32(name) if dtype == FLOAT else self.int8(name)

    def wants_float(self, name: str) -> bool:
        """True if nothing reads graph tensor `name` as int8, see domains.py."""
        if self.graph.quantized:
            return name not in self.table.tensors
        readers = self.consumers[name]
        floats = all(self.type_of(reader) == FLOAT for reader in readers)
        if name in self.graph.outputs:
            return floats and self.io == FLOAT
        return floats and len(readers) > 0

    def rescaled(self, layer: str, source: Tensor, like: Tensor) -> Tensor:
        """`source`, or a copy with the scale of `like` where bytes cannot be moved."""
        if bytes_mean_the_same(source, like):
            return source
        out = replace(source, scale=like.scale, zero_point=like.zero_point)
        out = self.temporary(replace(out, lo=like.lo, hi=like.hi), "rescaled")
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
        self.ops.append(
            Requantize(
                name=layer,
                inputs=(source.name,),
                output=out.name,
                scale=ratio(layer, source, out),
                slope=np.float32(slope),
                lo=clamp[0],
                hi=clamp[1],
            )
        )

    def add(self, tensor: Tensor) -> Tensor:
        """Puts a tensor into the program."""
        self.tensors[tensor.name] = tensor
        return tensor

    def fresh(self, name: str) -> str:
        """`name`, lengthened until neither graph nor program has it."""
        while name in self.tensors or name in self.graph.tensors:
            name += "_"
        return name


Lower = Callable[[Build, Any], None]
"""Appends the ops of a node of one class."""


def bytes_mean_the_same(source: Tensor, out: Tensor) -> bool:
    """True if bytes of `source` are right in `out` and inside its range."""
    same = source.scale == out.scale and source.zero_point == out.zero_point
    return same and source.lo >= out.lo and source.hi <= out.hi


def ratio(layer: str, source: Tensor, out: Tensor, *, count: int = 1) -> np.float32:
    """float32(scale_source / (scale_out * count)), or CompileError if out of range."""
    with np.errstate(over="ignore", under="ignore"):
        exact = np.float64(source.scale) / (np.float64(out.scale) * count)
        value: np.float32 = np.float32(exact)
    if value == 0 or not multiplier_ok(value):
        raise CompileError(
            f"layer {layer!r}: scale {source.scale:.4g} of tensor {source.name!r} is "
            f"too far from scale {out.scale:.4g} of {out.name!r}; correct the table"
        )
    return value
