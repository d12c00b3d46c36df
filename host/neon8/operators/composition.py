# SPDX-License-Identifier: Apache-2.0
"""Operators that are others put together, which stand in the file in their place.

Nothing else sees the network without them: onnxruntime runs these parts as well, and
what is between them has ranges and scales of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from neon8.arrays import Array
from neon8.ir.names import claimed
from neon8.operators.source import Attribute, OnnxNode, Source, UnsupportedError

MAX_ELEMENTS = 1 << 28
"""A limit of the tensors between the parts: a file could ask for any number."""

Part = str | Array | Sequence[int] | float
"""An input: a tensor by name, or a constant; numbers without a fraction are int64."""


@dataclass(slots=True, kw_only=True)
class Parts:
    """The nodes that together compute `node`, while they grow.

    taken: the names in use.  constants: what the nodes read, by name.  in_float: what
    is between them has no scales, as rounding it would cost too much.  hidden: the
    tensors of which that is so where it is not of all.
    """

    source: Source
    node: OnnxNode
    taken: set[str]
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    in_float: bool = False
    hidden: set[str] = field(default_factory=set)

    def add(
        self,
        operator: str,
        *inputs: Part,
        output: str = "",
        layer: bool = False,
        **attributes: Attribute,
    ) -> str:
        """Appends a node; the name of its output, which is new unless it is given.

        layer: it has the name of the node that it is a part of, if none has it yet.
        """
        made = output or self.result(operator)
        names = [
            each if isinstance(each, str) else self.constant(each) for each in inputs
        ]
        self.append(operator, names, (made,), attributes, layer=layer)
        return made

    def append(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, Attribute],
        *,
        layer: bool = False,
    ) -> None:
        """Appends a node between tensors, "" where one is left out."""
        made = next(filter(None, outputs))
        name = self.node.name
        if not layer or any(each.name == name for each in self.nodes):
            name = f"{name}:{made}"
        self.nodes.append(
            OnnxNode(
                name=name,
                operator=operator,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes=dict(attributes),
            )
        )

    def failure(self, text: str) -> UnsupportedError:
        """As Source.failure(), of the node."""
        return self.source.failure(self.node, text)

    def dims_of(self, tensor: str) -> tuple[int, ...]:
        """As Source.dims_of(), for the node."""
        return self.source.dims_of(self.node, tensor)

    def shape_of(self, tensor: str) -> tuple[int, ...]:
        """As Source.shape_of(), for the node."""
        return self.source.shape_of(self.node, tensor)

    def broadcasts(self, name: str, shape: tuple[int, ...]) -> bool:
        """True if tensor `name` is broadcast to `shape`, not the other way round."""
        value = self.source.constants.get(name)
        found = self.source.shapes.get(name) if value is None else value.shape
        if found is None or len(found) > len(shape):
            return False
        last = shape[len(shape) - len(found) :]
        return all(have in (1, want) for have, want in zip(found, last, strict=True))

    def result(self, operator: str) -> str:
        """A new name for what `operator` gives."""
        return self.fresh(f"{self.node.outputs[0]}_{operator.lower()}")

    def reduce(
        self,
        operator: str,
        value: str,
        axes: Sequence[int],
        *,
        keep: bool,
        output: str = "",
    ) -> str:
        """Appends a reduction of these axes, which were an attribute once."""
        since = 13 if operator == "ReduceSum" else 18
        kept = int(keep)
        if self.source.opset < since:
            axes = tuple(axes)
            return self.add(operator, value, output=output, axes=axes, keepdims=kept)
        return self.add(operator, value, axes, output=output, keepdims=kept)

    def constant(self, value: Array | Sequence[int] | float) -> str:
        """The name of a constant."""
        array = np.asarray(value)
        if array.dtype == np.float64:  # which an empty list is as well
            array = array.astype(np.float32 if array.size else np.int64)
        name = self.fresh(f"{self.node.outputs[0]}_constant")
        self.constants[name] = array
        return name

    def fresh(self, name: str) -> str:
        """`name`, lengthened until nothing has it."""
        return claimed(name, self.taken)


Compose = Callable[[Parts], bool]
"""Adds the nodes that do what one node does, the last of which make its outputs.

False: the node stays as it is.  UnsupportedError: neon8 cannot run it, and why."""
