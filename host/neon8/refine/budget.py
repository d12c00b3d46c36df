# SPDX-License-Identifier: Apache-2.0
"""More bits for the tensors and weights that need them, up to an accuracy or a cost.

One candidate after another, see candidates.py, gets int16, or float32 where int16 does
not help: what gains most by simulation, or most for its cost. A few samples tell which.
Each step is compiled and run by the int8 library on other samples, and their SQNR
decides. The cost is the library's figure for the compiled network, relative to that of
the plain table. What is sure to be worse than the plain table in any output, or in what
the network is for, is not taken, nor is a gain that may be chance:
neon8.evaluate.ranking.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from neon8.compile.lower import lower
from neon8.data.arrays import Arrays
from neon8.data.few import Kept
from neon8.errors import CompileError
from neon8.evaluate.measure import AnyBench, Figures, before_softmax
from neon8.evaluate.network import Network, bench_of
from neon8.evaluate.ranking import changes, rank_figures
from neon8.files import write_atomic
from neon8.ir.graph import Graph
from neon8.ir.groups import groups_of
from neon8.operators.conversion import RequantizeOp
from neon8.progress import Count, nobody
from neon8.quant.scale_table import NARROW, WEIGHTS16, WIDE, ScaleTable
from neon8.refine.candidates import (
    FLOAT,
    INT8,
    INT16,
    INT16_BITS,
    Candidate,
    Chosen,
    Costs,
    both_ends,
    weights_of,
)
from neon8.refine.curve import FORMAT, VERSION, Found, Step, as_json
from neon8.refine.sensitivity import FEW, Meter
from neon8.rewrite.bits import in_float32, with_bits, with_wide_weights
from neon8.settings.stages import DEFAULTS, JudgeSettings, RefineSettings

RANKING, HELD = 20, 40
"""Samples by which groups are ranked, and others by which a network is measured."""
SAMPLES = RANKING + HELD
LEAST = 8
"""With fewer than three times as many, all samples serve both purposes."""

MARGIN_DB = 0.5
"""By how much a target must be exceeded, as other samples differ."""
NOTHING_DB = 0.02
"""A smaller gain counts as none."""
PROMISED_DB = 0.5
"""If simulation promises that much more than int16 gives, float32 is tried."""
AS_GOOD_DB = 0.1
"""A smaller difference is not worth the bits of a tensor."""
NEXT = 6
"""Candidates simulated anew at each step, and MOST of them whenever the noise has
fallen by FALLEN, on FEW samples."""
MOST = 40
FALLEN = 1.25
WORST = 16
"""The layers that lose most by their weights, which are candidates."""


def more_bits(
    network: Network,
    table: ScaleTable,
    samples: Sequence[Kept],
    goal: RefineSettings,
    *,
    judge: JudgeSettings = DEFAULTS.judge,
    price: Callable[[bytes], float] | None = None,
    watch: Count = nobody,
) -> Found:
    """Give tensors more bits until the goal is reached, and write the curve.

    samples: observed ones.  price: milliseconds of a .n8 file, for max_ms.  watch: told
    how many runs of the network are done.
    CompileError: the network or the plain table is refused.  DataError.
    """
    ranking, held = divided(samples)
    runs = count(1)

    def tick(*_: object) -> None:
        watch(next(runs), None)

    watch(0, None)
    meter = Meter(network, table, ranking)
    wanted = [meter.wanted(sample) for sample in held]
    bench = bench_of(network, held, judge, wanted=wanted, tick=tick, price=price)
    graph = before_softmax(network.graph)
    found = _Search(meter, bench, graph, table, goal, tick).run()
    if goal.curve is not None:
        content = {
            "format": FORMAT,
            "version": VERSION,
            "model": {"name": graph.name, "digest": graph.digest},
            **as_json(found, goal),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_atomic(goal.curve, text.encode())
    return found


def divided(samples: Sequence[Kept]) -> tuple[list[Arrays], list[Arrays]]:
    """Samples that rank, and samples that measure: others, unless too few."""
    inputs = [sample.inputs for sample in samples]
    first = min(RANKING, len(inputs) // 3)
    if first < LEAST:
        return inputs, inputs
    return inputs[:first], inputs[first:][-HELD:]


class _Search:
    """The state of one search, in ratios of noise to signal.

    _gain: by how much the ratio falls with more bits for a candidate, when last
    simulated.  _level: the ratio when MOST were last simulated.  _now: the present
    ratio.  _alone: the ratio of the float network with nothing else rounded.
    """

    def __init__(
        self,
        meter: Meter,
        bench: AnyBench,
        graph: Graph,
        table: ScaleTable,
        goal: RefineSettings,
        tick: Callable[..., None],
    ) -> None:
        """meter, bench: on samples that rank, and that measure.  tick: for each run."""
        self._graph, self._table, self._goal = graph, table, goal
        self._meter, self._bench, self._tick = meter, bench, tick
        self._group_of = groups_of(graph, table.tensors)
        wide = with_wide_weights(table, graph, self._meter.layers)
        self._layers = {
            weights_of(name): name
            for name in self._meter.layers
            if wide.layers[name].bits == WIDE != table.layers[name].bits
        }
        groups = [
            group
            for group, names in self._meter.groups.items()
            if all(table.tensors[name].bits <= NARROW for name in names)
        ]
        wanted = dict.fromkeys(groups, INT16_BITS)
        self._int16 = with_bits(table, graph, self._group_of, wanted).tensors
        self._floats: Chosen = dict.fromkeys(groups, FLOAT)
        able = {group for group in groups if self._kind(group) == INT16}
        pairs = both_ends(graph, self._group_of, able)
        self._left: list[Candidate] = [*((group,) for group in groups), *pairs]
        self._costs = Costs(graph, self._group_of)
        self._gain: dict[Candidate, float] = {}
        self._alone: dict[Candidate, float] = {}
        self._level = self._now = math.inf
        self._plain: Figures | None = None
        self._plain_cost = 1.0

    def run(self) -> Found:
        """Search until the goal is reached or nothing gains, then drop what it can."""
        plain = self._verified({}, (), "")
        simulated, ceiling = self._simulated([{}, self._floats])
        self._now = ratio_of(simulated)
        alone = self._meter.alone(runs=MOST * RANKING, watch=self._tick)
        layers = self._layers.values()
        weights = self._meter.alone_in_weights(layers, watch=self._tick)
        alone |= {weights_of(name): each for name, each in weights.items()}
        worst = sorted(weights, key=lambda name: weights[name])[:WORST]
        self._left += ((weights_of(name),) for name in worst)
        self._alone = {
            each: sum(ratio_of(alone[group]) for group in each) for each in self._left
        }
        curve = [replace(plain, predicted_db=simulated)]
        while not self._enough(curve[-1]) and (each := self._next(curve[-1])):
            self._left.remove(each)
            step = self._with(curve[-1], each)
            if step is not None:
                self._left = [c for c in self._left if set(c).isdisjoint(each)]
                (simulated,) = self._simulated([step.chosen])
                curve.append(replace(step, predicted_db=simulated))
                self._now = ratio_of(simulated)
        best = curve[-1]
        if not self._enough(best):
            fit = [step for step in curve if not step.losses]  # the plain table is
            most = max(step.sqnr_db for step in fit)
            best = next(s for s in fit if s.sqnr_db >= most - AS_GOOD_DB)
            if rank_figures([plain.figures, best.figures], 0).advised == 0:
                best = curve[0]
        fewer = list(self._fewer(best))
        best = fewer[-1] if fewer else best
        target = self._goal.target_sqnr
        return Found(
            table=self._table_of(best.chosen),
            curve=(*curve, *fewer),
            best=best,
            tensors={**self._meter.groups, **{key: (key,) for key in self._layers}},
            ceiling_db=ceiling,
            reached=(target is None or best.worst_db >= target)
            and self._affordable(best),
        )

    def _enough(self, step: Step) -> bool:
        target = self._goal.target_sqnr
        if target is None or step.losses:
            return False
        return step.worst_db >= target + MARGIN_DB

    def _affordable(self, step: Step) -> bool:
        goal = self._goal
        slow = goal.max_ms is not None and (step.figures.ms or 0.0) > goal.max_ms
        return not slow and (goal.max_cost is None or step.cost <= goal.max_cost)

    def _next(self, step: Step) -> Candidate | None:
        """What to give more bits next; None if nothing is worth it.

        Errors of several tensors may cancel, so that none alone seems to gain although
        all together do. Then it is the one that adds most noise alone.
        """
        anew = self._now * FALLEN <= self._level
        if anew:
            self._level = self._now
            looked = self._ranked(step, self._alone)[:MOST]
        else:
            looked = self._ranked(step, self._gain)[:NEXT]
        trials = [step.chosen, *({**step.chosen, **self._kinds(c)} for c in looked)]
        before, *after = map(ratio_of, self._simulated(trials, count=FEW))
        for each, ratio in zip(looked, after, strict=True):
            self._gain[each] = self._now * (1 - ratio / before) if before else 0.0
        gains = {each: self._gain[each] for each in looked}
        ranked = self._ranked(step, gains) or self._ranked(step, self._gain)
        return next(iter(ranked or self._ranked(step, self._alone)), None)

    def _ranked(self, step: Step, gains: Mapping[Candidate, float]) -> list[Candidate]:
        """What gains enough and is affordable, the best first."""
        least = self._now * (1 - ratio_of(NOTHING_DB))
        found = [each for each in self._left if gains.get(each, 0.0) > least]
        goal = self._goal
        if goal.max_cost is None and goal.max_ms is None:
            return sorted(found, key=lambda each: -gains[each] / len(each))
        most = math.inf if goal.max_cost is None else goal.max_cost
        prices = {
            each: self._costs.more(step.chosen, self._kinds(each)) / self._plain_cost
            for each in found
        }
        found = [each for each in found if step.cost + prices[each] <= most]
        return sorted(found, key=lambda each: -gains[each] / prices[each])

    def _with(self, step: Step, each: Candidate) -> Step | None:
        """Give a candidate more bits; None if it cannot compile or costs too much.

        Steps that cannot read int16 read a copy of 8 bits; then float32 may do better.
        """
        kinds = self._kinds(each)
        kind = kinds[each[0]]
        promised = db_of(self._now - self._gain.get(each, 0.0)) - db_of(self._now)
        try:
            found = self._verified({**step.chosen, **kinds}, each, kind)
            missing = promised - (found.sqnr_db - step.sqnr_db)
            far = kind == INT16 and missing > max(promised / 2, PROMISED_DB)
            if far and self._copied(found):
                chosen = {**step.chosen, **dict.fromkeys(each, FLOAT)}
                other = self._verified(chosen, each, FLOAT)
                better = other.sqnr_db - found.sqnr_db > missing / 2
                found = other if better and self._affordable(other) else found
        except CompileError:
            return None
        return found if self._affordable(found) else None

    def _copied(self, step: Step) -> bool:
        """True if what changed is int16, of which something reads an 8-bit copy."""
        names = [name for group in step.changed for name in self._meter.groups[group]]
        steps = lower(self._graph, self._table_of(step.chosen)).ops
        return any(isinstance(op, RequantizeOp) and op.name in names for op in steps)

    def _fewer(self, step: Step) -> Iterator[Step]:
        """Take bits back from one group after another while the rest is as good."""
        enough = self._enough(step)
        least = step.sqnr_db - AS_GOOD_DB
        trials = [_without(step.chosen, gone) for gone in step.chosen]
        found = self._simulated(trials, count=FEW) if len(trials) > 1 else ()
        for _, gone in sorted(zip(found, step.chosen, strict=False), reverse=True):
            fewer = self._verified(_without(step.chosen, gone), (gone,), INT8)
            # An 8-bit copy may cost more than the bits saved.
            if fewer.cost >= step.cost or not self._affordable(fewer):
                continue
            good = self._enough(fewer) if enough else fewer.sqnr_db >= least
            lost = changes(step.figures, fewer.figures)
            worse = any(lost[name].loses for name in fewer.figures.task_names)
            if not good or fewer.losses or worse:
                return
            step = fewer
            yield step

    def _kinds(self, each: Candidate) -> Chosen:
        """What the groups of a candidate get."""
        return {group: self._kind(group) for group in each}

    def _kind(self, group: str) -> str:
        """INT16 if accumulators allow a group more than 8 bits, else FLOAT."""
        if group in self._layers:
            return WEIGHTS16
        names = self._meter.groups[group]
        return INT16 if all(self._int16[n].bits > NARROW for n in names) else FLOAT

    def _simulated(
        self, trials: Sequence[Chosen], *, count: int | None = None
    ) -> list[float]:
        """The simulated dB of each trial, on so many samples, None for all."""
        settings, wide = [], []
        for chosen in trials:
            scales = dict(self._meter.plain)
            wide.append(self._wide(chosen))
            for group, kind in chosen.items():
                for name in self._meter.groups.get(group, ()):
                    scales[name] = self._int16[name]
                    if kind == FLOAT:
                        del scales[name]
            settings.append(scales)
        return self._meter.sqnr(settings, wide, count=count, watch=self._tick)

    def _wide(self, chosen: Chosen) -> frozenset[str]:
        """The layers with weights of int16."""
        return frozenset(self._layers[key] for key in chosen if key in self._layers)

    def _verified(self, chosen: Chosen, changed: Candidate, to: str) -> Step:
        """Measure a choice with the int8 library.  CompileError."""
        found = self._bench.measure(self._table_of(chosen))
        if self._plain is None:
            self._plain, self._plain_cost = found, found.cost
        gains = changes(self._plain, found)
        return Step(
            changed=changed,
            to=to,
            chosen=chosen,
            figures=found,
            cost=found.cost / self._plain_cost,
            losses=tuple(name for name, gain in gains.items() if gain.loses),
        )

    def _table_of(self, chosen: Chosen) -> ScaleTable:
        bits = {group: INT16_BITS for group, kind in chosen.items() if kind == INT16}
        floats = [group for group, kind in chosen.items() if kind == FLOAT]
        table = with_bits(self._table, self._graph, self._group_of, bits)
        table = in_float32(table, self._group_of, floats) if floats else table
        return with_wide_weights(table, self._graph, self._wide(chosen))


def _without(chosen: Chosen, gone: str) -> Chosen:
    return {group: kind for group, kind in chosen.items() if group != gone}


def ratio_of(decibels: float) -> float:
    """The ratio of noise to signal."""
    return float(10 ** (-decibels / 10))


def db_of(ratio: float) -> float:
    """The inverse of ratio_of()."""
    return -10 * math.log10(ratio) if ratio > 0 else math.inf
