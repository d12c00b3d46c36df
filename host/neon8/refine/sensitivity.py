# SPDX-License-Identifier: Apache-2.0
"""What rounding each tensor costs the output, by simulation in float.

Two figures for each scale group, on the same samples: SQNR with only this group
rounded, which shows where noise comes from, and SQNR with all but this group rounded,
which shows what more bits for it would gain.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count as counted

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.run.shaped import AtShapes, shapes_of
from neon8.calibrate.run.simulator import Simulator
from neon8.calibrate.run.threads import usable
from neon8.compile.lower import lower
from neon8.data.arrays import Arrays
from neon8.data.inputs import Shape
from neon8.evaluate.measure import before_softmax, sqnr_of, squares_of
from neon8.evaluate.network import Network
from neon8.ir.groups import groups_of
from neon8.ir.program import Program
from neon8.operators.conversion import QuantizeOp
from neon8.operators.convolution import Conv2d, convolutions, int8_layers
from neon8.progress import Count, nobody
from neon8.quant.scale_table import ScaleTable, TensorScale
from neon8.rewrite.bias import corrected
from neon8.rewrite.equalization import equalized, restored
from neon8.rewrite.fake_weights import rounded_layers
from neon8.rewrite.rounding import rounded

Setting = Mapping[str, TensorScale]
"""The tensors that are rounded, and how."""

FEW = 4
"""Samples that tell which of many layers are worth a closer look."""

INTEGERS = ("int8", "int16")
"""Types of tensors that are rounded."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is rounded in a run.

    setting: the tensors.  exact: the layers whose weights are not.
    """

    setting: Setting
    exact: Collection[str]


def rounded_tensors(program_: Program, table: ScaleTable) -> tuple[str, ...]:
    """The tensors of the table that the program holds as integers, in order."""
    made = {op.name for op in program_.ops if isinstance(op, QuantizeOp)}
    made |= {n for n, tensor in program_.tensors.items() if tensor.dtype in INTEGERS}
    return tuple(name for name in table.tensors if name in made)


def rounded_weights(program_: Program) -> frozenset[str]:
    """The layers that have int8 weights in the program."""
    return frozenset(op.name for op in int8_layers(program_))


class Meter:
    """Measures SQNR of the network's outputs under any setting, on the same samples.

    Outputs are logits, without a final Softmax, and centred, as what all classes share
    decides nothing. With several the mean of their noise to signal ratios counts.

    groups: scale group -> its tensors that the int8 network rounds.  plain: the scales
    of these tensors in the table.  layers: names of the layers with int8 weights.
    """

    def __init__(
        self, network: Network, table: ScaleTable, samples: Sequence[Arrays]
    ) -> None:
        """samples: inputs by name, one or more.  CompileError, GraphError."""
        graph = before_softmax(network.graph)
        lowered = lower(graph, table)
        tensors = rounded_tensors(lowered, table)
        self.plain: Setting = {name: table.tensors[name] for name in tensors}
        groups: dict[str, list[str]] = {}
        group_of = groups_of(graph, table.tensors)
        for name in tensors:
            groups.setdefault(group_of[name], []).append(name)
        self.groups = {group: tuple(names) for group, names in groups.items()}
        self._samples = samples
        exact = equalized(graph, table)
        chosen = rounded(corrected(exact, table), table)
        weights = rounded_layers(chosen, table, rounded_weights(lowered))
        self._rounded = {node.name: restored(node, table) for node in weights}
        self.layers = tuple(self._rounded)
        both = zip(convolutions(exact), convolutions(graph), strict=True)
        self._exact = {
            node.name: restored(node, table)
            for node, old in both
            if node is not old or node.name in self._rounded
        }

        def simulator(shapes: dict[str, Shape], layers: Iterable[Conv2d]) -> Simulator:
            here = network.at_shapes(shapes)
            return Simulator(
                here.file,
                before_softmax(here.graph),
                tensors=tensors,
                layers=layers,
                outputs=graph.outputs,
                factors={name: entry.factors for name, entry in self.plain.items()},
            )

        self._simulators = AtShapes(partial(simulator, layers=self._exact.values()))
        self._references = AtShapes(partial(simulator, layers=()))
        self._wanted: dict[int, Arrays] = {}

    def alone(
        self, *, runs: int | None = None, watch: Count = nobody
    ) -> dict[str, float]:
        """Group -> dB with only this group rounded.  DataError.

        runs: of the network, at most; so many samples are taken, but FEW at least.
        """
        trials = [
            Trial({name: self.plain[name] for name in names}, self._exact.keys())
            for names in self.groups.values()
        ]
        count = None if runs is None else max(FEW, runs // max(len(trials), 1))
        found = self._measure(trials, count, watch)
        return dict(zip(self.groups, found, strict=True))

    def alone_in_weights(
        self, layers: Collection[str], *, watch: Count = nobody
    ) -> dict[str, float]:
        """Layer -> dB with only its weights rounded, on FEW samples.  DataError."""
        every = self._exact.keys()
        trials = [Trial({}, every - {name}) for name in layers]
        return dict(zip(layers, self._measure(trials, FEW, watch), strict=True))

    def sqnr(
        self,
        settings: Sequence[Setting],
        wide: Sequence[frozenset[str]] = (),
        *,
        count: int | None = None,
        watch: Count = nobody,
    ) -> list[float]:
        """The dB under each setting, with weights in int8.  DataError.

        wide: for each setting, layers with weights of more bits, which cost nothing.
        count: how many samples are taken, the first ones; None for all.
        """
        both = zip(settings, wide or [frozenset()] * len(settings), strict=True)
        trials = [Trial(setting, names) for setting, names in both]
        return self._measure(trials, count, watch)

    def wanted(self, sample: Arrays) -> Arrays:
        """The outputs of the float network.  DataError."""
        return self._references.at(shapes_of(sample)).run(sample, {})

    def _measure(
        self, trials: Sequence[Trial], count: int | None, watch: Count
    ) -> list[float]:
        """The dB of each trial, on the first `count` samples."""
        done, numbers = counted(1), range(len(self._samples))[:count]
        total = len(trials) * len(numbers)

        def measured(number: int) -> DoubleArray:
            """Squares of signal and noise, (trials, outputs, 2)."""
            sample = self._samples[number]
            if number not in self._wanted:
                self._wanted[number] = self.wanted(sample)
            wanted, found = self._wanted[number], []
            simulator = self._simulators.at(shapes_of(sample))
            for trial in trials:
                layers = [
                    node
                    for name, node in self._rounded.items()
                    if name not in trial.exact
                ]
                got = simulator.run(sample, trial.setting, layers)
                found.append(squares_of(wanted, got))
                watch(next(done), total)
            return np.array(found)

        with ThreadPoolExecutor(usable()) as threads:
            each = list(threads.map(measured, numbers))
        return [sqnr_of(squares) for squares in sum(each[1:], each[0])]
