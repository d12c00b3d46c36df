# SPDX-License-Identifier: Apache-2.0
"""A network in quantization-aware training: prepare, train, freeze, export."""

import copy
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from neon8.errors import CalibrationError, GraphError
from neon8.files import write_atomic
from neon8.qat.layers import Activate, Plain, Weighted
from neon8.qat.ranges import Ranges, Rounding
from neon8.qat.trace import Step, Traced, trace
from neon8.quant.scale_table import TABLE_SCHEMES

Range = tuple[float, float]


class QatModel(nn.Module):
    """A network that computes in float what int8 will give, to be trained as any other.

    names: of the tensors that are rounded, which `ranges` of prepare() may name.
    traced: the network as a list of layers.  shapes: of inputs and outputs, as the last
    batch had them.
    """

    def __init__(self, traced: Traced, scheme: str, fixed: Mapping[str, Range]) -> None:
        super().__init__()
        self.traced = traced
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.layers = nn.ModuleDict({step.name: step.layer for step in traced.steps})
        groups = _groups(traced)
        rounds = _rounded(traced)
        self.names = tuple(name for name in groups if name in rounds)
        members: dict[str, list[str]] = {}
        for name in self.names:
            members.setdefault(groups[name], []).append(name)
        ranges = {
            group: Ranges(tuple(names), scheme=scheme, fixed=_fixed(names, fixed))
            for group, names in members.items()
        }
        self.roundings = nn.ModuleDict(
            {name: Rounding(ranges[groups[name]], name) for name in self.names}
        )
        self._groups = groups
        self._ranges = ranges
        self._frozen = False
        for step in traced.steps:
            if isinstance(step.layer, Weighted):
                step.layer.source = ranges[groups[step.inputs[0]]]

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The outputs of the network, as the model itself gives them."""
        learns = self.training and not self._frozen
        return self._run(inputs, learns=learns)

    def observe(self, *inputs: torch.Tensor) -> None:
        """Average a batch into the ranges, without training."""
        before = self.training
        self.eval()
        with torch.no_grad():
            self._run(inputs, learns=not self._frozen)
        self.train(before)

    def freeze(self) -> None:
        """Keep ranges and statistics of normalization from here on.

        What is trained afterwards is trained on exactly the grids that are exported.
        """
        self._frozen = True
        for layer in self.layers.values():
            if isinstance(layer, Weighted):
                layer.frozen = True

    def export(self, path: str | PathLike[str]) -> None:
        """Write the network as ONNX with QuantizeLinear and DequantizeLinear.

        Weights are int8 with a scale for each output channel, biases int32, activations
        int8 or uint8; the batch is free. CompileError: an accumulator does not fit.
        """
        from neon8.qat.export import quantized  # noqa: PLC0415 - training needs no onnx

        file = Path(path)
        write_atomic(file, quantized(self, file.stem or "net"))

    def ranges_of(self, name: str) -> Ranges | None:
        """Those of a tensor, None if it is not rounded and holds no rounded values.

        name: also of a tensor inside a layer, which has the layer's before a dot.
        """
        return self._ranges.get(self._groups[name.partition(".")[0]])

    def _run(self, inputs: Sequence[torch.Tensor], *, learns: bool) -> Any:
        traced = self.traced
        if len(inputs) != len(traced.inputs):
            text = f"{len(inputs)} inputs given; the network takes {len(traced.inputs)}"
            raise GraphError(text)
        for ranges in self._ranges.values():
            ranges.active = learns
        values: dict[str, torch.Tensor] = {}
        for name, value in zip(traced.inputs, inputs, strict=True):
            values[name] = self.roundings[name](value)
        for step in traced.steps:
            value = step.layer(*(values[name] for name in step.inputs))
            if step.name in self.roundings:
                value = self.roundings[step.name](value)
            values[step.name] = value
        self.shapes = {
            name: tuple(values[name].shape)
            for name in (*traced.inputs, *traced.outputs)
        }
        results = tuple(values[name] for name in traced.outputs)
        return results[0] if traced.single else results


def prepare(
    model: nn.Module,
    example: torch.Tensor | Sequence[torch.Tensor],
    *,
    scheme: str = "auto",
    ranges: Mapping[str, Range] | None = None,
) -> QatModel:
    """A copy of the model that rounds as int8 does, ready to be trained.

    example: a batch of real inputs, from which the ranges start.  scheme: of the
    activations, as for `neon8 calibrate`.  ranges: of tensors, by name or pattern,
    that are given and not learned; QatModel.names lists the names. A name wins over
    patterns.  GraphError: torch.fx cannot trace the model, or neon8.qat does not know
    all of it.  CalibrationError: a range or scheme that cannot be.
    """
    if scheme not in TABLE_SCHEMES:
        text = f"scheme {scheme!r} is not one of {', '.join(TABLE_SCHEMES)}"
        raise CalibrationError(text)
    twin = copy.deepcopy(model)
    made = QatModel(trace(twin), scheme, ranges or {})
    for pattern in ranges or {}:
        if not any(fnmatchcase(name, pattern) for name in made.names):
            names = ", ".join(made.names)
            raise CalibrationError(f"range {pattern!r}: names none of {names}")
    made.train(model.training)
    made.observe(*([example] if isinstance(example, torch.Tensor) else example))
    return made


def _fixed(names: Sequence[str], given: Mapping[str, Range]) -> Range | None:
    """The range that is given for tensors that share one.  CalibrationError."""
    found = {given[name] for name in names if name in given} or {
        ends
        for pattern, ends in given.items()
        if any(fnmatchcase(name, pattern) for name in names)
    }
    if len(found) > 1:
        text = f"{', '.join(names)} share one range; several are given"
        raise CalibrationError(text)
    for lo, hi in found:
        if not -1e30 < lo <= 0 <= hi < 1e30 or lo == hi:
            raise CalibrationError(f"range ({lo}, {hi}) of {names[0]} does not hold 0")
        return float(lo), float(hi)
    return None


def _groups(traced: Traced) -> dict[str, str]:
    """Each tensor -> the one that names its group, as quant.groups.scale_groups()."""
    parent = {name: name for name in traced.inputs}

    def find(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for step in traced.steps:
        parent[step.name] = step.name
        if step.layer.moves:
            for name in step.inputs:
                parent[find(name)] = find(step.name)
    return {name: find(name) for name in parent}


def _rounded(traced: Traced) -> set[str]:
    """The tensors that are rounded, where neon8 rounds them.

    Not before an activation that only they feed, nor before the sum that a convolution
    computes as well, nor what a convolution gives to the outside, nor what was rounded
    before it moved.
    """
    readers: dict[str, list[Step]] = {}
    for step in traced.steps:
        for name in step.inputs:
            readers.setdefault(name, []).append(step)
    found, there = set(traced.inputs), set(traced.inputs)
    for step in traced.steps:
        there.add(step.name)
        layer, reading = step.layer, readers.get(step.name, [])
        if layer.moves:
            continue
        if step.name not in traced.outputs and len(reading) == 1:
            (reader,) = reading
            if isinstance(reader.layer, Activate) and not isinstance(layer, Activate):
                continue
            sums = isinstance(reader.layer, Plain) and reader.layer.operator == "Add"
            if isinstance(layer, Weighted) and sums:
                others = {name for name in reader.inputs if name != step.name}
                if not layer.depthwise and others <= there:
                    continue
        elif (
            step.name in traced.outputs and not reading and isinstance(layer, Weighted)
        ):
            continue
        found.add(step.name)
    return found
