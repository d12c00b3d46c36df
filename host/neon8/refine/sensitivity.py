# SPDX-License-Identifier: Apache-2.0
"""What rounding each tensor costs the output, by simulation in float.

Two figures for each scale group, on the same samples: SQNR with only this group
rounded, which shows where noise comes from, and SQNR with all but this group rounded,
which shows what more bits for it would gain.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.run.simulator import Simulator
from neon8.calibrate.run.threads import usable
from neon8.compile.lower import lower
from neon8.data.arrays import Arrays
from neon8.evaluate.measure import sqnr_of, squares_of
from neon8.graph.onnx_file import ModelLike
from neon8.ir.graph import Graph
from neon8.ir.groups import groups_of
from neon8.ir.program import Program
from neon8.operators.conversion import QuantizeOp
from neon8.operators.convolution import Conv2d, convolutions, int8_layers
from neon8.quant.scale_table import ScaleTable, TensorScale
from neon8.rewrite.bias import corrected
from neon8.rewrite.equalization import equalized, restored
from neon8.rewrite.fake_weights import rounded_layers
from neon8.rewrite.rounding import rounded

Setting = Mapping[str, TensorScale]
"""The tensors that are rounded, and how."""

Watch = Callable[[int, int | None], None]
"""Told how many runs are done, and of how many, None if that is not known."""


FEW = 4
"""Samples that tell which of many layers are worth a closer look."""

INTEGERS = ("int8", "int16")
"""Types of tensors that are rounded."""


def nobody(_done: int, _total: int | None) -> None:
    """Ignore progress."""


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

    Logits are centred, as what all classes share decides nothing. With several outputs
    the mean of their noise to signal ratios counts.

    groups: scale group -> its tensors that the int8 network rounds.  plain: the scales
    of these tensors in the table.  layers: names of the layers with int8 weights.
    """

    def __init__(
        self,
        model: ModelLike,
        graph: Graph,
        table: ScaleTable,
        samples: Sequence[Arrays],
    ) -> None:
        """graph: of the file, as before_softmax() leaves it: outputs are logits then.

        samples: inputs by name, one or more.  CompileError, GraphError.
        """
        lowered = lower(graph, table)
        tensors = rounded_tensors(lowered, table)
        self.plain: Setting = {name: table.tensors[name] for name in tensors}
        groups: dict[str, list[str]] = {}
        group_of = groups_of(graph, table.tensors)
        for name in tensors:
            groups.setdefault(group_of[name], []).append(name)
        self.groups = {group: tuple(names) for group, names in groups.items()}
        self._samples = samples

        def simulator(layers: Iterable[Conv2d]) -> Simulator:
            return Simulator(
                model,
                graph,
                tensors=tensors,
                layers=[restored(node, table) for node in layers],
                outputs=graph.outputs,
                factors={name: entry.factors for name, entry in self.plain.items()},
            )

        self._simulator = simulator
        exact = equalized(graph, table)
        both = zip(convolutions(exact), convolutions(graph), strict=True)
        moved = [node for node, old in both if node is not old]
        chosen = rounded(corrected(exact, table), table)
        weights = rounded_layers(chosen, table, rounded_weights(lowered))
        self._nodes = {node.name: node for node in convolutions(exact)}
        self._weights = {node.name: node for node in weights}
        self.layers = tuple(self._weights)
        self._reference = simulator(())
        self._exact = simulator(moved) if moved else self._reference
        self._rounded = simulator(weights)

    def alone(
        self, *, runs: int | None = None, watch: Watch = nobody
    ) -> dict[str, float]:
        """Group -> dB with only this group rounded.  DataError.

        runs: of the network, at most; so many samples are taken, but FEW at least.
        """
        settings = [
            {name: self.plain[name] for name in names} for names in self.groups.values()
        ]
        samples = self._samples
        if runs is not None:
            samples = samples[: max(FEW, runs // max(len(settings), 1))]
        found = self._measure(self._exact, settings, watch, samples)
        return dict(zip(self.groups, found, strict=True))

    def alone_in_weights(
        self, layers: Collection[str], *, watch: Watch = nobody
    ) -> dict[str, float]:
        """Layer -> dB with only its weights rounded, on FEW samples.  DataError."""
        found, few = {}, self._samples[:FEW]
        for name in layers:
            simulator = self._with(self._nodes | {name: self._weights[name]})
            (found[name],) = self._measure(simulator, [{}], watch, few)
        return found

    def sqnr(
        self,
        settings: Sequence[Setting],
        wide: Sequence[frozenset[str]] = (),
        *,
        watch: Watch = nobody,
    ) -> list[float]:
        """The dB under each setting, with weights in int8.  DataError.

        wide: for each setting, layers with weights of more bits, which cost nothing.
        """
        if not any(wide):
            return self._measure(self._rounded, settings, watch)
        found = dict.fromkeys(range(len(settings)), 0.0)
        for names in dict.fromkeys(wide):
            exact = {name: self._nodes[name] for name in names}
            simulator = self._with(self._weights | exact) if names else self._rounded
            own = [at for at, each in enumerate(wide) if each == names]
            sqnr = self._measure(simulator, [settings[at] for at in own], watch)
            found |= zip(own, sqnr, strict=True)
        return list(found.values())

    def _with(self, layers: Mapping[str, Conv2d]) -> Simulator:
        """The network with these layers, and all others as in the file."""
        return self._simulator(layers.values())

    def wanted(self, sample: Arrays) -> Arrays:
        """The outputs of the float network.  DataError."""
        return self._reference.run(sample, {})

    def _measure(
        self,
        simulator: Simulator,
        settings: Sequence[Setting],
        watch: Watch,
        samples: Sequence[Arrays] | None = None,
    ) -> list[float]:
        done, samples = count(), self._samples if samples is None else samples
        total = len(settings) * len(samples)

        def measured(sample: Arrays) -> DoubleArray:
            """Squares of signal and noise, (settings, outputs, 2)."""
            wanted, found = self.wanted(sample), []
            for setting in settings:
                found.append(squares_of(wanted, simulator.run(sample, setting)))
                watch(next(done) + 1, total)
            return np.array(found)

        with ThreadPoolExecutor(usable()) as threads:
            each = list(threads.map(measured, samples))
        return [sqnr_of(squares) for squares in sum(each[1:], each[0])]
