# SPDX-License-Identifier: Apache-2.0
"""Constants of which a shape wants the first part: tables of positions, masks.

A network that reads the first entries of a table has another constant at every shape.
They all are parts of the one at the largest, so a Program with open sizes has that one,
and a step that takes the part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from neon8.arrays import Array
from neon8.compile.segments import runs
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.selection import GatherOp, whole

FEW = 64
"""Runs of a constant that is made by a rule, as anchors are."""

Wholes = Mapping[str, tuple[Op, Tensor]]
"""Tensor -> the step that makes it at the largest shape, and how it is there."""


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
        tensor = largest.tensors[name]
        parts = (
            _part(_entries(op), tensor, program.tensors[name]) for program in programs
        )
        every = zip(parts, entries, strict=True)
        if all(np.array_equal(part, each) for part, each in every) and not ruled(
            entries
        ):
            found[name] = op, tensor
    return found


def _entries(op: Op) -> Array:
    """The values of a constant in N C H W order."""
    values = (getattr(op, name) for name in ("values", "levels"))
    return next(np.reshape(each, -1) for each in values if each is not None)


def _part(entries: Array, tensor: Tensor, wanted: Tensor) -> Array:
    """As many of the first entries along each axis as another tensor has."""
    box = tuple(slice(size) for size in wanted.shape)
    return entries.reshape(tensor.shape)[box].reshape(-1)


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
        name: (op, tensor)
        for name, (op, tensor) in wholes.items()
        if name in steps
        and np.array_equal(
            _part(_entries(op), tensor, program.tensors[name]), _entries(steps[name])
        )
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
        lists = [whole(size) for size in program.tensors[op.output].shape]
        take = GatherOp(
            name=op.name,
            inputs=(source,),
            output=op.output,
            indices=np.concatenate(lists),
        )
        ops.append(take)
    return replace(program, tensors=tensors, ops=tuple(ops))
