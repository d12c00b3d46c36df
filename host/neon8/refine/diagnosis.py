# SPDX-License-Identifier: Apache-2.0
"""diagnose_model(): where an int8 network loses, why, and what would help.

The samples run through the float network and, step by step, through the int8 one.
losses.py measures each tensor, split.py each convolution by cause, and remedies.py
other scales on the whole network.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neon8 import text
from neon8.arrays import Array, FloatArray
from neon8.calibrate.run.shaped import AtShapes, shapes_of
from neon8.data.arrays import Arrays
from neon8.data.inputs import Shape, batch_of
from neon8.data.samples import Data, Sample
from neon8.errors import CompileError, DataError
from neon8.evaluate.measure import Judge, Sheet, by_shape, sqnr_of
from neon8.evaluate.metrics import by_row, top1
from neon8.evaluate.network import Network, bench_of, judge_of, open_network
from neon8.evaluate.there import checks, with_all_tensors
from neon8.ir.groups import groups_of
from neon8.machines import NATIVE
from neon8.progress import Stages, nobody, through
from neon8.quant import reasons, table_json
from neon8.quant.scale_table import ScaleTable
from neon8.refine import losses, remedies, split
from neon8.refine.inner import Pair, floats, pair, real, steps
from neon8.refine.losses import SampleLoss, Tally, TensorLoss
from neon8.refine.remedies import Change, Remedy, Trials
from neon8.refine.sensitivity import INTEGERS, Meter
from neon8.refine.split import Layer, Split, Sums
from neon8.settings.reader import takes
from neon8.settings.stages import DEFAULTS, JudgeSettings, Settings, TargetSettings
from neon8.settings.words import preprocess_again, shapes_again

CALIBRATION_DATA = "CALIBRATION_DATA"
"""In a command: the samples that the table was made from, which it does not name."""
SAMPLES = 20
"""Enough to rank tensors by."""
RUNS = 800
"""How often the simulated network runs, one tensor after another rounded."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diagnosis(text.Showing):
    """Where an int8 network loses, and what helps.

    n: number of samples.  sqnr_db: of all outputs, before a final Softmax.  agreement:
    percentage of samples with the same largest value in the first output.  tensors,
    layers: in order of execution.  samples: those that lose most.  inside: tensors that
    exist only inside a step, never as int8.  remedies: every change tried alone, the
    best first.  plan: remedies to take together, each measured on top of those before
    it.  guards: a line for each kind in the table; guarded: for each tensor and layer.
    """

    model: str
    n: int
    sqnr_db: float
    agreement: float
    tensors: tuple[TensorLoss, ...]
    layers: tuple[Split, ...]
    samples: tuple[SampleLoss, ...]
    inside: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    plan: tuple[Remedy, ...]
    guards: tuple[str, ...]
    guarded: tuple[str, ...]

    def by_cost(self) -> list[TensorLoss]:
        """The tensors in int8, what costs the network most first."""
        return by_cost(self.tensors)

    def parts(self) -> list[text.Part]:
        """What costs most, and what helps."""
        pairs: list[tuple[str, object]] = [
            ("model", self.model),
            ("n", self.n),
            ("sqnr_db", text.decimals(self.sqnr_db)),
            ("agreement", text.decimals(self.agreement)),
        ]
        costs = [
            (each.name, each.layer, *map(text.decimals, (each.alone_db, each.sqnr_db)))
            for each in self.by_cost()
        ]
        helps = [
            (each.kind, each.target, *map(text.decimals, (each.gain_db, each.sqnr_db)))
            for each in self.plan
        ]
        return [
            text.Fields(pairs),
            text.Table("tensors", costs, ("tensor", "layer", "alone dB", "SQNR dB")),
            text.Table("remedies", helps, ("what", "for", "gain dB", "SQNR dB")),
        ]


def by_cost(tensors: Iterable[TensorLoss]) -> list[TensorLoss]:
    """The tensors in int8, what costs the network most first."""
    rounded = [each for each in tensors if each.alone_db is not None]
    return sorted(rounded, key=lambda each: each.alone_db or 0.0)


@takes("network", "data", "target", "diagnose", "judge")
def diagnose_model(
    model: str | Path,
    table: str | Path | ScaleTable,
    data: Data,
    *,
    progress: Stages = nobody,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Diagnosis:
    """Find out where an int8 network loses, and what helps.

    data: a path, or arrays, see observe_model(); take samples that did not calibrate
    the network. They are all held in memory.  progress: told a stage, how much of it
    is done, and of how much.  All runs here; of another target every inner tensor must
    have the same bytes, or that is a ModelError.  GraphError, TableError, DataError,
    CompileError, SettingsError.
    """
    top = settings.diagnose.top
    scales = table if isinstance(table, ScaleTable) else table_json.load(table)
    network = open_network(
        model, shapes=settings.network.shapes, usual=scales.shapes
    ).runnable(scales)
    part = replace(settings.data, limit=settings.data.limit or SAMPLES)
    given = network.gather(data, replace(settings, data=part))
    run = _Run(network, scales, settings.judge)
    both = run.pair
    for sample in through(given, progress, "samples"):
        run.add(sample)
    if not run.samples:
        raise DataError("no samples to diagnose with")
    layers = {
        name: split.split(layer, run.sums[name]) for name, layer in run.layers.items()
    }
    tensors = _tensors(run, _alone(run, progress))
    inputs_of = [sample.inputs for sample in run.samples]
    if settings.target.target != NATIVE:
        _check_there(run, inputs_of, settings.target, str(model))
    bench = bench_of(
        network,
        inputs_of,
        settings.judge,
        wanted=run.exact,
        labels=[sample.labels for sample in run.samples],
    )
    trials = Trials(scales, bench, run.sheet.figures(bench.cost(scales)))
    changes = _changes(run, tensors, layers, top)
    if top:
        changes += remedies.recipe(both, run.samples, settings.network.shapes)
    tried = [
        (change, trials.measure(change))
        for change in through(changes, progress, "remedies")
    ]
    measured = [each for _, each in tried]
    known = None if isinstance(table, ScaleTable) else table
    spelled = partial(
        _with_files,
        model=Path(model),
        table=known,
        cut=network.cut,
        shapes=shapes_again(settings),
        preprocess=preprocess_again(settings),
    )
    return Diagnosis(
        model=str(model),
        n=run.rows * len(run.samples),
        sqnr_db=trials.sqnr_db,
        agreement=100.0 * run.agreed / run.compared,
        tensors=tensors,
        layers=tuple(layers.values()),
        samples=losses.worst(run.by_sample()),
        inside=both.inside(),
        remedies=tuple(map(spelled, sorted(measured, key=lambda r: -r.worth))),
        plan=tuple(map(spelled, _plan(trials, tried, progress))),
        guards=tuple(reasons.lines(scales)),
        guarded=tuple(_guarded(scales)),
    )


def _check_there(
    run: "_Run", samples: Sequence[Arrays], where: TargetSettings, source: str
) -> None:
    """Compare every inner tensor of a target with this PC's.  ModelError names one."""
    network = run.pair.network
    with checks(where) as check:
        for places in by_shape(samples):
            here = run.pair
            if network.mixed:
                here = pair(network.at(samples[places[0]]), run.pair.table)
            content = with_all_tensors(here.program)
            check(content, [samples[at] for at in places], source)


def _with_files(
    remedy: Remedy,
    *,
    model: Path,
    table: str | Path | None,
    cut: bool,
    shapes: Sequence[str],
    preprocess: Sequence[str],
) -> Remedy:
    """Complete the command, ready to paste but for CALIBRATION_DATA."""
    scales = str(table or f"{model.stem}.scales.json")
    files = {
        "calibrate": ["--data", CALIBRATION_DATA, *preprocess, "-o", scales],
        "compile": ["--scales", scales, "-o", f"{model.stem}.n8", *["--cut"] * cut],
    }
    name, _, options = remedy.how.partition(" ")
    line = shlex.join(["neon8", name, str(model), *shapes, *files[name]])
    return replace(remedy, how=f"{line} {options}")


def _guarded(table: ScaleTable) -> Iterator[str]:
    """'layer 'c': dead:1,4' for each entry that a guard changed."""
    entries = [(f"tensor {n!r}", each.reasons) for n, each in table.tensors.items()]
    entries += [(f"layer {n!r}", each.reasons) for n, each in table.layers.items()]
    for name, codes in entries:
        found = reasons.guards_of(codes)
        if found:
            yield f"{name}: {reasons.condensed(found)}"


def _alone(run: "_Run", progress: Stages) -> dict[str, float]:
    """Tensor -> dB of the output with only its scale group rounded."""
    both = run.pair
    if not any(tensor.dtype in INTEGERS for tensor in both.program.tensors.values()):
        return {}
    samples = [sample.inputs for sample in run.samples]
    meter = Meter(both.network, both.table, samples)
    found = meter.alone(runs=RUNS, watch=partial(progress, "tensors"))
    return {
        name: found[group] for group, names in meter.groups.items() for name in names
    }


@dataclass(slots=True)
class _Here:
    """What a sample of some shape runs through.  judge: None until the first has."""

    pair: Pair
    layers: dict[str, Layer]
    judge: Judge | None = None


class _Run:
    """What is summed up over the samples.

    pair, layers: at the shape of the table, whatever the samples have.
    """

    def __init__(
        self, network: Network, table: ScaleTable, judge: JudgeSettings
    ) -> None:
        self.pair = pair(network, table)
        self.rows = batch_of(self.pair.reference.inputs)
        self._judge = judge
        self.layers: dict[str, Layer] = split.layers(self.pair)

        def at(shapes: dict[str, Shape]) -> _Here:
            here = network.at_shapes(shapes)
            both = self.pair if here is network else pair(here, table)
            if both.forms != self.pair.forms:
                text = "the network has other tensors than at the usual one"
                raise CompileError(f"{network.file.path}: {text}")
            return _Here(both, split.layers(both))

        self._pairs = AtShapes(at)
        self.sums: dict[str, Sums] = {
            name: split.empty(layer) for name, layer in self.layers.items()
        }
        graph = self.pair.graph
        self.tallies: dict[str, Tally] = {
            form: losses.empty(graph.tensors[name].shape[1])
            for form, name in self.pair.forms.items()
        }
        self.samples: list[Sample] = []
        self.exact: list[Arrays] = []
        self.sheet = Sheet()
        self.agreed = self.compared = 0

    def add(self, sample: Sample) -> None:
        """Run a sample through both networks."""
        here = self._pairs.at(shapes_of(sample.inputs), sample.name)
        wanted = floats(here.pair, sample)
        results: dict[str, Array] = {}
        for op, values in steps(here.pair, sample):
            layer = here.layers.get(op.name)
            if layer is not None and layer.op is op:
                x, q = wanted[layer.input], values[op.inputs[0]]
                split.add(self.sums[op.name], layer, x, q)
            self._compare(sample.name, op.output, wanted, values[op.output])
            if op.output in self.pair.program.outputs:
                results[op.output] = values[op.output]
        exact: Arrays = {name: wanted[name] for name in self.pair.graph.outputs}
        self._outputs(here, sample, exact, results)

    def _compare(
        self,
        sample: str,
        form: str,
        wanted: dict[str, FloatArray],
        values: Array,
    ) -> None:
        name = self.pair.forms.get(form)
        if name is None:
            return
        tensor, tally = self.pair.program.tensors[form], self.tallies[form]
        moved = self.pair.factors(name), self.pair.offsets(name)
        losses.add(tally, sample, wanted[name], real(values, tensor, *moved))
        if tensor.dtype in INTEGERS:
            losses.add_grid(tally, wanted[name], tensor, *moved)

    def _outputs(
        self, here: "_Here", sample: Sample, exact: Arrays, given: Arrays
    ) -> None:
        for name, values in exact.items():
            if not np.isfinite(values).all():
                raise DataError(
                    f"{sample.name}: output {name!r} of the float network is not "
                    "finite; check the input's range and the network"
                )
        if here.judge is None:
            labelled = bool(sample.labels)
            here.judge = judge_of(
                here.pair.network, self._judge, exact, labelled=labelled
            )
        self.sheet.judge = here.judge
        self.sheet.add(exact, given, sample.labels)
        first = self.pair.graph.outputs[0]
        pairs = zip(
            by_row(exact[first], self.rows),
            by_row(given[first], self.rows),
            strict=True,
        )
        same = [top1(wanted) == top1(got) for wanted, got in pairs]
        self.agreed, self.compared = self.agreed + sum(same), self.compared + len(same)
        self.samples.append(sample)
        self.exact.append(exact)

    def by_sample(self) -> list[SampleLoss]:
        """The loss of each sample at the outputs."""
        return [
            SampleLoss(sample=sample.name, sqnr_db=sqnr_of(squares))
            for sample, squares in zip(self.samples, self.sheet.squares, strict=True)
        ]


def _tensors(run: _Run, alone: Mapping[str, float]) -> tuple[TensorLoss, ...]:
    """The losses of all tensors that steps make, in order of execution."""
    graph, program = run.pair.graph, run.pair.program
    makers = {name: node.name for node in graph.nodes for name in node.outputs}
    found = []
    for form, name in run.pair.forms.items():
        tally, tensor = run.tallies[form], program.tensors[form]
        if not tally.samples:  # an input that stays as it is
            continue
        bits = run.pair.table.tensors[name].bits if tensor.dtype in INTEGERS else 0
        found.append(
            losses.tensor_loss(
                name,
                tally,
                layer=makers.get(name, ""),
                bits=bits,
                alone_db=alone.get(name),
            )
        )
    return tuple(found)


def _changes(
    run: _Run, tensors: Sequence[TensorLoss], found: dict[str, Split], top: int
) -> list[Change]:
    """What to try for the `top` worst tensors and as many layers."""
    seen = {each.name: _seen(run, each) for each in tensors}
    groups = groups_of(run.pair.graph, run.pair.table.tensors)
    worst: dict[str, str] = {}
    for each in by_cost(tensors):
        worst.setdefault(groups[each.name], each.name)
    names = list(worst.values())[:top]
    changes = [
        change for name in names for change in remedies.of_tensor(run.pair, name, seen)
    ]
    if len(names) > 1:  # where the loss is spread, no tensor alone gives much
        target = f"these {len(names)} tensors"
        changes.append(remedies.wider(run.pair, names, target=target))
    for one in sorted(found.values(), key=_own_cost)[:top]:
        layer, sums = run.layers[one.layer], run.sums[one.layer]
        changes += remedies.of_layer(layer, sums, run.pair.table)
    return changes


def _seen(run: _Run, loss: TensorLoss) -> tuple[float, float]:
    """The range of a tensor, offsets and factors removed."""
    factors = run.pair.factors(loss.name).reshape(-1)
    offsets = run.pair.offsets(loss.name).reshape(-1)
    tally = run.tallies[_form(run.pair, loss.name)]
    low, high = ((end - offsets) / factors for end in (tally.low, tally.high))
    return float(low.min()), float(high.max())


def _form(both: Pair, name: str) -> str:
    return next(form for form, other in both.forms.items() if other == name)


def _own_cost(each: Split) -> float:
    """Sort key: the layers that another bias or other weights improve most first."""
    return min(each.weights.sqnr_db, each.bias.sqnr_db, each.bias_shift.sqnr_db)


def _plan(
    trials: Trials, tried: Sequence[tuple[Change, Remedy]], progress: Stages
) -> tuple[Remedy, ...]:
    """Take the best remedy for each target, one after another, while it helps.

    Each is measured again after those before it: alone it may be lost in other noise,
    and it may correct what is corrected already.
    """
    best = remedies.best(each for _, each in tried)
    order = [each.target for each in best] + [change.target for change, _ in tried]
    plan: list[Remedy] = []
    for target in through(list(dict.fromkeys(order)), progress, "one after another"):
        changes = [change for change, _ in tried if change.target == target]
        found = [trials.measure(change) for change in changes]
        for chosen in remedies.best(found):  # one, or none
            trials = trials.take(changes[found.index(chosen)])
            plan.append(chosen)
    return tuple(plan)
