# SPDX-License-Identifier: Apache-2.0
"""Layers made faster at a price: first what gains most time for the noise it adds.

A change gives a scale group and the layers that read it what int8 Winograd needs, or a
layer the weight scales with which int16 holds four products. Each is compiled, and its
time estimated; what gains some is run by the int8 library on the samples that rank. On
the others each step is measured, as in budget.py.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from neon8.calibrate.observation import Observation
from neon8.calibrate.recipe.bias import CORRECTED, corrections
from neon8.calibrate.solve import solve_quietly
from neon8.compile.compiler import compile_model
from neon8.data.few import Kept
from neon8.evaluate.measure import AnyBench, Figures, before_softmax, by_shape
from neon8.evaluate.network import Network, bench_of
from neon8.evaluate.ranking import changes, rank_figures
from neon8.ir.graph import Graph
from neon8.ir.groups import groups_of
from neon8.operators.convolution import convolutions
from neon8.profile.profile import Times
from neon8.progress import Count, nobody
from neon8.quant import int16_fit
from neon8.quant.grid import covering
from neon8.quant.scale_table import (
    BALANCED,
    NARROW,
    NEAREST,
    LayerScale,
    ScaleTable,
    TensorScale,
)
from neon8.quant.weights import channel_scales
from neon8.refine.budget import MARGIN_DB, divided, ratio_of
from neon8.rewrite.equalization import equalized
from neon8.settings.stages import (
    DEFAULTS,
    JudgeSettings,
    RefineSettings,
    SolveSettings,
)
from neon8.text import columns, counted, decimals

LOSS_DB = 1.5
"""What all changes may cost the output unless the user says how good or how fast it
must be. On ResNet-8 and SqueezeNet this is 0.06 points of top-1 on average."""
ANY_LOSS_DB = 200.0
"""What a single layer may lose where the whole is measured."""
LEAST_GAIN = 0.001
"""The share of the time of a run: what gains less is not worth any noise."""
LEAST_NOISE = 0.01
"""The share of the noise: what adds less is ranked as if it added so much."""
MOST = 40
"""Changes that are measured, those that gain most time."""
PARTS = (7 / 8, 3 / 4)
"""Narrower ranges to try, in parts of what suits the values of the tensor alone."""
TINY = 1e-30
"""Noise of a network that has none."""

FAST, DEEP = "fast", "deep"
"""Reason codes: int8 Winograd; int16 holds four products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Entries of a table.  name: of the scale group or the layer.  to: FAST or DEEP."""

    name: str
    to: str
    tensors: Mapping[str, TensorScale]
    layers: Mapping[str, LayerScale]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change that was tried after those taken before it; None at the beginning.

    time: relative to the plain table.
    """

    change: Change | None
    figures: Figures
    time: float
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """table: with all that was taken.  steps: the plain table first.

    fastest: what the network would take with all changes that gain, as `times` has it.
    """

    table: ScaleTable
    steps: tuple[Step, ...]
    fastest: float


def possible_changes(
    graph: Graph,
    table: ScaleTable,
    observation: Observation,
    rules: SolveSettings,
    *,
    deep: bool,
) -> list[Change]:
    """Those of FAST, and of DEEP if asked for.  rules: by which `table` was solved."""
    found = [*deep_changes(graph, table, observation)] if deep else []
    if rules.bits > NARROW:
        return found
    loss = rules.max_sqnr_loss if rules.fast else ANY_LOSS_DB
    quick = replace(rules, fast=True, max_sqnr_loss=loss)
    other = solve_quietly(observation, graph, quick)
    return [*fast_changes(graph, table, other), *found]


def fast_changes(
    graph: Graph, table: ScaleTable, other: ScaleTable
) -> Iterator[Change]:
    """What `other`, solved with `fast`, has else than `table`, group by group."""
    group_of = groups_of(graph, table.tensors)
    layers = {n: e for n, e in other.layers.items() if e != table.layers[n]}
    for group in dict.fromkeys(group_of[entry.input] for entry in layers.values()):
        members = [name for name in table.tensors if group_of[name] == group]
        yield Change(
            name=group,
            to=FAST,
            tensors={name: other.tensors[name] for name in members},
            layers={n: e for n, e in layers.items() if group_of[e.input] == group},
        )


def deep_changes(
    graph: Graph, table: ScaleTable, observation: Observation
) -> Iterator[Change]:
    """Weight scales with which int16 holds four products, as --accumulator-aware.

    What was corrected is so again, as other weights move means by something else.
    """
    rewritten = equalized(graph, table)
    deep = {}
    for node in convolutions(rewritten):
        entry = table.layers.get(node.name)
        if entry is None or node.transposed or node.weight_scales is not None:
            continue
        source = table.tensors[entry.input]
        narrow = source.bits <= NARROW >= entry.bits and not source.float32
        if not narrow or entry.rounding not in (NEAREST, BALANCED):
            continue
        scales = channel_scales(node.name, entry, len(node.weight))
        found, fit = int16_fit.fit(node.name, node.weight, scales, limit=math.inf)
        if fit is not None and fit.applied:
            reasons = (each for each in entry.reasons if each != CORRECTED)
            deep[node.name] = replace(
                entry,
                weight_scales=tuple(found.tolist()),
                bias_correction=(),
                rounding=NEAREST,
                reasons=(*reasons, DEEP),
            )
    moved = {n: e for n, e in deep.items() if CORRECTED in table.layers[n].reasons}
    means = {}
    for name in {entry.input for entry in moved.values()}:
        source, mean = table.tensors[name], observation.channels[name].mean()
        offsets, factors = source.offsets or 0.0, source.factors or 1.0
        means[name] = (mean - np.array(offsets)) / np.array(factors)
    again = corrections(rewritten, replace(table, layers=moved), means)
    for name, entry in (deep | again.layers).items():
        yield Change(name=name, to=DEEP, tensors={}, layers={name: entry})


def changed(table: ScaleTable, changes_: Sequence[Change]) -> ScaleTable:
    """The table with these entries; of two for a layer the later one."""
    tensors, layers = dict(table.tensors), dict(table.layers)
    for each in changes_:
        tensors |= each.tensors
        layers |= each.layers
    return replace(table, tensors=tensors, layers=layers)


def made_faster(
    network: Network,
    table: ScaleTable,
    possible: Sequence[Change],
    samples: Sequence[Kept],
    goal: RefineSettings,
    *,
    times: Times,
    sparing: bool,
    judge: JudgeSettings = DEFAULTS.judge,
    watch: Count = nobody,
) -> Found:
    """Take the changes with which the network takes goal.max_ms, if there are such.

    times: of the layers of a .n8 file, ms if that is asked for.  sparing: True to take
    further ones, as long as the output keeps goal.target_sqnr, or loses LOSS_DB at most
    where there is none, and no task is sure to lose; without max_ms, and where all
    changes together are not enough, these are all.  CompileError, DataError.
    """
    runs = count(1)

    def tick() -> None:
        watch(next(runs), None)

    watch(0, None)
    ranking, held = divided(samples)
    # A limit is one for the mean over samples; gains are much alike at all shapes.
    timed = held if goal.max_ms is not None else held[:1]
    sizes = [
        (before_softmax(network.at(timed[places[0]]).graph), len(places))
        for places in by_shape(timed)
    ]
    speed = _Speed(sizes, table, times)
    gaining = speed.gaining(possible)
    ranked = _ranked(table, bench_of(network, ranking, judge, tick=tick), gaining)
    price = None if goal.max_ms is None else speed.price
    bench = bench_of(network, held, judge, tick=tick, price=price)
    first = Step(change=None, figures=bench.measure(table), time=1.0, taken=True)
    steps, taken = [first], list[Change]()
    now = 1.0
    needed = [] if goal.max_ms is None else speed.needed(ranked, goal.max_ms)
    others = [each for each in ranked if each not in needed] if sparing else []
    for change in (*needed, *others):
        then = speed.of([*taken, change])
        if then >= now:
            continue
        found = bench.measure(changed(table, [*taken, change]))
        keeps = change in needed or _spares(first.figures, found, goal.target_sqnr)
        steps.append(Step(change=change, figures=found, time=then, taken=keeps))
        if keeps:
            taken.append(change)
            now = then
    return Found(
        table=changed(table, taken),
        steps=tuple(steps),
        fastest=speed.of(ranked) * speed.plain,
    )


def _spares(plain: Figures, found: Figures, target: float | None) -> bool:
    """True if the output is as good as wanted, and no task is sure to lose."""
    lost = changes(plain, found)
    if any(lost[name].loses for name in found.task_names):
        return False
    if target is not None:
        return found.worst[1] >= target + MARGIN_DB
    return found.sqnr_db >= plain.sqnr_db - LOSS_DB


class _Speed:
    """How long the network takes with changes, relative to without.  plain: without.

    Of samples of several shapes it is the mean, as a bench has it.
    """

    def __init__(
        self, sizes: Sequence[tuple[Graph, int]], table: ScaleTable, times: Times
    ) -> None:
        """sizes: the network at each shape, and how many samples have it."""
        self._sizes, self._table, self._times = sizes, table, times
        self._samples = sum(number for _, number in sizes)
        self._before = self._layers(())
        self.plain = sum(self._before.values())

    def price(self, file: bytes) -> float:
        """What a file takes in all."""
        return sum(self._times(file).values())

    def of(self, some: Sequence[Change]) -> float:
        """The time of the network with them.  CompileError."""
        return sum(self._layers(some).values()) / self.plain

    def gaining(self, possible: Sequence[Change]) -> list[tuple[float, Change]]:
        """The changes that gain enough, MOST at most, and their part of the time.

        All of a kind are compiled at once, as each layer has a time of its own.
        """
        found = []
        for kind in dict.fromkeys(each.to for each in possible):
            some = [each for each in possible if each.to == kind]
            after = self._layers(some)
            for each in some:
                names = [name for name in each.layers if name in after]
                gain = sum(self._before[name] - after[name] for name in names)
                found.append((gain / self.plain, each))
        most = sorted(found, key=lambda one: -one[0])[:MOST]
        return [(gain, each) for gain, each in most if gain > LEAST_GAIN]

    def needed(self, ranked: Sequence[Change], limit: float) -> list[Change]:
        """The first ones with which the network takes `limit`; none if all do not.

        Of these the last ones are left out that it does not take.
        """
        most = limit / self.plain
        if self.of(ranked) > most:
            return []
        found: list[Change] = []
        while self.of(found) > most:
            found.append(ranked[len(found)])
        for each in found[-2::-1]:
            rest = [other for other in found if other is not each]
            found = rest if self.of(rest) <= most else found
        return found

    def _layers(self, some: Sequence[Change]) -> dict[str, float]:
        table, found = changed(self._table, some), dict[str, float]()
        for graph, number in self._sizes:
            share = number / self._samples
            for name, time in self._times(compile_model(graph, table)).items():
                found[name] = found.get(name, 0.0) + share * time
        return found


def _ranked(
    table: ScaleTable, bench: AnyBench, gaining: Sequence[tuple[float, Change]]
) -> list[Change]:
    """The one first that gains most for the noise that it adds alone.

    Ranges are narrower where that is sure to be better. Of two for a layer the first is
    left.
    """
    plain = ratio_of(bench.measure(table).sqnr_db) if gaining else 0.0
    worth = []
    for gain, each in gaining:
        tries = [each, *_narrowed(each)]
        figures = [bench.measure(changed(table, [one])) for one in tries]
        best = rank_figures(figures, baseline=0).advised
        noise = ratio_of(figures[best].sqnr_db) - plain
        worth.append((gain / max(noise, LEAST_NOISE * plain, TINY), tries[best]))
    found: list[Change] = []
    for _, each in sorted(worth, key=lambda one: -one[0]):
        if all(each.layers.keys().isdisjoint(other.layers) for other in found):
            found.append(each)
    return found


def _narrowed(change: Change) -> Iterator[Change]:
    """The change with ranges that are narrower by PARTS, where it has made them."""
    mine = {n: e for n, e in change.tensors.items() if FAST in e.reasons}
    for part in PARTS if mine else ():
        narrow = {
            name: covering(entry, *(part * end for end in entry.threshold))
            for name, entry in mine.items()
        }
        yield replace(change, tensors={**change.tensors, **narrow})


def as_text(found: Found) -> str:
    """The steps as a table; stars mark what was taken."""
    first = found.steps[0].figures
    ms = [] if first.ms is None else ["ms"]
    rows = [
        [
            "*" if step.taken else "",
            decimals(step.figures.worst[1]),
            *(f"{value:.4f}" for value in step.figures.task_means.values()),
            f"{step.time:.3f}",
            *(f"{step.figures.ms:.3f}" for _ in ms),
            "" if step.change is None else step.change.to,
            "" if step.change is None else ", ".join(step.change.layers),
        ]
        for step in found.steps
    ]
    db = "worst dB" if len(first.outputs) > 1 else "SQNR dB"
    header = ["", db, *first.task_names, "time", *ms, "to", "layers"]
    done = counted(len(first.squares), "sample")
    done = f"faster: measured on {done}; * was taken"
    return "\n".join([done, *columns(rows, header=header)])
