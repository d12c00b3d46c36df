# SPDX-License-Identifier: Apache-2.0
"""What each tensor that is rounded costs the output, by simulation in float.

Of each scale group two figures, on the same samples: what the output has left where the
group alone is rounded and all else is float32, and what it would have where the group
alone is not, all else as the table has it. The first says where noise comes from, the
second what more bits there would give.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from neon8.ir.groups import scale_groups
from neon8.ir.program import Program
from neon8.operators.conversion import QuantizeOp
from neon8.operators.convolution import Conv2d, convolutions, int8_layers
from neon8.quant.scale_table import ScaleTable, TensorScale
from neon8.rewrite.bias import corrected
from neon8.rewrite.equalization import equalized
from neon8.rewrite.fake_weights import rounded_layers
from neon8.rewrite.rounding import rounded

Setting = Mapping[str, TensorScale]
"""The tensors that are rounded, and how."""

Watch = Callable[[int, int | None], None]
"""Told how many runs are done, and of how many, None if that is not known."""


INTEGERS = ("int8", "int16")
"""Types of tensors that are rounded."""


def nobody(_done: int, _total: int | None) -> None:
    """Nobody watches."""


def rounded_tensors(program_: Program, table: ScaleTable) -> tuple[str, ...]:
    """The tensors of the table that `program_` has as integers, in order."""
    made = {op.name for op in program_.ops if isinstance(op, QuantizeOp)}
    made |= {n for n, tensor in program_.tensors.items() if tensor.dtype in INTEGERS}
    return tuple(name for name in table.tensors if name in made)


def rounded_weights(program_: Program) -> frozenset[str]:
    """The layers that `program_` has with weights in int8."""
    return frozenset(op.name for op in int8_layers(program_))


class Meter:
    """SQNR of the network's outputs under any setting, on the same samples.

    Of outputs that are vectors the logits are centred: what all classes share decides
    nothing. Of several outputs, the mean of their noise to signal ratios counts.

    groups: of each scale group the tensors that the int8 network rounds.
    plain: these as the table has them.
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
        group_of = scale_groups(graph)
        for name in tensors:
            groups.setdefault(group_of[name], []).append(name)
        self.groups = {group: tuple(names) for group, names in groups.items()}
        self._samples = samples

        def simulator(layers: Iterable[Conv2d]) -> Simulator:
            return Simulator(
                model, graph, tensors=tensors, layers=layers, outputs=graph.outputs
            )

        exact = equalized(graph, table)
        both = zip(convolutions(exact), convolutions(graph), strict=True)
        moved = [node for node, old in both if node is not old]
        chosen = rounded(corrected(exact, table), table)
        levels = rounded_layers(chosen, table, rounded_weights(lowered))
        self._reference = simulator(())
        self._exact = simulator(moved) if moved else self._reference
        self._rounded = simulator(levels)

    def alone(self, *, watch: Watch = nobody) -> dict[str, float]:
        """dB where one group is rounded and nothing else, by group."""
        settings = [
            {name: self.plain[name] for name in names} for names in self.groups.values()
        ]
        found = self._measure(self._exact, settings, watch)
        return dict(zip(self.groups, found, strict=True))

    def sqnr(
        self, settings: Sequence[Setting], *, watch: Watch = nobody
    ) -> list[float]:
        """dB under each setting, with weights in int8.  DataError."""
        return self._measure(self._rounded, settings, watch)

    def wanted(self, sample: Arrays) -> Arrays:
        """The outputs of the float network.  DataError."""
        return self._reference.run(sample, {})

    def _measure(
        self, simulator: Simulator, settings: Sequence[Setting], watch: Watch
    ) -> list[float]:
        done = count()
        total = len(settings) * len(self._samples)

        def sums(sample: Arrays) -> DoubleArray:
            """(settings, outputs, 2)."""
            wanted, found = self.wanted(sample), []
            for setting in settings:
                found.append(squares_of(wanted, simulator.run(sample, setting)))
                watch(next(done) + 1, total)
            return np.array(found)

        with ThreadPoolExecutor(usable()) as threads:
            each = list(threads.map(sums, self._samples))
        return [sqnr_of(squares) for squares in sum(each[1:], each[0])]
