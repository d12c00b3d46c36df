# SPDX-License-Identifier: Apache-2.0
"""More bits for the tensors and weights that need them, up to an accuracy or a cost.

One scale group after another gets int16, or float32 where int16 does not help, or one
layer after another weights of int16: what gains most by simulation, or most for its
cost. Each step is compiled and run by the int8 library on other samples, and their SQNR
decides. The cost is the library's figure for the compiled network, relative to that of
the plain table. What is sure to be worse than the plain table in any output, or in what
the network is for, is not taken, nor is a gain that may be chance:
neon8.evaluate.ranking.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from neon8.compile.compiler import compile_model
from neon8.compile.lower import lower
from neon8.data.arrays import Arrays
from neon8.data.few import Kept
from neon8.data.inputs import as_inputs
from neon8.errors import CompileError
from neon8.evaluate.measure import Bench, Figures, Judge, before_softmax, cost_of
from neon8.evaluate.ranking import changes, rank_figures
from neon8.evaluate.tasks import Setup
from neon8.files import write_atomic
from neon8.graph.maker import maker
from neon8.graph.onnx_file import ModelLike
from neon8.ir.graph import Graph
from neon8.ir.groups import groups_of
from neon8.operators.conversion import RequantizeOp
from neon8.quant.scale_table import NARROW, PRECISIONS, WEIGHTS16, WIDE, ScaleTable
from neon8.refine.network import Network
from neon8.refine.sensitivity import Meter, Watch, nobody
from neon8.rewrite.bits import in_float32, with_bits, with_wide_weights
from neon8.runtime import Model
from neon8.settings.stages import DEFAULTS, JudgeSettings, RefineSettings
from neon8.text import columns, decimals

INT16, FLOAT = PRECISIONS
INT8 = "int8"
INT16_BITS = 16

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
"""Groups simulated anew at each step; MOST of them once the noise has halved."""
MOST = 40
"""Of more groups, those that add most noise alone are simulated."""
PRICED = 16
"""The groups with the largest gains, whose cost is measured; and the layers that lose
most by their weights, which are candidates."""
CHEAPEST = 1e-6
"""The least cost that a group counts as."""

Chosen = Mapping[str, str]
"""Scale group -> INT16 or FLOAT, or weights_of() a layer -> WEIGHTS16, in the order in
which they were chosen."""


def weights_of(layer: str) -> str:
    """What the weights of a layer are called, beside the groups of tensors."""
    return f"{WEIGHTS16}:{layer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A point of the curve: what has more bits, and what that gives.

    group, to: what changed, and to INT16, FLOAT, WEIGHTS16 or INT8; "" at the start.
    figures: measured with the compiled network.  cost: relative to the plain table.
    losses: in what this is sure to be worse than the plain table.  predicted_db: SQNR
    by simulation, on the samples that rank; NaN for what was taken back.
    """

    group: str
    to: str
    chosen: Chosen
    figures: Figures
    cost: float
    losses: tuple[str, ...] = ()
    predicted_db: float = math.nan

    @property
    def sqnr_db(self) -> float:
        """SQNR; of several outputs the mean of their ratios counts."""
        return self.figures.sqnr_db

    @property
    def worst_db(self) -> float:
        """SQNR of the output that loses most."""
        return self.figures.worst[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of the search.

    table: of the best step.  curve: all steps, from the plain table on.  tensors: scale
    group -> its rounded tensors, or weights_of() a layer -> that.  ceiling_db: with all
    of them in float32 and weights of 8 bits, by simulation.  reached: True if the goal
    was.
    """

    table: ScaleTable
    curve: tuple[Step, ...]
    best: Step
    tensors: Mapping[str, tuple[str, ...]]
    ceiling_db: float
    reached: bool


def more_bits(
    network: Network,
    table: ScaleTable,
    samples: Sequence[Kept],
    goal: RefineSettings,
    *,
    judge: JudgeSettings = DEFAULTS.judge,
    watch: Watch = nobody,
) -> Found:
    """Give tensors more bits until the goal is reached, and write the curve.

    samples: observed ones.  watch: told how many runs of the network are done.
    CompileError: the network or the plain table is refused.  DataError.
    """
    ranking, held = divided(samples)
    graph = before_softmax(network.graph)
    setup = Setup.of(judge, as_inputs(network.graph), partial(maker, network.file))
    found = search(
        network.file,
        graph,
        table,
        goal,
        ranking=ranking,
        held=held,
        judge=partial(Judge.of, network.graph, setup),
        watch=watch,
    )
    if goal.curve is not None:
        content = {
            "format": "neon8 precision",
            "version": 1,
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


def search(
    model: ModelLike,
    graph: Graph,
    table: ScaleTable,
    goal: RefineSettings,
    *,
    ranking: Sequence[Arrays],
    held: Sequence[Arrays],
    judge: Callable[[Arrays], Judge | None] = lambda _: None,
    watch: Watch = nobody,
) -> Found:
    """Give more bits where they gain most, until the goal is reached or nothing gains.

    graph: of the file, as before_softmax() leaves it.  ranking: samples by which groups
    are ranked; held: by which the compiled network is measured.  judge: made from the
    float outputs of a sample.
    """
    return _Search(model, graph, table, goal, ranking, held, judge, watch).run()


class _Search:
    """The state of one search, in ratios of noise to signal.

    _gain: by how much the ratio falls with more bits for a group, when last simulated.
    _level: the ratio when all groups were last simulated.  _now: the present ratio.
    _alone: the ratio of the float network with one group rounded.
    """

    def __init__(
        self,
        model: ModelLike,
        graph: Graph,
        table: ScaleTable,
        goal: RefineSettings,
        ranking: Sequence[Arrays],
        held: Sequence[Arrays],
        judge: Callable[[Arrays], Judge | None],
        watch: Watch,
    ) -> None:
        self._graph, self._table, self._goal = graph, table, goal
        self._watch, self._runs = watch, count(1)
        self._group_of = groups_of(graph, table.tensors)
        self._meter = Meter(model, graph, table, ranking)
        exact = [self._meter.wanted(sample) for sample in held]
        self._bench = Bench(
            graph=graph,
            samples=held,
            wanted=exact,
            tick=self._tick,
            judge=judge(exact[0]),
        )
        wide = with_wide_weights(table, graph, self._meter.layers)
        self._layers = {
            weights_of(name): name
            for name in self._meter.layers
            if wide.layers[name].bits == WIDE != table.layers[name].bits
        }
        self._left = [
            group
            for group, names in self._meter.groups.items()
            if all(table.tensors[name].bits <= NARROW for name in names)
        ]
        wanted = dict.fromkeys(self._left, INT16_BITS)
        self._int16 = with_bits(table, graph, self._group_of, wanted).tensors
        self._floats: Chosen = dict.fromkeys(self._left, FLOAT)
        self._gain: dict[str, float] = {}
        self._alone: dict[str, float] = {}
        self._level = self._now = math.inf
        self._prices: dict[str, float] = {}
        self._plain: Figures | None = None
        self._plain_cost = 1.0

    def run(self) -> Found:
        """Search until the goal is reached or nothing gains, then drop what it can."""
        self._watch(0, None)
        plain = self._verified({}, "", "")
        simulated, ceiling = self._simulated([{}, self._floats])
        self._now = ratio_of(simulated)
        alone = self._meter.alone(runs=MOST * RANKING, watch=lambda *_: self._tick())
        layers = self._layers.values()
        weights = self._meter.alone_in_weights(layers, watch=lambda *_: self._tick())
        alone |= {weights_of(name): each for name, each in weights.items()}
        worst = sorted(weights, key=lambda name: weights[name])[:PRICED]
        self._left += map(weights_of, worst)
        self._alone = {group: ratio_of(each) for group, each in alone.items()}
        curve = [replace(plain, predicted_db=simulated)]
        while not self._enough(curve[-1]) and (group := self._next(curve[-1])):
            self._left.remove(group)
            step = self._with(curve[-1], group)
            if step is not None:
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
            reached=target is None or best.worst_db >= target,
        )

    def _enough(self, step: Step) -> bool:
        target = self._goal.target_sqnr
        if target is None or step.losses:
            return False
        return step.worst_db >= target + MARGIN_DB

    def _affordable(self, step: Step) -> bool:
        return self._goal.max_cost is None or step.cost <= self._goal.max_cost

    def _next(self, step: Step) -> str | None:
        """The group to give more bits next; None if none is worth it.

        Errors of several tensors may cancel, so that none alone seems to gain although
        all together do. Then it is the one that adds most noise alone.
        """
        looked = sorted(self._left, key=lambda group: -self._alone[group])[:MOST]
        if self._now * 2 > self._level:
            ranked = (*self._ranked(step, self._gain), *self._ranked(step, self._alone))
            looked = list(dict.fromkeys(ranked))[:NEXT]
        else:
            self._level = self._now
        trials = [{**step.chosen, group: self._kind(group)} for group in looked]
        for group, found in zip(looked, self._simulated(trials), strict=True):
            self._gain[group] = self._now - ratio_of(found)
        return next(
            iter((*self._ranked(step, self._gain), *self._ranked(step, self._alone))),
            None,
        )

    def _ranked(self, step: Step, gains: Mapping[str, float]) -> list[str]:
        """Groups that gain enough and are affordable, the best first."""
        least = self._now * (1 - ratio_of(NOTHING_DB))
        found = [group for group in self._left if gains.get(group, 0.0) > least]
        found.sort(key=lambda group: -gains[group])
        most = self._goal.max_cost
        if most is None:
            return found
        found = [g for g in found[:PRICED] if step.cost + self._price(g) <= most]
        return sorted(found, key=lambda g: -gains[g] / self._price(g))

    def _with(self, step: Step, group: str) -> Step | None:
        """Give one more group more bits; None if it cannot compile or costs too much.

        Steps that cannot read int16 read a copy of 8 bits; then float32 may do better.
        """
        kind = self._kind(group)
        promised = db_of(self._now - self._gain.get(group, 0.0)) - db_of(self._now)
        try:
            found = self._verified({**step.chosen, group: kind}, group, kind)
            missing = promised - (found.sqnr_db - step.sqnr_db)
            far = kind == INT16 and missing > max(promised / 2, PROMISED_DB)
            if far and self._copied(found, group):
                chosen = {**step.chosen, group: FLOAT}
                other = self._verified(chosen, group, FLOAT)
                better = other.sqnr_db - found.sqnr_db > missing / 2
                found = other if better and self._affordable(other) else found
        except CompileError:
            return None
        return found if self._affordable(found) else None

    def _copied(self, step: Step, group: str) -> bool:
        """True if a step reads an 8-bit copy of an int16 group."""
        names = self._meter.groups[group]
        steps = lower(self._graph, self._table_of(step.chosen)).ops
        return any(isinstance(op, RequantizeOp) and op.name in names for op in steps)

    def _fewer(self, step: Step) -> Iterator[Step]:
        """Take bits back from one group after another while the rest is as good."""
        enough = self._enough(step)
        least = step.sqnr_db - AS_GOOD_DB
        while len(step.chosen) > 1:
            trials = {
                gone: {g: kind for g, kind in step.chosen.items() if g != gone}
                for gone in step.chosen
            }
            found = zip(self._simulated(list(trials.values())), trials, strict=True)
            gone = max(found)[1]
            fewer = self._verified(trials[gone], gone, INT8)
            # An 8-bit copy may cost more than the bits saved.
            cheaper = fewer.cost < step.cost and self._affordable(fewer)
            good = self._enough(fewer) if enough else fewer.sqnr_db >= least
            lost = changes(step.figures, fewer.figures)
            worse = any(lost[name].loses for name in fewer.figures.task_names)
            if not good or not cheaper or fewer.losses or worse:
                return
            step = fewer
            yield step

    def _kind(self, group: str) -> str:
        """INT16 if accumulators allow a group more than 8 bits, else FLOAT."""
        if group in self._layers:
            return WEIGHTS16
        names = self._meter.groups[group]
        return INT16 if all(self._int16[n].bits > NARROW for n in names) else FLOAT

    def _simulated(self, trials: Sequence[Chosen]) -> list[float]:
        """The simulated dB of each trial."""
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
        return self._meter.sqnr(settings, wide, watch=lambda *_: self._tick())

    def _wide(self, chosen: Chosen) -> frozenset[str]:
        """The layers with weights of int16."""
        return frozenset(self._layers[key] for key in chosen if key in self._layers)

    def _verified(self, chosen: Chosen, group: str, to: str) -> Step:
        """Measure a choice with the int8 library.  CompileError."""
        found = self._bench.measure(self._table_of(chosen))
        if self._plain is None:
            self._plain, self._plain_cost = found, found.cost
        gains = changes(self._plain, found)
        return Step(
            group=group,
            to=to,
            chosen=chosen,
            figures=found,
            cost=found.cost / self._plain_cost,
            losses=tuple(name for name, gain in gains.items() if gain.loses),
        )

    def _price(self, group: str) -> float:
        """The cost that more bits for this group alone add."""
        if group not in self._prices:
            table = self._table_of({group: self._kind(group)})
            with Model.from_bytes(compile_model(self._graph, table)) as model:
                more = cost_of(model) / self._plain_cost - 1
            self._prices[group] = max(more, CHEAPEST)
        return self._prices[group]

    def _table_of(self, chosen: Chosen) -> ScaleTable:
        bits = {group: INT16_BITS for group, kind in chosen.items() if kind == INT16}
        floats = [group for group, kind in chosen.items() if kind == FLOAT]
        table = with_bits(self._table, self._graph, self._group_of, bits)
        table = in_float32(table, self._group_of, floats) if floats else table
        return with_wide_weights(table, self._graph, self._wide(chosen))

    def _tick(self) -> None:
        self._watch(next(self._runs), None)


def ratio_of(decibels: float) -> float:
    """The ratio of noise to signal."""
    return float(10 ** (-decibels / 10))


def db_of(ratio: float) -> float:
    """The inverse of ratio_of()."""
    return -10 * math.log10(ratio) if ratio > 0 else math.inf


def missed(found: Found, goal: RefineSettings) -> str:
    """Why the goal is out of reach, in one line; "" if it is not."""
    if found.reached or goal.target_sqnr is None:
        return ""
    text = f"{goal.target_sqnr:g} dB are out of reach: "
    text += f"{found.best.worst_db:.1f} dB is the best"
    if len(found.best.figures.outputs) > 1:
        text += f", of output {found.best.figures.worst[0]!r},"
    if goal.max_cost is not None:
        text += f" at a cost of up to {goal.max_cost:g}"
    if found.ceiling_db < goal.target_sqnr:
        text += f"; weights of 8 bits alone leave {found.ceiling_db:.1f} dB"
    return text


def as_json(found: Found, goal: RefineSettings) -> dict[str, object]:
    """What --curve writes; None for infinity, which JSON lacks."""

    def finite(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    return {
        "target_sqnr": goal.target_sqnr,
        "max_cost": goal.max_cost,
        "reached": found.reached,
        "ceiling_db": finite(found.ceiling_db),
        "steps": [
            {
                "group": step.group or None,
                "tensors": list(found.tensors.get(step.group, ())),
                "to": step.to or None,
                "sqnr_db": finite(step.sqnr_db),
                "worst_db": finite(step.worst_db),
                "predicted_db": finite(step.predicted_db),
                "tasks": step.figures.task_means,
                "losses": list(step.losses),
                "cost": round(step.cost, 4),
                "chosen": dict(step.chosen),
                "best": step is found.best,
            }
            for step in found.curve
        ],
    }


def as_text(found: Found) -> str:
    """The curve as a table; a star marks the step that was taken."""
    tasks = found.best.figures.task_names
    rows = [
        [
            "*" if step is found.best else "",
            decimals(step.worst_db),
            *(f"{value:.4f}" for value in step.figures.task_means.values()),
            f"{step.cost:.3f}",
            step.to,
            ", ".join(found.tensors.get(step.group, ())),
            ", ".join(step.losses),
        ]
        for step in found.curve
    ]
    several = len(found.best.figures.outputs) > 1
    db = "worst dB" if several else "SQNR dB"
    header = ["", db, *tasks, "cost", "to", "tensors"]
    if any(step.losses for step in found.curve):
        header.append("sure to lose in")
    else:
        rows = [row[:-1] for row in rows]
    return "\n".join(columns(rows, header=header))
