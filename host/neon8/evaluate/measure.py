# SPDX-License-Identifier: Apache-2.0
"""Compile a table, run it with the int8 library, and compare with the float network.

The library gives the same bytes on every processor, so the figures are those of the
device.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.run.threads import usable
from neon8.compile.compiler import compile_model
from neon8.data.arrays import Arrays
from neon8.evaluate.metrics import squares
from neon8.evaluate.runner import as_float32
from neon8.evaluate.scores import is_vector
from neon8.ir.graph import Graph
from neon8.operators.normalization import Softmax
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import Model


def nothing() -> None:
    """Nobody counts the runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figures:
    """What a table gives.  cost: of one run, in int8 MACs, as the library reckons.

    squares: of the signal and of the noise, (samples, outputs, 2).
    """

    squares: DoubleArray
    cost: int

    @property
    def sqnr_db(self) -> float:
        """SQNR of all samples together."""
        return sqnr_of(self.squares.sum(axis=0))

    @property
    def shares(self) -> tuple[float, ...]:
        """Noise of each sample in the signal of all, averaged over outputs."""
        noise, signal = self.squares[:, :, 1], self.squares[:, :, 0].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(noise > 0, noise / signal, 0.0)
        return tuple(shares.mean(axis=1).tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """Samples that tables are measured on.

    graph: the float network, whose outputs count.  samples: its inputs by name.
    wanted: its outputs, by name, of each sample.  tick: called after each run, from
    several threads.
    """

    graph: Graph
    samples: Sequence[Arrays]
    wanted: Sequence[Arrays]
    tick: Callable[[], None] = nothing

    def measure(
        self, table: ScaleTable, *, keep_float: Collection[str] = ()
    ) -> Figures:
        """Compile, run and compare.  CompileError."""
        file = compile_model(self.graph, table, keep_float=keep_float)
        width = min(usable(), len(self.samples))
        with Model.from_bytes(file, source=self.graph.name) as model:

            def run(first: int) -> list[DoubleArray]:
                found = []
                with running(model) as outputs_of:
                    for at in range(first, len(self.samples), width):
                        outputs = outputs_of(self.samples[at])
                        found.append(squares_of(self.wanted[at], outputs))
                        self.tick()
                return found

            with ThreadPoolExecutor(width) as threads:
                parts = list(threads.map(run, range(width)))
            total = range(len(self.samples))
            ordered = [parts[at % width][at // width] for at in total]
            return Figures(squares=np.array(ordered), cost=cost_of(model))


@contextmanager
def running(model: Model) -> Iterator[Callable[[Arrays], Arrays]]:
    """Yield a function from the inputs of the float network to the int8 outputs."""
    with model.session(threads=1) as session:

        def run(inputs: Arrays) -> Arrays:
            return session.run({name: as_float32(x) for name, x in inputs.items()})

        yield run


def cost_of(model: Model) -> int:
    """Reckon one run, in int8 MACs."""
    return sum(step.cost for step in model.steps)


def sqnr_of(squares: DoubleArray) -> float:
    """Give dB.  squares: (outputs, 2), of the signal and the noise of each output."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(squares[:, 1] > 0, squares[:, 1] / squares[:, 0], 0.0)
        return float(-10 * np.log10(ratios.mean()))


def squares_of(wanted: Arrays, got: Arrays) -> DoubleArray:
    """Give the squares of signal and noise of each output on one sample, (outputs, 2).

    Scores are centred: what all classes share decides nothing.
    """
    pairs = [
        squares(array, got[name], centred=is_vector(array))
        for name, array in wanted.items()
    ]
    return np.array([(each.signal, each.noise) for each in pairs])


def before_softmax(graph: Graph) -> Graph:
    """The network without a Softmax that only feeds an output.

    Probabilities near 0 and 1 hide how far off the values before them are. The order
    of the outputs, which is what top-1 looks at, is the same.
    """
    read = {name for node in graph.nodes for name in node.inputs}
    source = {
        node.output: node.inputs[0]
        for node in graph.nodes
        if isinstance(node, Softmax)
        and node.output in graph.outputs
        and node.output not in read
        and node.inputs[0] not in (*graph.inputs, *graph.outputs)
    }
    outputs = tuple(source.get(name, name) for name in graph.outputs)
    if len(set(outputs)) < len(outputs):
        return graph
    nodes = tuple(node for node in graph.nodes if node.output not in source)
    return replace(graph, nodes=nodes, outputs=outputs)
