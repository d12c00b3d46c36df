# SPDX-License-Identifier: Apache-2.0
"""Constants of which a shape wants the first part: tables of positions, masks.

A network that reads the first entries of a table has another constant at every shape.
They all are parts of the one at the largest, so a Program with open sizes has that one,
and a step that takes the part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from neon8.arrays import Array, Int32Array
from neon8.compile.segments import runs
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.selection import GatherOp, whole

FEW = 64
"""Runs of a constant that is made by a rule, as anchors are."""

Wholes = Mapping[str, tuple[Op, Tensor]]
"""Tensor -> the step that makes all of it, and how it is there."""


def wholes_of(programs: Sequence[Program], largest: Program) -> Wholes:
    """The constants of these that are parts of those of the largest, and no rule."""
    steps = [{op.output: op for op in program.ops} for program in programs]
    found = {}
    for op in largest.ops:
        name = op.output
        if op.inputs or any(name not in each or each[name].inputs for each in steps):
            continue
        entries = [_entries(each[name]) for each in steps]
        if all(np.array_equal(each, _entries(op)) for each in entries):
            continue
        made = _narrow(op, largest.tensors[name])
        parts = zip(steps, programs, strict=True)
        if all(
            _is_part(made, each[name], program.tensors[name]) for each, program in parts
        ) and not ruled(entries):
            found[name] = made
    return found


def _field(op: Op) -> str:
    """The field of a constant with its values in N C H W order."""
    return "levels" if getattr(op, "values", None) is None else "values"


def _entries(op: Op) -> Array:
    entries: Array = np.reshape(getattr(op, _field(op)), -1)
    return entries


def _narrow(op: Op, tensor: Tensor) -> tuple[Op, Tensor]:
    """The constant without axes along which it is the same, as a batch often is."""
    values: Array = _entries(op).reshape(tensor.shape)
    for axis in range(values.ndim):
        first = values.take([0], axis)
        if values.shape[axis] > 1 and bool((values == first).all()):
            values = first
    if values.size == _entries(op).size:
        return op, tensor
    fields: dict[str, Any] = {_field(op): values.reshape(-1)}
    return replace(op, **fields), replace(tensor, dims=values.shape)


def _lists(whole_: Tensor, wanted: Tensor) -> list[Int32Array]:
    """For each axis of another tensor, which entries of the whole one it has."""
    pairs = zip(whole_.shape, wanted.shape, strict=True)
    return [whole(out) if n > 1 else np.zeros(out, np.int32) for n, out in pairs]


def _is_part(made: tuple[Op, Tensor], op: Op, wanted: Tensor) -> bool:
    """True if a constant, which is tensor `wanted`, is part of a whole one."""
    lists = _lists(made[1], wanted)
    sizes = made[1].shape
    if any(each.max() >= size for each, size in zip(lists, sizes, strict=True)):
        return False
    part = _entries(made[0]).reshape(sizes)[np.ix_(*lists)]
    return np.array_equal(part.reshape(-1), _entries(op))


def ruled(entries: Sequence[Array]) -> bool:
    """True if a few runs give them, at each shape as many."""
    if entries[0].dtype not in (np.float32, np.int32):
        return False
    counts = {len(runs(each) or range(FEW + 1)) for each in entries}
    return len(counts) == 1 and counts.pop() <= FEW


def with_wholes(program: Program, wholes: Wholes) -> Program:
    """The same Program, where constants are taken from the whole ones."""
    steps = {op.output: op for op in program.ops}
    wholes = {
        name: made
        for name, made in wholes.items()
        if name in steps
        and not steps[name].inputs
        and _is_part(made, steps[name], program.tensors[name])
    }
    tensors: dict[str, Tensor] = {}
    ops: list[Op] = []
    for name, tensor in program.tensors.items():
        if name in wholes:
            tensors[f"{name}:whole"] = replace(wholes[name][1], name=f"{name}:whole")
        tensors[name] = tensor
    for op in program.ops:
        if op.output not in wholes:
            ops.append(op)
            continue
        source = f"{op.output}:whole"
        ops.append(replace(wholes[op.output][0], name=op.name, output=source))
        lists = _lists(wholes[op.output][1], program.tensors[op.output])
        take = GatherOp(
            name=op.name,
            inputs=(source,),
            output=op.output,
            indices=np.concatenate(lists),
        )
        ops.append(take)
    return replace(program, tensors=tensors, ops=tuple(ops))
