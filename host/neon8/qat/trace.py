# SPDX-License-Identifier: Apache-2.0
"""From a PyTorch model to the layers that are trained, by torch.fx.

MODULES and FUNCTIONS say what each module, function and method of torch becomes.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch.nn import functional

from neon8.errors import GraphError
from neon8.qat.layers import Activate, Layer, Plain, Pool, Weighted

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
PLANES = ((2, 3), (-2, -1), (3, 2), (-1, -2))
"""The dimensions whose mean is that of a plane."""


@dataclass(frozen=True, slots=True)
class Step:
    """name: of its output.  layer: what gives it.  inputs: names of what that reads.

    A normalization stands for itself until it is folded; all else is a Layer.
    """

    name: str
    layer: Any
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """steps: in order of execution.  inputs, outputs: names.  single: no tuple."""

    steps: tuple[Step, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    single: bool


class _Unknown(Exception):  # noqa: N818 - never leaves this module
    """What is not supported of a call; the caller knows which call."""


class _Call:
    """The arguments of a function after its first."""

    def __init__(self, arguments: Sequence[Any], options: dict[str, Any]) -> None:
        self._arguments, self._options = arguments, options

    def get(self, place: int, name: str, default: Any = None) -> Any:
        """One of them, by its place among these or by its name."""
        if place < len(self._arguments):
            return self._arguments[place]
        return self._options.get(name, default)


def trace(model: nn.Module) -> Traced:
    """The layers of the model, which share its parameters.

    GraphError, one line that names everything that is not supported.
    """
    try:
        traced = fx.symbolic_trace(model)
    except Exception as error:  # whatever the model's code raises on a proxy
        text = " ".join(str(error).split())[:300]
        raise GraphError(
            f"torch.fx cannot trace the model: {text}; its forward() may not depend on "
            "values"
        ) from error
    modules = dict(traced.named_modules())
    steps: list[Step] = []
    inputs: list[str] = []
    result: Any = None
    faults = []
    sizes: set[fx.Node] = set()
    alias: dict[fx.Node, str] = {}
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
            alias[node] = node.name
        elif node.op == "output":
            result = node.args[0]
        elif _is_size(node, sizes):
            sizes.add(node)
        else:
            try:
                layer, read = _layer(node, modules)
            except _Unknown as error:
                faults.append(f"{node.name} ({error})")
                alias[node] = node.name
                continue
            names = tuple(alias[each] for each in read)
            if isinstance(layer, nn.Identity):
                alias[node] = names[0]
                continue
            alias[node] = node.name
            steps.append(Step(node.name, layer, names))
    single = isinstance(result, fx.Node)
    results = (result,) if single else result
    if not isinstance(results, list | tuple) or any(
        not isinstance(each, fx.Node) for each in results
    ):
        faults.append("the output (is no tensor and no tuple of tensors)")
    if faults:
        text = "; ".join(faults)
        raise GraphError(f"neon8.qat does not support: {text}")
    outputs = tuple(alias[each] for each in results)
    return Traced(
        steps=_normalized(steps, outputs),
        inputs=tuple(inputs),
        outputs=outputs,
        single=single,
    )


def _is_size(node: fx.Node, sizes: set[fx.Node]) -> bool:
    """True for numbers that follow from a tensor's shape."""
    if node.op == "call_method":
        return bool(node.target == "size")
    if node.target is getattr:
        return bool(node.args[1] == "shape")
    return node.target is operator.getitem and node.args[0] in sizes


def _layer(
    node: fx.Node, modules: dict[str, nn.Module]
) -> tuple[nn.Module, Sequence[fx.Node]]:
    """The layer of a node and the tensors that it reads.  _Unknown."""
    if node.op == "call_module":
        module = modules[str(node.target)]
        make = next((MODULES[k] for k in type(module).__mro__ if k in MODULES), None)
        if make is None:
            raise _Unknown(type(module).__name__)
        return make(module), _tensors(node.args)
    known = FUNCTIONS.get(node.target) if node.op != "get_attr" else None
    if known is None:
        name = getattr(node.target, "__name__", str(node.target))
        raise _Unknown("a constant" if node.op == "get_attr" else name)
    if not node.args:
        raise _Unknown("a tensor that is given by keyword")
    count = 2 if node.target in SUMS else 1
    call = _Call(node.args[1:], dict(node.kwargs))
    return known(call), _tensors(node.args[:count])


def _tensors(values: Any) -> tuple[fx.Node, ...]:
    flat: list[fx.Node] = []
    for value in values:
        if isinstance(value, list | tuple):
            flat += _tensors(value)
        elif isinstance(value, fx.Node):
            flat.append(value)
        else:
            raise _Unknown("a constant operand")
    return tuple(flat)


def _normalized(steps: Sequence[Step], outputs: Sequence[str]) -> tuple[Step, ...]:
    """With each batch normalization in the layer before it.  GraphError."""
    readers: dict[str, int] = dict.fromkeys(outputs, 1)
    for step in steps:
        for name in step.inputs:
            readers[name] = readers.get(name, 0) + 1
    made = {step.name: step.layer for step in steps}
    alias: dict[str, str] = {}
    result = []
    for step in steps:
        names = tuple(alias.get(name, name) for name in step.inputs)
        if not isinstance(step.layer, NORMS):
            result.append(Step(step.name, step.layer, names))
            continue
        before = made.get(names[0])
        single = readers[step.inputs[0]] == 1
        if not isinstance(before, Weighted) or before.norm is not None or not single:
            text = "only follows a convolution or a Linear that nothing else reads"
            raise GraphError(f"batch normalization {step.name!r}: {text}")
        if not step.layer.track_running_stats:
            text = "keeps no running statistics"
            raise GraphError(f"batch normalization {step.name!r}: {text}")
        before.norm = step.layer
        alias[step.name] = names[0]
    if any(name in alias for name in outputs):
        # The layer itself takes the name that the outside knows.
        back = {alias[name]: name for name in outputs if name in alias}
        result = [
            Step(
                back.get(step.name, step.name),
                step.layer,
                tuple(back.get(name, name) for name in step.inputs),
            )
            for step in result
        ]
    return tuple(result)


def _weighted(layer: nn.Module) -> Layer:
    if isinstance(layer, nn.Conv2d) and (
        layer.padding_mode != "zeros" or isinstance(layer.padding, str)
    ):
        raise _Unknown(f"Conv2d with padding {layer.padding!r}, {layer.padding_mode}")
    return Weighted(layer)


def _max_pool(layer: nn.Module) -> Layer:
    if layer.return_indices:
        raise _Unknown("MaxPool2d with indices")
    return Pool(layer)


def _average_pool(layer: nn.Module) -> Layer:
    if layer.divisor_override is not None:
        raise _Unknown("AvgPool2d with divisor_override")
    return Pool(layer)


def _adaptive(size: Any) -> Layer:
    if size not in (1, (1, 1), [1, 1]):
        raise _Unknown(f"adaptive average pooling to {size}")
    return Pool(None)


def _flatten(start: Any, end: Any) -> Layer:
    if (start, end) != (1, -1):
        raise _Unknown(f"flatten from {start} to {end}; from 1 to the last works")
    return Plain(partial(torch.flatten, start_dim=1), "Flatten", moves=True)


def _reshape(call: _Call) -> Layer:
    sizes = call.get(0, "shape")
    if not isinstance(sizes, list | tuple):
        sizes = (sizes, call.get(1, ""))
    if len(sizes) != 2 or sizes[1] != -1:
        raise _Unknown("reshape; flatten(1) works")
    return _flatten(1, -1)


def _mean(call: _Call) -> Layer:
    axes = call.get(0, "dim")
    if not isinstance(axes, list | tuple) or tuple(axes) not in PLANES:
        raise _Unknown("mean over other dimensions than height and width")
    return Pool(None, keep=bool(call.get(1, "keepdim", default=False)))


def _clamp(call: _Call) -> Layer:
    lo, hi = call.get(0, "min"), call.get(1, "max")
    return Activate(-np.inf if lo is None else lo, np.inf if hi is None else hi)


def _add(call: _Call) -> Layer:
    if call.get(1, "alpha", 1) != 1:
        raise _Unknown("add with alpha")
    return Plain(torch.add, "Add")


def _concat(call: _Call) -> Layer:
    if call.get(0, "dim", 0) != 1:
        raise _Unknown("cat along another dimension than the channels")
    return Plain(_join, "Concat", moves=True, axis=1)


def _join(*tensors: torch.Tensor) -> torch.Tensor:
    return torch.cat(tensors, 1)


def _dropout(layer: nn.Module) -> Layer:
    return Plain(layer, "", moves=True)


def _pool(call: _Call, kind: type[nn.Module], names: Sequence[str]) -> nn.Module:
    """A module with the arguments of the function of that name."""
    options = {
        name: value
        for place, name in enumerate(names)
        if (value := call.get(place, name)) is not None
    }
    return kind(**options)


MAX_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
AVERAGE_POOL = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

MODULES: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.Conv2d: _weighted,
    nn.Linear: _weighted,
    **{norm: lambda layer: layer for norm in NORMS},
    nn.ReLU6: lambda _layer: Activate(0, 6),
    nn.ReLU: lambda _layer: Activate(0),
    nn.Hardtanh: lambda layer: Activate(layer.min_val, layer.max_val),
    nn.LeakyReLU: lambda layer: Activate(slope=layer.negative_slope),
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _average_pool,
    nn.AdaptiveAvgPool2d: lambda layer: _adaptive(layer.output_size),
    nn.Flatten: lambda layer: _flatten(layer.start_dim, layer.end_dim),
    nn.Dropout: _dropout,
    nn.Dropout2d: _dropout,
    nn.Identity: lambda layer: layer,
}
SUMS = frozenset({operator.add, operator.iadd, torch.add, "add", "add_"})
FUNCTIONS: dict[Any, Callable[[_Call], nn.Module]] = {
    **dict.fromkeys(SUMS, _add),
    **dict.fromkeys(
        (functional.relu, torch.relu, "relu", "relu_"), lambda _call: Activate(0)
    ),
    functional.relu6: lambda _call: Activate(0, 6),
    functional.hardtanh: lambda call: Activate(
        call.get(0, "min_val", -1.0), call.get(1, "max_val", 1.0)
    ),
    **dict.fromkeys((torch.clamp, "clamp", "clamp_", torch.clip, "clip"), _clamp),
    functional.leaky_relu: lambda call: Activate(
        slope=call.get(0, "negative_slope", 0.01)
    ),
    **dict.fromkeys((torch.cat, torch.concat), _concat),
    **dict.fromkeys(
        (torch.flatten, "flatten"),
        lambda call: _flatten(call.get(0, "start_dim", 0), call.get(1, "end_dim", -1)),
    ),
    **dict.fromkeys((torch.reshape, "reshape", "view"), _reshape),
    **dict.fromkeys((torch.mean, "mean"), _mean),
    functional.max_pool2d: lambda call: _max_pool(_pool(call, nn.MaxPool2d, MAX_POOL)),
    functional.avg_pool2d: lambda call: _average_pool(
        _pool(call, nn.AvgPool2d, AVERAGE_POOL)
    ),
    functional.adaptive_avg_pool2d: lambda call: _adaptive(call.get(0, "output_size")),
    functional.dropout: lambda call: _dropout(nn.Dropout(call.get(0, "p", 0.5))),
}
