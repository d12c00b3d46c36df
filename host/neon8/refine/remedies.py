# SPDX-License-Identifier: Apache-2.0
"""Remedies: changes of a scale table, each compiled, run and measured.

The int8 library runs them on the samples of the diagnosis, so a gain is exactly what
the device would gain on these samples.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from shlex import quote

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.recipe.lattice_step import steps_of
from neon8.calibrate.run.collector import Collector, open_network
from neon8.calibrate.solve import solve_quietly
from neon8.calibrate.thresholds.guards import Range
from neon8.data.samples import Sample
from neon8.errors import CompileError
from neon8.evaluate.measure import AnyBench, Figures, sqnr_of
from neon8.evaluate.ranking import changes
from neon8.graph.onnx_file import Shapes
from neon8.ir.groups import groups_of
from neon8.quant.grid import Grid, ends, on_grid
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.scale_table import LATTICE, NARROW, NEAREST, LayerScale, ScaleTable
from neon8.quant.weights import weight_scales
from neon8.refine.candidates import INT16_BITS
from neon8.refine.inner import Pair
from neon8.refine.split import Layer, Sums
from neon8.rewrite.bits import in_float32, with_bits

NARROWER = (0.5, 0.7, 0.85)
"""Fractions of a range that are tried in its place."""
SAME = 0.02
"""Ranges that differ by less of their width are the same."""
DEFAULT = frozenset(
    {"step", "equalized", "absorbed", "averaged", "reserve", "corrected"}
)
"""Reason codes of what calibration does by default."""
LEAST_GAIN = 0.1
"""In dB; a smaller gain is no help."""
SURE = (3, 2, 2)
"""By price: how many standard errors a gain must exceed. Ranges and biases are chosen
on the very samples that judge them, and there are many of them."""
WORTH = (0.0, 1.0, 3.0)
"""By price, in dB: how much more than a cheaper one a remedy must gain."""
DEARER = (1.0, 1.5, 3.0)
"""By price: how many times as much as a free one it must gain."""
ENOUGH_DB = 50.0
"""What the network has beyond that shows in no output."""

Apply = Callable[[ScaleTable], ScaleTable]


def unchanged(table: ScaleTable) -> ScaleTable:
    """The table as it is."""
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a table, or layers kept in float32.

    target: the tensor or layer that it is for.  kind: in a word.  how: the command that
    makes it, without file names, which a Diagnosis adds.  price: time on the device, 0
    for none, 1 for int16, 2 for float32.
    """

    target: str
    kind: str
    how: str
    price: int = 0
    apply: Apply = unchanged
    keep_float: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change that was measured.  The first four fields are those of Change.

    sqnr_db: of the network with it.  gain_db: over the network without it.  Both are
    None if it does not compile; failure says why.  error_db: standard error of the
    gain, None if unknown, as with one sample.  cost: of the network with it, over that
    without it.  losses: what it is sure to lose in, an output or what the network is
    for.
    """

    target: str
    kind: str
    how: str
    price: int
    sqnr_db: float | None = None
    gain_db: float | None = None
    error_db: float | None = None
    cost: float | None = None
    losses: tuple[str, ...] = ()
    failure: str | None = None

    @property
    def helps(self) -> bool:
        """True if the gain is large enough, not due to chance, and costs no output."""
        sure = SURE[self.price] * (self.error_db or 0.0)
        return self.gain >= LEAST_GAIN and self.gain > sure and not self.losses

    @property
    def useful(self) -> float:
        """The gain, without what goes beyond ENOUGH_DB."""
        if self.sqnr_db is None or self.sqnr_db <= ENOUGH_DB:
            return self.gain
        before = 0.0 if math.isinf(self.sqnr_db) else self.sqnr_db - self.gain
        return min(self.gain, max(0.0, ENOUGH_DB - before))

    @property
    def worth(self) -> float:
        """The gain for its price."""
        return self.useful / DEARER[self.price]

    @property
    def gain(self) -> float:
        """gain_db, or -inf for what does not compile."""
        return -math.inf if self.gain_db is None else self.gain_db


@dataclass(frozen=True, slots=True)
class Trials:
    """Measures changes on a network.

    taken: changes that are made in any case.  before: what the table gives with these.
    """

    table: ScaleTable
    bench: AnyBench
    before: Figures
    taken: tuple[Change, ...] = ()

    @property
    def sqnr_db(self) -> float:
        """SQNR with the changes taken, in dB."""
        return self.before.sqnr_db

    def measure(self, change: Change) -> Remedy:
        """Measure one more change."""
        remedy = Remedy(
            target=change.target,
            kind=change.kind,
            how=change.how,
            price=change.price,
        )
        try:
            after = self._run(change)
        except CompileError as error:
            return replace(remedy, failure=error.text)
        reached, gains = after.sqnr_db, changes(self.before, after)
        same = reached == self.sqnr_db  # as where both are infinite
        return replace(
            remedy,
            sqnr_db=reached,
            gain_db=0.0 if same else reached - self.sqnr_db,
            error_db=gain_error(self.before.squares, after.squares),
            cost=after.cost / self.before.cost if self.before.cost else None,
            losses=tuple(name for name, gain in gains.items() if gain.loses),
        )

    def take(self, change: Change) -> "Trials":
        """Make one more change in any case.  CompileError."""
        return replace(self, before=self._run(change), taken=(*self.taken, change))

    def _run(self, change: Change) -> Figures:
        """`before` with one more change.  CompileError."""
        all_of_them = (*self.taken, change)
        table = reduce(lambda done, each: each.apply(done), all_of_them, self.table)
        keep = frozenset().union(*(each.keep_float for each in all_of_them))
        return self.bench.measure(table, keep_float=keep)


def best(remedies: Iterable[Remedy]) -> list[Remedy]:
    """The remedy to take for each target that one helps, the worthiest first.

    It is the one that gains most, unless a cheaper one gains nearly as much.
    """
    chosen: dict[str, Remedy] = {}
    for each in sorted(remedies, key=lambda each: each.price):
        if each.helps:
            other = chosen.get(each.target)
            same = other is not None and other.price == each.price
            more = 0.0
            if other is not None and not same:
                times = DEARER[each.price] / DEARER[other.price]
                more = max(WORTH[each.price], (times - 1) * other.useful)
            if other is None or each.useful > other.useful + more:
                chosen[each.target] = each
    return sorted(chosen.values(), key=lambda each: -each.worth)


def gain_error(before: DoubleArray, after: DoubleArray) -> float | None:
    """The standard error of the gain, by leaving out each sample once (jackknife).

    before, after: (samples, outputs, 2).  None if unknown: with one sample, or
    without any loss.
    """
    count = len(before)
    if count == 1:
        return None
    left = [
        [sqnr_of(each.sum(axis=0) - each[at]) for at in range(count)]
        for each in (before, after)
    ]
    if not np.isfinite(left).all():
        return None
    gains = np.array(left[1]) - left[0]
    return float(np.sqrt((count - 1) * gains.var()))


def of_tensor(pair: Pair, name: str, seen: Mapping[str, Range]) -> Iterator[Change]:
    """Other grids for a tensor and those that share its scale.

    seen: least and largest value of each tensor, offsets and factors removed.
    """
    groups = groups_of(pair.graph, pair.table.tensors)
    group = groups[name]
    shared = [other for other, its in groups.items() if its == group]
    entry = pair.table.tensors[name]
    ranges = [seen[other] for other in shared if other in seen]
    low = min(0.0, *(lo for lo, _ in ranges))
    high = max(0.0, *(hi for _, hi in ranges))

    def ranged(kind: str, lo: float, hi: float) -> Change:
        limits = {"min": float(f"{lo:.6g}"), "max": float(f"{hi:.6g}")}
        text = json.dumps({"tensors": {name: limits}})
        apply = partial(_ranged, names=shared, lo=lo, hi=hi)
        return Change(
            target=name,
            kind=kind,
            how=f"calibrate --override ranges.json  # which holds {text}",
            apply=apply,
        )

    if _differ((low, high), ends(entry)):
        yield ranged("the range seen here", low, high)
    for part in NARROWER:
        yield ranged("a narrower range", *(part * end for end in ends(entry)))
    if entry.bits < INT16_BITS:
        yield wider(pair, [name], target=name)
    yield Change(
        target=name,
        kind="float32",
        how=f"calibrate --precision {quote(f'float:{name}')}",
        price=2,
        apply=lambda table: in_float32(table, groups, [group]),
    )


def wider(pair: Pair, names: Sequence[str], *, target: str) -> Change:
    """int16 for tensors and those that share their scales."""
    groups = groups_of(pair.graph, pair.table.tensors)
    wanted = {groups[name]: INT16_BITS for name in names}
    options = [f"--precision {quote(f'int16:{name}')}" for name in names]
    return Change(
        target=target,
        kind="int16",
        how=" ".join(["calibrate", *options]),
        price=1,
        apply=lambda table: with_bits(table, pair.graph, groups, wanted),
    )


def recipe(
    pair: Pair, samples: Iterable[Sample], shapes: Shapes | None
) -> Iterator[Change]:
    """The default recipe, for a table without any of it.

    It brings steps and bias corrections, and the tensors of which it changed something;
    all others stay as they are.  shapes: as the user gives them.
    """
    codes = {code for entry in pair.table.tensors.values() for code in entry.reasons}
    codes |= {code for entry in pair.table.layers.values() for code in entry.reasons}
    if codes & DEFAULT:
        return
    file, mixed = pair.network.file, pair.network.mixed
    collector = Collector(
        open_network(file.path, shapes=shapes) if mixed else open_network(file)
    )
    for sample in samples:
        collector.add(sample, sample.digest)
    made = solve_quietly(collector.result(), pair.graph)
    equal = {
        name: each
        for name, each in made.tensors.items()
        if DEFAULT.intersection(each.reasons)
    }
    yield Change(
        target="the network",
        kind="the default recipe",
        how="calibrate  # without --plain",
        apply=lambda table: replace(
            table,
            tensors={**table.tensors, **equal},
            layers={**table.layers, **made.layers},
        ),
    )


def _ranged(
    table: ScaleTable, *, names: Iterable[str], lo: float, hi: float
) -> ScaleTable:
    """Let the grids of some tensors cover another range."""
    tensors = dict(table.tensors)
    for name in names:
        if name not in tensors:
            continue
        entry = tensors[name]
        if lo < 0 and entry.scheme == "unsigned":
            entry = replace(entry, scheme="asymmetric")
        scale, zero_point = Grid(entry.scheme, entry.bits).cover(lo, hi)
        scale = max(scale, np.float32(SMALLEST_SCALE))
        tensors[name] = on_grid(entry, scale, zero_point, bits=entry.bits)
    return replace(table, tensors=tensors)


def _differ(one: Range, other: Range) -> bool:
    width = max(other[1] - other[0], SMALLEST_SCALE)
    return any(abs(a - b) > SAME * width for a, b in zip(one, other, strict=True))


def of_layer(layer: Layer, sums: Sums, table: ScaleTable) -> Iterator[Change]:
    """Other weight scales or another bias for a layer, or the layer in float32."""
    name = layer.op.name
    scales = solved_scales(layer, table)
    own = np.array(table.layers[name].weight_scales)
    if scales is not None and np.abs(own / scales - 1).max() > SAME:

        def solved(table: ScaleTable) -> ScaleTable:
            entry = replace(
                table.layers[name],
                weight_scales=tuple(scales.tolist()),
                rounding=NEAREST,
                levels=b"",
            )
            return replace(table, layers={**table.layers, name: entry})

        yield Change(
            target=name,
            kind="weight scales solved again",
            how="calibrate",
            apply=solved,
        )
    means = sums.drift / max(sums.count, 1)

    def corrected(table: ScaleTable) -> ScaleTable:
        entry = with_bias(layer, table.layers[name], means)
        return replace(table, layers={**table.layers, name: entry})

    yield Change(
        target=name,
        kind="bias correction",
        how="calibrate --thorough",
        apply=corrected,
    )
    yield Change(
        target=name,
        kind="float32",
        how=f"compile --keep-float {quote(name)}",
        price=2,
        keep_float=frozenset({name}),
    )


def solved_scales(layer: Layer, table: ScaleTable) -> DoubleArray | None:
    """The weight scales that calibration gives; None where it has others on purpose."""
    node, entry = layer.node, table.layers[layer.op.name]
    if entry.bits > NARROW or entry.rounding == LATTICE:
        return None
    source = table.tensors[entry.input]
    made = weight_scales(
        layer.op.name,
        source=entry.input,
        absmax=np.abs(node.weight).max(axis=(1, 2, 3)),
        bias=node.bias,
        input_scale=source.scale,
        input_bits=source.bits,
        groups=node.groups,
        steps=steps_of(node),
    )
    return np.array(made.weight_scales)


def with_bias(layer: Layer, entry: LayerScale, means: DoubleArray) -> LayerScale:
    """The entry with a bias that removes the mean errors of the channels, (O,)."""
    errors = means / layer.factors
    phases = layer.phases
    by_channel = errors.reshape(layer.op.groups, phases, -1).mean(axis=1).reshape(-1)
    present = np.array(entry.bias_correction or np.zeros(by_channel.shape))
    values = (present - by_channel).astype(np.float32)
    return replace(entry, bias_correction=tuple(values.tolist()))
