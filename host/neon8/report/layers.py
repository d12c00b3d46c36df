# SPDX-License-Identifier: Apache-2.0
"""What is known of each layer: its steps, scales, weights, errors and remedies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.observation import Observation
from neon8.calibrate.solve import solve_quietly
from neon8.calibrate.statistics.histogram import Histogram
from neon8.ir.graph import Graph, Node
from neon8.operators.convolution import Conv2d, convolutions
from neon8.quant.reasons import condensed, kind, meaning
from neon8.quant.scale_table import ScaleTable, TensorScale
from neon8.refine.diagnosis import Diagnosis
from neon8.report.facts import (
    Choice,
    LayerFacts,
    TensorFacts,
    Values,
    WeightFacts,
)
from neon8.runtime import StepInfo
from neon8.settings import methods
from neon8.settings.stages import SolveSettings

if TYPE_CHECKING:
    from neon8.refine.remedies import Remedy

BARS = 64
"""Bins of a histogram that is shown."""
INT8, INT16, FLOAT = "int8", "int16", "float32"


def tensors_of(
    graph: Graph,
    table: ScaleTable,
    diagnosis: Diagnosis,
    seen: Mapping[str, Values],
) -> dict[str, TensorFacts]:
    """What is known of every tensor of the table that the network has, by name."""
    losses = {each.name: each for each in diagnosis.tensors}
    return {
        name: TensorFacts(
            name=name,
            scale=entry,
            reasons=_meanings(entry.reasons),
            loss=losses.get(name),
            values=seen.get(name),
        )
        for name, entry in table.tensors.items()
        if name in graph.tensors
    }


def layers_of(
    graph: Graph,
    table: ScaleTable,
    diagnosis: Diagnosis,
    tensors: Mapping[str, TensorFacts],
    steps: Sequence[StepInfo],
) -> tuple[LayerFacts, ...]:
    """The facts of every node, in order."""
    splits = {each.layer: each for each in diagnosis.layers}
    makers = {step.output: step.name for step in steps}
    named: dict[str, list[StepInfo]] = {}
    for step in steps:
        named.setdefault(step.name, []).append(step)
    remedies: dict[str, list[Remedy]] = {}
    for each in diagnosis.remedies:
        remedies.setdefault(each.target, []).append(each)
    convs = {node.name: node for node in convolutions(graph)}
    made = {name for node in graph.nodes for name in (node.name, *node.outputs)}
    found = []
    for node in graph.nodes:
        own = tuple(named.get(node.name, ()))
        entry = table.layers.get(node.name)
        weights = None
        if entry is not None and node.name in convs:
            low, high = _ends(convs[node.name])
            weights = WeightFacts(
                low=low, high=high, scale=entry, reasons=_meanings(entry.reasons)
            )
        mine = tuple(tensors[name] for name in node.outputs if name in tensors)
        for_it = [
            each
            for name in (node.name, *node.outputs)
            for each in remedies.get(name, ())
        ]
        found.append(
            LayerFacts(
                name=node.name,
                operator=node.operator,
                inputs=tuple(n for n in node.inputs if n in made or n in graph.inputs),
                outputs=node.outputs,
                shape=graph.tensors[node.output].dims,
                precision=_precision(graph, node, own, mine),
                steps=own,
                within="" if own else makers.get(node.output, ""),
                tensors=mine,
                weights=weights,
                split=splits.get(node.name),
                remedies=tuple(dict.fromkeys(for_it)),
            )
        )
    return tuple(found)


def _meanings(codes: Sequence[str]) -> tuple[str, ...]:
    """'dead:1,4: nothing but zeros ...', the channels of a kind together."""
    kinds: dict[str, list[str]] = {}
    for code in codes:
        kinds.setdefault(kind(code), []).append(code)
    return tuple(f"{condensed(own)}: {meaning(own[0])}" for own in kinds.values())


def _precision(
    graph: Graph,
    node: Node,
    steps: Sequence[StepInfo],
    tensors: Sequence[TensorFacts],
) -> str:
    """What its output is in the .n8 file; by the table, if inside of another step."""
    types = [step.dtype for step in steps if step.output in node.outputs]
    types = types or [step.dtype for step in steps]
    for each in (FLOAT, INT16, INT8):
        if each in types:
            return each
    if not tensors or not graph.tensors[node.output].real:
        return ""
    entry = tensors[0].scale
    return FLOAT if entry.float32 else (INT16 if entry.bits > 8 else INT8)


def _ends(node: Conv2d) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The smallest and the largest weight of each output channel."""
    rows = np.asarray(node.weight)
    rows = rows.reshape(rows.shape[0], -1)
    return tuple(rows.min(axis=1).tolist()), tuple(rows.max(axis=1).tolist())


def seen_values(
    observation: Observation, graph: Graph, table: ScaleTable
) -> dict[str, Values]:
    """Histograms, and what each method would choose, by tensor.

    The choices are those without equalization, whose ranges are of other values.
    CalibrationError: the observation is of another network.
    """
    rules = SolveSettings(scheme=table.scheme, plain=True)
    chosen = {
        name: solve_quietly(observation, graph, replace(rules, method=name)).tensors
        for name in methods.COMPARED
    }
    return {
        name: _values(
            each.histogram,
            {
                method: tensors[name]
                for method, tensors in chosen.items()
                if name in tensors
            },
        )
        for name, each in observation.tensors.items()
        if each.histogram.total
    }


def _values(histogram: Histogram, chosen: Mapping[str, TensorScale]) -> Values:
    low, high = float(histogram.minimum), float(histogram.maximum)
    counts = np.zeros(BARS)
    if high > low:
        counts = _bars(histogram, low, high)
    return Values(
        low=low,
        high=high,
        counts=tuple(np.rint(counts).astype(np.int64).tolist()),
        zeros=histogram.zeros,
        choices=tuple(
            Choice(method=method, threshold=entry.threshold)
            for method, entry in chosen.items()
        ),
    )


def _bars(histogram: Histogram, low: float, high: float) -> DoubleArray:
    """Counts of equal bins; a bin of the histogram counts where its middle lies."""
    middles = (np.arange(len(histogram.positive)) + 0.5) * histogram.width
    values = np.concatenate([-middles[::-1], middles]).clip(low, high)
    weights = np.concatenate([histogram.negative[::-1], histogram.positive])
    counts, _ = np.histogram(values, BARS, (low, high), weights=weights.astype(float))
    return np.asarray(counts, np.float64)
