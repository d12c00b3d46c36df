# SPDX-License-Identifier: Apache-2.0
"""Compile a table, run it with the int8 library, and compare with the float network.

The library gives the same bytes on every processor, so the figures are those of the
device.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from neon8.arrays import Array, DoubleArray
from neon8.calibrate.run.threads import usable
from neon8.compile.compiler import compile_model
from neon8.data.arrays import Arrays
from neon8.errors import DataError
from neon8.evaluate.metrics import sqnr_db as decibels
from neon8.evaluate.metrics import squares
from neon8.evaluate.runner import as_float32
from neon8.evaluate.scores import is_vector
from neon8.evaluate.tasks import Labels, Setup, Task, tasks_of
from neon8.ir.graph import Graph
from neon8.operators.softmax import Softmax
from neon8.progress import nobody
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figures:
    """What a table gives.  cost: of one run, in int8 MACs, as the library reckons.

    size: of the .n8 file, in bytes; 0 where nothing was compiled.  ms: estimated
    milliseconds of a run, None if nobody asks.
    squares: of the signal and of the noise, (samples, outputs, 2).  outputs: their
    names.  tasks: (samples, tasks), see tasks.py; task_names: theirs.
    """

    squares: DoubleArray
    cost: int = 0
    size: int = 0
    ms: float | None = None
    outputs: tuple[str, ...] = ()
    tasks: DoubleArray = field(default_factory=lambda: np.zeros((0, 0)))
    task_names: tuple[str, ...] = ()

    @property
    def sqnr_db(self) -> float:
        """SQNR of all samples together."""
        return sqnr_of(self.squares.sum(axis=0))

    @property
    def worst(self) -> tuple[str, float]:
        """The output that loses most, and its SQNR."""
        signal, noise = self.squares.sum(axis=0).T
        each = zip(map(decibels, signal, noise), self.outputs, strict=True)
        value, name = min(each, key=lambda one: one[0])
        return name, value

    @property
    def task_means(self) -> dict[str, float]:
        """Task -> its mean."""
        means = self.tasks.mean(axis=0).tolist() if self.task_names else []
        return dict(zip(self.task_names, means, strict=True))

    @property
    def shares(self) -> tuple[float, ...]:
        """Noise of each sample in the signal of all, averaged over outputs."""
        noise, signal = self.squares[:, :, 1], self.squares[:, :, 0].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(noise > 0, noise / signal, 0.0)
        return tuple(shares.mean(axis=1).tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Compares int8 outputs with those of the float network, sample by sample.

    whole: the network with its Softmax; the outputs of before_softmax() are given.
    """

    whole: Graph
    rows: int
    tasks: tuple[Task, ...]

    @classmethod
    def of(cls, whole: Graph, setup: Setup, wanted: Arrays) -> "Judge":
        """Find the tasks by the float outputs of a sample.  DataError: tasks_of()."""
        tasks = tasks_of(after_softmax(whole, wanted), setup)
        return cls(whole=whole, rows=setup.rows, tasks=tasks)

    def values(
        self, wanted: Arrays, got: Arrays, labels: Labels = ()
    ) -> list[list[float]]:
        """What each task says of the samples of a run.  DataError: of the metric."""
        if not self.tasks:
            return []
        exact, outputs = (after_softmax(self.whole, each) for each in (wanted, got))
        return [task.values(exact, outputs, labels, self.rows) for task in self.tasks]


@dataclass(slots=True, eq=False)
class Sheet:
    """What is compared, run by run.  judge: None for SQNR alone."""

    judge: Judge | None = None
    outputs: tuple[str, ...] = ()
    squares: list[DoubleArray] = field(default_factory=list)
    values: list[list[list[float]]] = field(default_factory=list)

    def add(self, wanted: Arrays, got: Arrays, labels: Labels = ()) -> None:
        """Compare one run."""
        self.outputs = tuple(wanted)
        self.squares.append(squares_of(wanted, got))
        judge = self.judge
        self.values.append([] if judge is None else judge.values(wanted, got, labels))

    def figures(self, cost: int = 0, size: int = 0, ms: float | None = None) -> Figures:
        """The figures of all runs so far, one or more."""
        tasks = () if self.judge is None else self.judge.tasks
        return Figures(
            squares=np.array(self.squares),
            cost=cost,
            size=size,
            ms=ms,
            outputs=self.outputs,
            tasks=np.array([[np.mean(e) for e in run] for run in self.values]),
            task_names=tuple(task.name for task in tasks),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """Samples that tables are measured on.

    graph: the float network, whose outputs count.  samples: its inputs by name.
    wanted: its outputs, by name, of each sample.  tick: called after each run, from
    several threads.  labels: of each sample, where there are any.  price: milliseconds
    of a .n8 file, if they count.
    """

    graph: Graph
    samples: Sequence[Arrays]
    wanted: Sequence[Arrays]
    tick: Callable[[], None] = nobody
    judge: Judge | None = None
    labels: Sequence[Labels] = ()
    price: Callable[[bytes], float] | None = None

    def cost(self, table: ScaleTable) -> int:
        """The cost of one run.  CompileError."""
        with Model.from_bytes(compile_model(self.graph, table)) as model:
            return cost_of(model)

    def measure(
        self, table: ScaleTable, *, keep_float: Collection[str] = ()
    ) -> Figures:
        """Compile, run and compare.  CompileError; DataError: of the user's metric."""
        file = compile_model(self.graph, table, keep_float=keep_float)
        width = min(usable(), len(self.samples))
        with Model.from_bytes(file, source=self.graph.name) as model:

            def run(first: int) -> Sheet:
                found = Sheet(self.judge)
                with running(model) as outputs_of:
                    for at in range(first, len(self.samples), width):
                        outputs = outputs_of(self.samples[at])
                        labels = self.labels[at] if self.labels else ()
                        found.add(self.wanted[at], outputs, labels)
                        self.tick()
                return found

            with ThreadPoolExecutor(width) as threads:
                parts = list(threads.map(run, range(width)))
            ordered = Sheet(self.judge, parts[0].outputs)
            for at in range(len(self.samples)):
                part, place = parts[at % width], at // width
                ordered.squares.append(part.squares[place])
                ordered.values.append(part.values[place])
            ms = self.price(file) if self.price else None
            return ordered.figures(cost_of(model), len(file), ms)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedBench:
    """Samples of several shapes: a Bench for each, and where its samples stand."""

    parts: Sequence[tuple[Bench, Sequence[int]]]

    def cost(self, table: ScaleTable) -> int:
        """The cost of one run, on average over the samples.  CompileError."""
        return self._average([bench.cost(table) for bench, _ in self.parts])

    def measure(
        self, table: ScaleTable, *, keep_float: Collection[str] = ()
    ) -> Figures:
        """As Bench.measure().  DataError: outputs show other things elsewhere."""
        found = [b.measure(table, keep_float=keep_float) for b, _ in self.parts]
        first = found[0]
        for each in found:
            if each.task_names != first.task_names:
                pair = (", ".join(f.task_names) or "nothing" for f in (first, each))
                text = "outputs show {} at one size and {} at another".format(*pair)
                raise DataError(f"{text}; say by --metric what is compared")
        order = np.argsort(np.concatenate([places for _, places in self.parts]))
        return Figures(
            squares=np.concatenate([each.squares for each in found])[order],
            cost=self._average([each.cost for each in found]),
            outputs=first.outputs,
            tasks=np.concatenate([each.tasks for each in found])[order],
            task_names=first.task_names,
            ms=None if first.ms is None else self._mean([f.ms or 0.0 for f in found]),
        )

    def _average(self, costs: Sequence[int]) -> int:
        return int(self._mean(costs))

    def _mean(self, values: Sequence[float]) -> float:
        counts = [len(places) for _, places in self.parts]
        total = sum(value * n for value, n in zip(values, counts, strict=True))
        return total / sum(counts)


AnyBench = Bench | MixedBench


def by_shape(samples: Sequence[Arrays]) -> list[list[int]]:
    """The places of the samples of each shape, in the order of the first of each."""
    found: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for at, sample in enumerate(samples):
        found.setdefault(tuple(a.shape for a in sample.values()), []).append(at)
    return list(found.values())


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
    source = _softmaxes(graph)
    outputs = tuple(
        source[name].inputs[0] if name in source else name for name in graph.outputs
    )
    if len(set(outputs)) < len(outputs):
        return graph
    nodes = tuple(node for node in graph.nodes if node.output not in source)
    return replace(graph, nodes=nodes, outputs=outputs)


def _softmaxes(graph: Graph) -> dict[str, Softmax]:
    """Those that only feed an output, by its name."""
    read = {name for node in graph.nodes for name in node.inputs}
    return {
        node.output: node
        for node in graph.nodes
        if isinstance(node, Softmax)
        and node.output in graph.outputs
        and node.output not in read
        and node.inputs[0] not in (*graph.inputs, *graph.outputs)
    }


def after_softmax(graph: Graph, outputs: Arrays) -> Arrays:
    """The outputs of the network, from those of before_softmax()."""
    source = _softmaxes(graph)

    def output(name: str) -> Array:
        dims = graph.tensors[name].dims
        if name in outputs:
            return outputs[name].reshape(dims)
        node = source[name]
        values = outputs[node.inputs[0]].astype(np.float64).reshape(dims)
        axes = tuple(range(node.axis, len(dims))) if node.flattens else node.axis
        values = values - values.max(axis=axes, keepdims=True)
        total = np.exp(values).sum(axis=axes, keepdims=True)
        made: Array = values - np.log(total) if node.log else np.exp(values) / total
        return made

    return {name: output(name) for name in graph.outputs}
