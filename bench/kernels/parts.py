# SPDX-License-Identifier: Apache-2.0
"""Instructions and modelled cycles of each part of a run, by function."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.kernels import cores, flow
from bench.kernels.assembly import Program, Step
from bench.kernels.cores import CORES
from bench.kernels.report import COVERED, Bench
from neon8.profile.costs import Spent
from neon8.runtime.model import Model

Costs = dict[str, Spent]
"""By function."""

FIRST = 1
"""What comes before it is the session's, and no part."""


Loops = dict[tuple[flow.Block, ...], float]
"""Modelled cycles of a pass through the blocks of a loop."""


def measure(
    bench: Bench,
    core: str,
    models: Sequence[Path],
    folder: Path,
    known: Loops | None = None,
) -> list[list[Costs]]:
    """Of each .n8 file, its parts in their order.  BenchError: it cannot be run.

    known: the loops that earlier calls for the core have modelled, for this one to add
    to.
    """
    guest, code = bench.guests[CORES[core].machine.name]
    counted = [
        bench.counter.count(
            CORES[core],
            guest,
            ("model", model, any_input(model, folder), folder / "out"),
        )[FIRST:]
        for model in models
    ]
    all_parts = [part for parts in counted for part in parts]
    judged = judge(bench, code, core, all_parts, {} if known is None else known)
    taken = iter(judged)
    return [[next(taken) for _ in parts] for parts in counted]


def any_input(model: Path, folder: Path) -> Path:
    """A file with inputs for a model, whose values do not matter to its time."""
    rng = np.random.default_rng(0)
    path = folder / "in"
    with Model.open(model) as opened, path.open("wb") as file:
        for info in opened.inputs.values():
            lo, hi = (info.lo, info.hi) if info.quantized else (0, 1)
            values = rng.integers(lo, hi, info.shape, endpoint=True)
            file.write(values.astype(info.dtype).tobytes())
    return path


def hottest(
    bench: Bench, core: str, models: Sequence[Path], folder: Path
) -> dict[str, tuple[Step, ...]]:
    """Of each function, the loop in which it spends most instructions."""
    guest, code = bench.guests[CORES[core].machine.name]
    found: dict[str, tuple[float, tuple[Step, ...]]] = {}
    for model in models:
        arguments = ("model", model, any_input(model, folder), folder / "out")
        edges = flow.whole(bench.counter.count(CORES[core], guest, arguments))
        for cycle in flow.cycles(edges):
            name = code.function[max(cycle.blocks).address]
            if name not in found or cycle.instructions > found[name][0]:
                found[name] = cycle.instructions, code.steps(cycle.blocks)
    return {name: steps for name, (_, steps) in found.items()}


def judge(
    bench: Bench,
    code: Program,
    core: str,
    parts: Sequence[flow.Edges],
    known: Loops,
) -> list[Costs]:
    """What was counted of each part, split among its functions.

    Each loop is modelled once. The cycles of one are split by instructions.
    """
    new: dict[tuple[flow.Block, ...], None] = {}
    chosen: list[list[flow.Cycle]] = []
    for edges in parts:
        total, covered = flow.instructions(edges), 0
        chosen.append([])
        for cycle in flow.cycles(edges):
            if covered >= COVERED * total:
                break
            chosen[-1].append(cycle)
            covered += cycle.instructions
            if cycle.blocks not in known:
                new[cycle.blocks] = None
    steps = [code.steps(blocks) for blocks in new]
    modelled = cores.has_model(core)
    found = cores.cycles(bench.tools.llvm_mca, steps, core) if modelled else ()
    known.update(zip(new, found, strict=False))
    return [
        split(code, edges, cycles, known)
        for edges, cycles in zip(parts, chosen, strict=True)
    ]


def split(
    code: Program,
    edges: flow.Edges,
    cycles: Sequence[flow.Cycle],
    loops: Loops,
) -> Costs:
    """Of one part."""
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
