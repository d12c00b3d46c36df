# SPDX-License-Identifier: Apache-2.0
"""The inner tensors of the int8 network and of the float network, side by side.

The oracle runs the int8 network step by step, so its tensors are those of the device to
the last bit; onnxruntime computes the float ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, FloatArray
from neon8.calibrate.run.reference import Reference
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.data.samples import Sample
from neon8.evaluate.measure import before_softmax
from neon8.evaluate.network import Network
from neon8.evaluate.runner import as_float32
from neon8.ir.graph import Graph
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.reference import centred
from neon8.quant.scale_table import ScaleTable
from neon8.refine.lockstep import last_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A network in float and in int8.

    network: what it is of.  graph: float, without a final Softmax.  forms: tensor of
    the program -> tensor of the graph that it holds, the int8 form where there are two.
    """

    network: Network
    graph: Graph
    table: ScaleTable
    program: Program
    reference: Reference
    forms: dict[str, str]

    def factors(self, name: str) -> FloatArray:
        """Factors of a tensor of the graph, (C, 1, 1) or (1, 1, 1)."""
        entry = self.table.tensors.get(name)
        values = (1.0,) if entry is None or not entry.factors else entry.factors
        return np.array(values, np.float32)[:, None, None]

    def offsets(self, name: str) -> FloatArray:
        """Offsets of a tensor of the graph, (C, 1, 1) or (1, 1, 1)."""
        entry = self.table.tensors.get(name)
        values = (0.0,) if entry is None or not entry.offsets else entry.offsets
        return np.array(values, np.float32)[:, None, None]

    def inside(self) -> tuple[str, ...]:
        """Tensors of the graph that exist only inside a step."""
        there, tensors = set(self.forms.values()), self.graph.tensors
        made = (name for node in self.graph.nodes for name in node.outputs)
        return tuple(n for n in made if tensors[n].observed and n not in there)


def pair(network: Network, table: ScaleTable) -> Pair:
    """Prepare a network with the scales of `table`.

    GraphError; CompileError: the table does not fit.
    """
    graph = before_softmax(network.graph)
    program = lower(graph, table)
    forms = _forms(graph, program)
    wanted = dict.fromkeys((*forms.values(), *graph.outputs))
    fetched = [name for name in wanted if name not in graph.inputs]
    reference = Reference(network.file, fetched, tensors=graph.rearranged)
    return Pair(
        network=network,
        graph=graph,
        table=table,
        program=program,
        reference=reference,
        forms=forms,
    )


def _forms(graph: Graph, program: Program) -> dict[str, str]:
    """Pair.forms.  A step that only converts a tensor is named after it."""
    found = {name: name for name in program.tensors if name in graph.tensors}
    for op in program.ops:
        if op.converts and op.name in graph.tensors:
            found |= dict.fromkeys((*op.inputs, op.output), op.name)
    best: dict[str, str] = {}
    for form, name in found.items():
        if not graph.tensors[name].observed:
            continue
        kept = best.setdefault(name, form)
        if program.tensors[kept].dtype == "float32":
            best[name] = form
    order = {name: at for at, name in enumerate(graph.tensors)}
    return {best[name]: name for name in sorted(best, key=order.__getitem__)}


def floats(pair: Pair, sample: Sample) -> dict[str, FloatArray]:
    """Run the float network; tensors of Pair.forms and outputs, N C H W, by name."""
    found = {**sample.inputs, **pair.reference.run(sample.inputs)}
    tensors, names = pair.graph.tensors, (*pair.forms.values(), *pair.graph.outputs)
    return {
        name: found[name].astype(np.float32).reshape(tensors[name].shape)
        for name in dict.fromkeys(names)
    }


def steps(pair: Pair, sample: Sample) -> Iterator[tuple[Op, Mapping[str, Array]]]:
    """Run the int8 network on a sample; each step once its result is known.

    The mapping has the result, and the tensors of the program, N C H W, that this step
    or a later one reads.
    """
    program = pair.program
    inputs = {name: as_float32(array) for name, array in sample.inputs.items()}
    values = {n: oracle.taken(program.tensors[n], inputs) for n in program.inputs}
    read = last_read(program, len(program.ops))
    for op, gone in zip(program.ops, read, strict=True):
        out = program.tensors[op.output]
        values[op.output] = oracle.step(
            program, op, out, [values[name] for name in op.inputs]
        )
        yield op, values
        for name in gone:
            if name not in program.outputs:
                del values[name]


def real(
    values: Array, tensor: Tensor, factors: FloatArray, offsets: FloatArray
) -> FloatArray:
    """The real values of a tensor of the program, N C H W."""
    if tensor.dtype == "float32":
        own = values.astype(np.float32)
    else:
        own = centred(values, tensor) * tensor.scale
    result: FloatArray = own * factors + offsets
    return result
