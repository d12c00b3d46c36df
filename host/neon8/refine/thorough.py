# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate --thorough: weights and biases chosen on samples, if it helps.

Some samples choose, others judge: the table of each choice is compiled and run by the
library on the samples held back. The table as it was stays unless another is sure to be
better, in SQNR or in what the network is for, and to lose in no output:
neon8.evaluate.ranking.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray
from neon8.calibrate.precision import finished
from neon8.calibrate.run.reference import Reference
from neon8.calibrate.run.shaped import shapes_of
from neon8.calibrate.statistics.observer import pre_activations
from neon8.data.few import Kept
from neon8.evaluate.measure import Figures, before_softmax
from neon8.evaluate.network import Network, bench_of
from neon8.evaluate.ranking import Ranking, rank_figures
from neon8.evaluate.runner import as_float32
from neon8.graph.onnx_file import OnnxFile
from neon8.ir.graph import Graph, nchw
from neon8.ir.groups import groups_of
from neon8.progress import Count, nobody
from neon8.quant.scale_table import ScaleTable
from neon8.refine.curve import with_losses
from neon8.refine.inputs import some_pixels
from neon8.refine.layerwise import BUDGET, Choice, Seen, chosen, layers_of
from neon8.settings.stages import DEFAULTS, JudgeSettings
from neon8.text import counted, decimals

CHOOSING = 50
"""Samples that choose; more change little."""
JUDGING = 50
"""Samples that judge at most; at least a fifth of all, and FEWEST if possible."""
FEWEST = 8
SAMPLES = CHOOSING + JUDGING

DEFAULT = "default"
CHOICES = {
    "means": Choice(rounding=False, means=True),
    "levels": Choice(rounding=True, means=False),
    "levels and means": Choice(rounding=True, means=True),
}

THOROUGH, KEPT = "thorough", "default"
"""Reason codes of a table: a choice was better than the default, or none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of one choice.

    figures: on the samples held back.
    """

    name: str
    figures: Figures
    table: ScaleTable

    @property
    def sqnr_db(self) -> float:
        """SQNR on the samples held back, in dB."""
        return self.figures.sqnr_db


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The results of all choices.

    trials: the default first; empty if there were too few samples.  choosing, judging:
    how many samples did.
    """

    trials: tuple[Trial, ...]
    choosing: int
    judging: int

    @property
    def ranking(self) -> Ranking:
        """The trials, ranked with the certainty of their gains."""
        return rank_figures([trial.figures for trial in self.trials], baseline=0)

    @property
    def best(self) -> Trial:
        """The trial to take: the first unless another is sure to be better."""
        return self.trials[self.ranking.advised]


def best_of(
    network: Network,
    table: ScaleTable,
    samples: Sequence[Kept],
    *,
    judge: JudgeSettings = DEFAULTS.judge,
    watch: Count = nobody,
) -> Found:
    """Try all choices, and judge them on other samples.

    samples: by digest; those that choose are of the usual shape.  DataError: the metric
    does not fit the network.
    """
    file, graph = network.file, network.graph
    choosing, judging = divided(samples)
    usual = {name: graph.tensors[name].dims for name in graph.inputs}
    choosing = [each for each in choosing if shapes_of(each.inputs) == usual]
    logits = before_softmax(graph)
    layers = layers_of(logits, table)
    if not choosing or not layers:
        return Found(trials=(), choosing=0, judging=0)
    bench = bench_of(network, [each.inputs for each in judging], judge)
    seen = seen_in_float(file, graph, choosing)
    done, total = count(1), len(CHOICES) * len(layers)
    watch(0, total)
    tables = {DEFAULT: table}
    groups = groups_of(graph, table.tensors)
    for name, choice in CHOICES.items():
        other = chosen(
            layers, table, seen, choice, watch=lambda: watch(next(done), total)
        )
        # Other weights may leave room for fewer bits of an int16 input.
        tables[name] = finished(other, graph, groups, {})
    trials = [
        Trial(name=name, figures=bench.measure(each), table=each)
        for name, each in tables.items()
    ]
    return Found(trials=tuple(trials), choosing=len(seen), judging=len(judging))


def divided(samples: Sequence[Kept]) -> tuple[Sequence[Kept], Sequence[Kept]]:
    """Samples that choose and samples that judge; none does both."""
    least = min(max(FEWEST, len(samples) // 5), len(samples) // 2)
    first = min(CHOOSING, len(samples) - least)
    if not least:
        return (), ()
    return samples[:first], samples[first : first + JUDGING]


def noted(found: Found, table: ScaleTable) -> ScaleTable:
    """The best table, with a reason code for its gain; `table` if nothing was tried."""
    if not found.trials:
        return table
    best, first = found.best, found.trials[0]
    if best is first:
        return replace(table, reasons=(*table.reasons, KEPT))
    gain = f"{THOROUGH}:{best.sqnr_db - first.sqnr_db:+.2f}"
    return replace(best.table, reasons=(*best.table.reasons, gain))


def seen_in_float(file: OnnxFile, graph: Graph, samples: Iterable[Kept]) -> list[Seen]:
    """The samples, with what the float network makes of them.

    Where layers have very many channels, the first samples only, as many as BUDGET
    holds values of.
    """
    names = pre_activations(graph)
    reference = Reference(file, names, inside=True, tensors=graph.rearranged)
    found: list[Seen] = []
    size = 0
    for each in samples:
        results = reference.run(each.inputs)
        maps = {
            name: results[name].reshape(nchw(results[name].shape)) for name in names
        }
        pixels = {name: _pixels(array, each.digest) for name, array in maps.items()}
        size += sum(array.nbytes for array in pixels.values())
        if found and size > BUDGET:
            break
        means = {name: _means(array) for name, array in maps.items()}
        inputs = {name: as_float32(array) for name, array in each.inputs.items()}
        one = Seen(digest=each.digest, inputs=inputs, means=means, pixels=pixels)
        found.append(one)
    return found


def _pixels(values: Array, digest: str) -> FloatArray:
    """Some pixels, (n, C)."""
    image, y, x = some_pixels(values.shape, digest)
    return values[image, :, y, x].astype(np.float32)


def _means(values: Array) -> DoubleArray:
    """Channel means, (C,), summed in order."""
    planes = values.swapaxes(0, 1)
    flat = planes.reshape(len(planes), -1).astype(np.float64)
    means: DoubleArray = np.add.accumulate(flat, axis=1)[:, -1] / flat.shape[1]
    return means


def as_text(found: Found) -> str:
    """The trials as a table; a star marks the one that was taken."""
    if not found.trials:
        return "thorough: nothing to choose, or too few samples to judge it"
    ranking, best = found.ranking, found.best
    tasks = best.figures.task_names
    rows = [
        [
            "*" if trial is best else "",
            trial.name,
            decimals(trial.sqnr_db),
            "" if trial is found.trials[0] else f"{gain.db:+.2f} +- {gain.range:.2f}",
            *(f"{value:.4f}" for value in trial.figures.task_means.values()),
        ]
        for trial, gain in zip(found.trials, ranking.gains, strict=True)
    ]
    done = f"thorough: chosen on {counted(found.choosing, 'sample')}, "
    done += f"judged on {found.judging} others; * was taken"
    header = ["", "chosen", "SQNR dB", "gain dB", *tasks]
    return "\n".join([done, *with_losses(rows, header, ranking.losses)])
