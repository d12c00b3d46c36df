# SPDX-License-Identifier: Apache-2.0
"""An ONNX file as plain values: what is left of it once onnx has read and checked it.

The families turn a Source into the nodes of a Graph; no later stage sees ONNX.
"""

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from neon8.arrays import AnyArray, Array, DoubleArray, FloatArray
from neon8.errors import GraphError
from neon8.ir.graph import FLOATS, INTEGERS, MAX_RANK, Node, Tensor

MAX_MADE = 1 << 26
"""Values of a constant that the import makes: 8192 queries by as many keys."""

N = TypeVar("N", bound=Node)
Attribute = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | None
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """One operator.  name: unique and never empty; inputs: "" where one is left out.

    captures: names that its branches and loops read, some of them their own.  fault:
    what ONNX itself finds wrong with it, "" if nothing.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Attribute]
    captures: tuple[str, ...] = ()
    fault: str = ""

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else default

    def real(self, name: str, default: float) -> float:
        """A float attribute."""
        value = self.attributes.get(name)
        return value if isinstance(value, float) else default

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, None if the attribute is not there."""
        value = self.attributes.get(name)
        if not isinstance(value, tuple):
            return None
        return tuple(item for item in value if isinstance(item, int))

    def made(self, kind: type[N], /, *, data: int = 0, **fields: Any) -> N:
        """The node of the Graph that stands for it, which reads input number `data`."""
        inputs, output = (self.inputs[data],), self.outputs[0]
        return kind(name=self.name, inputs=inputs, output=output, **fields)


class UnsupportedError(GraphError):
    """What keeps neon8 from running a node, which then becomes Opaque.

    reason: without the names of file, node and operator.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A checked ONNX network whose inputs have fixed shapes.

    digest: see OnnxFile.
    shapes: of each tensor, as ONNX has it (rank 0 and more); one that depends on values
    known only at run time is missing.  types: of each tensor, as numpy calls it; one
    that nothing tells is missing.  rearranged: the tensors that the file does not have.
    hidden: those of which the Graph says so.
    """

    path: str
    name: str
    digest: Future[str]
    opset: int
    nodes: tuple[OnnxNode, ...]
    constants: dict[str, Array]
    shapes: dict[str, tuple[int, ...]]
    types: dict[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rearranged: Mapping[str, Tensor] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def failure(self, node: OnnxNode, text: str) -> UnsupportedError:
        """The error that names file, node and operator."""
        where = f"{self.path}: node {node.name!r} (operator {node.operator})"
        return UnsupportedError(where, text)

    def check_made(self, node: OnnxNode, *dims: int) -> None:
        """UnsupportedError: a constant that `node` needs has too many values.

        Before it is made: a small file could ask for any.
        """
        if math.prod(dims) > MAX_MADE:
            text = f"needs a constant of shape {list(dims)}; neon8 makes up to"
            text += f" {MAX_MADE} values: export it for smaller tensors"
            raise self.failure(node, text)

    def shape_of(self, node: OnnxNode, tensor: str) -> tuple[int, ...]:
        """The shape of a float tensor that is not empty, of rank 0 to MAX_RANK."""
        kind = self.types.get(tensor)
        if kind in INTEGERS and tensor not in self.constants:
            raise self.failure(node, f"tensor {tensor!r} is {kind}, not float32")
        return self.dims_of(node, tensor)

    def dims_of(self, node: OnnxNode, tensor: str) -> tuple[int, ...]:
        """As shape_of(), of a tensor of real numbers or of integers."""
        kind = self.types.get(tensor)
        if kind == "str":
            text = f"tensor {tensor!r} is of strings; cut the network before it, and"
            raise self.failure(node, f"{text} look names up outside")
        if tensor in self.constants:
            raise self.failure(node, f"tensor {tensor!r} must not be a constant")
        if kind not in (None, *FLOATS, *INTEGERS):
            raise self.failure(node, f"tensor {tensor!r} is {kind}, not float32")
        shape = self.shapes.get(tensor)
        if shape is None or kind is None:
            text = f"the shape of tensor {tensor!r} is known only at run time; export"
            text += " with fixed shapes, and give those of what operators of other"
            raise self.failure(node, f"{text} domains and branches make by --shape")
        if len(shape) > MAX_RANK:
            text = f"tensor {tensor!r} has {len(shape)} dimensions; neon8 takes up to"
            raise self.failure(node, f"{text} {MAX_RANK}")
        if min(shape, default=1) < 1:
            raise self.failure(node, f"tensor {tensor!r} is empty: {list(shape)}")
        return shape

    def constant(self, node: OnnxNode, index: int) -> Array | None:
        """Input `index` if it is there; GraphError unless it is a constant."""
        if index >= len(node.inputs) or not node.inputs[index]:
            return None
        name = node.inputs[index]
        value = self.constants.get(name)
        if value is None:
            text = f"input {name!r} is computed at run time; it must be a constant"
            raise self.failure(node, text)
        return value

    def weights(self, node: OnnxNode, index: int) -> FloatArray | None:
        """Input `index`, finite, or None if it is left out.

        Arithmetic on them is done in float64, so that they are rounded once.
        """
        value = self.constant(node, index)
        if value is None:
            return None
        name = node.inputs[index]
        if value.dtype.name not in FLOATS:
            text = f"weights {name!r} are {value.dtype}; neon8 reads float networks"
            raise self.failure(node, text)
        if value.size == 0:
            raise self.failure(node, f"weights {name!r} are empty")
        if not np.isfinite(value).all():
            raise self.failure(node, f"weights {name!r} contain NaN or infinity")
        single = float32(value)
        if single is not value and not np.isfinite(single).all():
            raise self.failure(node, f"weights {name!r} are too large for float32")
        return single

    def fitting(self, node: OnnxNode, name: str) -> AnyArray:
        """Constant `name` as float32 or int32.  GraphError: it does not fit."""
        value = self.constants[name]
        kind = value.dtype.name
        if kind in FLOATS:
            return float32(value)
        if kind not in INTEGERS:
            raise self.failure(node, f"constant {name!r} is {kind}; expected numbers")
        limits = np.iinfo(np.int32)
        value = value.astype(np.int64) if value.dtype.kind == "V" else value
        for number in (value.min(), value.max()) if value.size else ():
            if not limits.min <= int(number) <= limits.max:
                text = f"constant {name!r} has {int(number)}, which is outside int32,"
                text += " in which neon8 computes integers; export this part in float,"
                raise self.failure(node, f"{text} or with numbers that fit")
        return np.asarray(value, dtype=np.int32, order="C")

    def operands(self, node: OnnxNode) -> tuple[tuple[str, ...], dict[int, AnyArray]]:
        """The inputs that are tensors, and those that are constants by their places."""
        tensors = tuple(name for name in node.inputs if name not in self.constants)
        for name in tensors:
            self.dims_of(node, name)
        places = (at for at, name in enumerate(node.inputs) if name in self.constants)
        return tensors, {at: self.fitting(node, node.inputs[at]) for at in places}

    def required(self, node: OnnxNode, index: int) -> FloatArray:
        """As weights(); GraphError if it is left out."""
        value = self.weights(node, index)
        if value is None:
            raise self.failure(node, f"input {index} is missing")
        return value

    def fits_channels(self, node: OnnxNode, index: int) -> bool:
        """True if constant input `index`, 0 or 1, has one value, or one per channel.

        The channels are those of the other input, whose shape the result has.
        """
        shape = self.shape_of(node, node.inputs[1 - index])
        value = self.required(node, index)
        channels = shape[1] if len(shape) > 1 else 1
        full = (1,) * (len(shape) - value.ndim) + value.shape
        wanted = tuple(channels if axis == 1 else 1 for axis in range(len(shape)))
        return len(full) == len(shape) and all(
            have in (1, want) for have, want in zip(full, wanted, strict=True)
        )

    def per_channel(self, node: OnnxNode, index: int) -> DoubleArray:
        """Constant input `index`, 0 or 1, as one value per channel of the other."""
        shape = self.shape_of(node, node.inputs[1 - index])
        value = self.required(node, index)
        if not self.fits_channels(node, index):
            text = f"constant {node.inputs[index]!r} of shape {list(value.shape)} is"
            text += f" not one value, or one per channel of {list(shape)}"
            raise self.failure(node, text)
        channels = shape[1] if len(shape) > 1 else 1
        return np.full(channels, value.reshape(-1), dtype=np.float64)


Convert = Callable[[Source, OnnxNode], Node | tuple[Node | Tensor, ...]]
"""The import of one operator, as a node or as several in order of execution, which make
the outputs that are read between them, and before them the tensors that the file does
not have; GraphError for what neon8 cannot run."""


def float32(value: Array) -> FloatArray:
    """Rounded once; what is too large becomes infinite, and the importer sees to it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(value, dtype=np.float32, order="C")
