# SPDX-License-Identifier: Apache-2.0
"""Instructions and modelled cycles of each part of a run, by function."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.kernels import cores, flow
from bench.kernels.assembly import Program, Step
from bench.kernels.report import COVERED, Bench
from neon8.profile.costs import Spent
from neon8.runtime.model import Model

Costs = dict[str, Spent]
"""By function."""


Loops = dict[tuple[flow.Block, ...], float]
"""Modelled cycles of a pass through the blocks of a loop."""


def measure(
    bench: Bench, core: str, model: Path, folder: Path, known: Loops
) -> list[Costs]:
    """The parts of a .n8 file, in their order.  BenchError: it cannot be run.

    The cycles of a loop are split by instructions.  known: the loops that earlier calls
    for the core have modelled, for this one to add to.
    """
    code, (_session, *parts) = count(bench, core, model, folder)
    chosen = [flow.most(edges, COVERED) for edges in parts]
    every = dict.fromkeys(cycle.blocks for cycles in chosen for cycle in cycles)
    new = [blocks for blocks in every if blocks not in known]
    if cores.has_model(core):
        steps = [code.steps(blocks) for blocks in new]
        found = cores.cycles(bench.tools.llvm_mca, steps, core)
        known.update(zip(new, found, strict=True))
    return [
        split(code, edges, cycles, known)
        for edges, cycles in zip(parts, chosen, strict=True)
    ]


def count(
    bench: Bench, core: str, model: Path, folder: Path
) -> tuple[Program, list[flow.Edges]]:
    """What runs of a .n8 file with inputs whose values do not matter to its time."""
    rng = np.random.default_rng(0)
    path = folder / "in"
    with Model.open(model) as opened, path.open("wb") as file:
        for info in opened.inputs.values():
            lo, hi = (info.lo, info.hi) if info.quantized else (0, 1)
            values = rng.integers(lo, hi, info.shape, endpoint=True)
            file.write(values.astype(info.dtype).tobytes())
    return bench.count(core, ("model", model, path, folder / "out"))


def hottest(
    bench: Bench, core: str, models: Sequence[Path], folder: Path
) -> dict[str, tuple[Step, ...]]:
    """The loop in which each function spends most instructions.

    One of its own rather than one of callers that goes through it.
    """
    found: dict[str, tuple[tuple[bool, float], tuple[Step, ...]]] = {}
    for model in models:
        code, parts = count(bench, core, model, folder)
        for cycle in flow.cycles(flow.whole(parts)):
            name = code.function[max(cycle.blocks).address]
            own = all(
                code.function[block.address] == name
                for block in filter(flow.OUTSIDE.__ne__, cycle.blocks)
            )
            weight = own, cycle.instructions
            if name not in found or weight > found[name][0]:
                found[name] = weight, code.steps(cycle.blocks)
    return {name: steps for name, (_, steps) in found.items()}


def split(
    code: Program,
    edges: flow.Edges,
    cycles: Sequence[flow.Cycle],
    loops: Loops,
) -> Costs:
    instructions = code.functions(flow.runs(edges))
    spent: dict[str, float] = defaultdict(float)
    covered: dict[str, float] = defaultdict(float)
    for cycle in cycles:
        of_pass = sum(block.instructions for block in cycle.blocks)
        cost = loops.get(cycle.blocks, 0.0)
        for block in filter(flow.OUTSIDE.__ne__, cycle.blocks):
            name = code.function[block.address]
            share = block.instructions / of_pass
            spent[name] += cycle.count * cost * share
            covered[name] += cycle.count * block.instructions
    all_spent, all_covered = sum(spent.values()), sum(covered.values())
    return {
        name: Spent(
            count,
            spent[name] * count / covered[name]
            if covered[name]
            else all_spent * count / max(all_covered, 1),
        )
        for name, count in instructions.items()
    }
