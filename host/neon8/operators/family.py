# SPDX-License-Identifier: Apache-2.0
"""What a module of operators tells the stages: its rows of their tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neon8.arrays import Array
from neon8.ir.graph import Node
from neon8.ir.program import Op
from neon8.operators.composition import Compose
from neon8.operators.layout import ChangeLayout
from neon8.operators.qdq import Nodes
from neon8.operators.source import Convert

if TYPE_CHECKING:  # which is made of steps that are a family
    from neon8.operators.build import Build

Lower = Callable[["Build", Any], None]
"""Appends the steps of a node of one class."""

Step = Callable[..., Array]
"""Arithmetic of a step, (op, output, Operand of each input) to the values, N C H W."""
Write = Callable[[Nodes, Any], None]
"""Appends the ONNX nodes of a step."""
Opset = Callable[[Any, Node], int]
"""The first opset with the ONNX nodes of a step, which is of this node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The rows of one module.  What is in no table has no such form.

    imports: ONNX operator, a foreign domain before it with a dot, to the function that
    makes nodes of it.  integers: the same of one that gives integers, where that is not
    as of real numbers.  compositions: ONNX operator to the function that puts it
    together from others.  layouts: ONNX operator to what reorders its axes.
    lower, lower_float: class of a node to the function that appends its steps in int8
    or in float32.  steps: class of a step to its arithmetic, the definition.  qdq:
    class of a step to what writes it as ONNX nodes.  opsets: class of a step to what
    says which opset these need, if not every one from 13 on has them.
    """

    imports: Mapping[str, Convert] = field(default_factory=dict)
    integers: Mapping[str, Convert] = field(default_factory=dict)
    compositions: Mapping[str, Compose] = field(default_factory=dict)
    layouts: Mapping[str, ChangeLayout] = field(default_factory=dict)
    lower: Mapping[type[Node], Lower] = field(default_factory=dict)
    lower_float: Mapping[type[Node], Lower] = field(default_factory=dict)
    steps: Mapping[type[Op], Step] = field(default_factory=dict)
    qdq: Mapping[type[Op], Write] = field(default_factory=dict)
    opsets: Mapping[type[Op], Opset] = field(default_factory=dict)
