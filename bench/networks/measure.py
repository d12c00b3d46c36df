# SPDX-License-Identifier: Apache-2.0
"""One network through the whole line, run here and on emulated ARM."""

import math
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from bench.networks import catalogue, samples
from neon8 import calibrate_model, compile_model
from neon8.calibrate.run.reference import Reference
from neon8.compile.lower import lower
from neon8.data.preprocess import Preprocess
from neon8.data.samples import gather
from neon8.errors import CalibrationError, CompileError, GraphError, ModelError
from neon8.evaluate.metrics import sqnr_db
from neon8.graph.importer import load
from neon8.ir.program import Program
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import Model
from neon8.runtime.emulate import EmulatedModel

CALIBRATION = 8
TEST = 16
"""Four said of AlexNet that it lost 8 dB where 32 saw no change."""
EMULATED = 1
"""Samples with random weights; one run of the largest network takes qemu a minute."""
MACHINES = (("aarch64", "max"), ("armv7", "cortex-a9"))
"""What they are run on, too, and its processor."""
MOST_REAL = 100
"""Real samples that calibrate, the first half of them at most; the others judge."""

REFUSALS = (GraphError, CalibrationError, CompileError, ModelError)
"""What is said of a network; a set-up that is not complete ends the report."""

Arrays = dict[str, np.ndarray]


HEADER = (
    *("network", "input", "MMACs", "layers", "float islands", "weights, kB"),
    *("file, kB", "arena, kB", "/ least", "SQNR, dB", "ARM = x86"),
)


class Row(NamedTuple):
    """What a network costs.  equal: it runs, and gives the same bytes everywhere."""

    cells: list[str]
    equal: bool


def random_network(name: str) -> Row:
    """A network of the catalogue at full size."""
    net, proto = catalogue.build(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        onnx.save(proto, path)
        data = samples.inputs(net, CALIBRATION + TEST, seed=1)
        return calibrated(name, path, data[:CALIBRATION], data[CALIBRATION:])


def real_network(path: Path, data: Path, preprocess: Preprocess | None) -> Row:
    known = gather(data, Reference(path).inputs, preprocess=preprocess)
    count = min(MOST_REAL, len(known) // 2)
    unseen = [one.inputs for one in islice(known, count, count + TEST)]
    options = {"preprocess": preprocess, "limit": count}
    return calibrated(path.stem, path, data, unseen, **options)


def calibrated(
    name: str, path: Path, data: Path | list[Arrays], unseen: list[Arrays], **options
) -> Row:
    """A network by the table of the data.  options: of calibrate_model."""
    try:
        return measure(name, path, calibrate_model(path, data, **options), unseen)
    except REFUSALS as error:
        why = " ".join(str(error).replace(f"{path.parent}/", "").split())
        return refused(name, why)


def refused(name: str, why: str) -> Row:
    text = f"refused: {why}".replace("|", "\\|")
    return Row([name, text, *[""] * (len(HEADER) - 2)], equal=False)


def measure(name: str, path: Path, table: ScaleTable, inputs: list[Arrays]) -> Row:
    """A calibrated network.  inputs: samples it did not see."""
    program = lower(load(path), table)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.n8"
        file.write_bytes(compile_model(path, table))
        with Model.open(file) as model, model.session(threads=2) as session:
            results = [session.run(sample) for sample in inputs]
            memory, steps = model.memory, model.steps
            size = model.facts.size
        equal = 0
        for machine in MACHINES:
            with EmulatedModel(file, *machine) as emulated:
                equal += sum(
                    same_bytes(emulated.run(sample), result)
                    for sample, result in zip(inputs[:EMULATED], results, strict=False)
                )
    (first, *_) = inputs[0].values()
    found = islands(program, products(path))
    kinds = [f"{found.count(kind)} x {kind}" for kind in dict.fromkeys(found)]
    decibels = sqnr(results, map(Reference(path).run, inputs))
    emulated_runs = len(inputs[:EMULATED]) * len(MACHINES)
    cells = [
        name,
        " x ".join(map(str, first.shape)),
        f"{sum(step.macs for step in steps) / 1e6:.1f}",
        str(len(steps)),
        f"{len(found)}: {'; '.join(kinds)}" if found else "none",
        f"{memory.packed / 1e3:.0f}",
        f"{size / 1e3:.0f}",
        f"{memory.arena / 1e3:.0f}",
        f"{memory.arena / memory.arena_least:.3f}",
        "equal" if math.isinf(decibels) else f"{decibels:.1f}",
        f"{equal} of {emulated_runs}",
    ]
    return Row(cells, equal=equal == emulated_runs)


def sqnr(found: Iterable[Arrays], wanted: Iterable[Arrays]) -> float:
    """In dB, of all outputs in float32 of all samples."""
    signal = noise = 0.0
    for ours, theirs in zip(found, wanted, strict=True):
        for output, values in theirs.items():
            if values.dtype.kind == "f":
                exact = values.astype(np.float64)
                signal += float((exact**2).sum())
                noise += float(((ours[output] - exact) ** 2).sum())
    return sqnr_db(signal, noise)


def products(path: Path) -> set[str]:
    """Names of the layers that multiply, as neon8 calls them."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    kinds = ("Conv", "ConvTranspose", "MatMul")
    found = [node for node in nodes if node.op_type in kinds]
    return {node.name or f"{node.op_type}_{node.output[0]}" for node in found}


def islands(program: Program, products: set[str]) -> list[str]:
    """Each float island with a product before and one after it: what and why.

    An island is steps that hand float32 to one another, so the conversions at its
    shores do not count.  products: names of the ONNX network's Conv, ConvTranspose and
    MatMul nodes; what a Gemm became is none.
    """
    if not products.intersection(op.name for op in program.ops):
        raise ValueError("none of the products is a step of the program")
    before: set[str] = set()
    for op in program.ops:
        if op.name in products or before.intersection(op.inputs):
            before.add(op.output)
    after: set[str] = set()
    for op in reversed(program.ops):
        if op.name in products or op.output in after:
            after.update(op.inputs)
    groups: dict[str, set[str]] = {}  # by the tensors that they make
    for op in program.ops:
        kinds = {program.tensors[name].dtype for name in (*op.inputs, op.output)}
        if kinds == {"float32"} and op.output in before & after:
            group = {op.output}.union(*(groups.get(name, ()) for name in op.inputs))
            groups |= dict.fromkeys(group, group)
    found = []
    for group in {id(group): group for group in groups.values()}.values():
        steps = [op for op in program.ops if op.output in group]
        kinds = dict.fromkeys(op.operation.lower() for op in steps)
        known = program.islands
        why = dict.fromkeys(known[op.name] for op in steps if op.name in known)
        reasons = f" ({'; '.join(why)})" if why else ""
        found.append(f"{', '.join(kinds)}{reasons}")
    return found


def same_bytes(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(a[k].tobytes() == b[k].tobytes() for k in a)
