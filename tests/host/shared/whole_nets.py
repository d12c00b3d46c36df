# SPDX-License-Identifier: Apache-2.0
"""From an ONNX network to its int8 outputs, and what they are compared with."""

from dataclasses import dataclass

import numpy as np

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.graph.importer import load
from neon8.ir.program import Program
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import Model
from onnx_nets import random_inputs_of, save
from random_program import differing_bytes

Arrays = dict[str, np.ndarray]


def run_once(content, inputs, **options):
    """What the library gives of a compiled network.  options: of opening it."""
    with Model.from_bytes(content, **options) as model, model.session() as session:
        return session.run(inputs)


def decibels(found, wanted):
    """By how much the wanted values are above what differs from them."""
    wanted = np.asarray(wanted, np.float64)
    signal, noise = (np.square(each).mean() for each in (wanted, found - wanted))
    return 10 * float(np.log10(max(signal, 1e-30) / max(noise, 1e-30)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A compiled network; by sample what onnxruntime wants and the library found."""

    samples: list[Arrays]
    wanted: list[Arrays]
    found: list[Arrays]
    table: ScaleTable
    program: Program


def built(path, *, keep=(), count=4, **options) -> Built:
    """Calibrated on `count` samples, compiled, and run by the library and the oracle.

    These must agree in every byte.  options: of calibration.
    """
    graph = load(path)
    samples = random_inputs_of(graph, count)
    table = neon8.calibrate_model(path, samples, method="minmax", **options)
    program = lower(graph, table, keep_float=frozenset(keep))
    blob = neon8.compile_model(path, table, keep_float=keep)
    with Model.from_bytes(blob) as loaded, loaded.session(2) as session:
        found = [session.run(sample) for sample in samples]
    for sample, each in zip(samples, found, strict=True):
        assert differing_bytes(each, oracle.run(program, sample)) == {}
    reference = Reference(path, list(graph.outputs))
    return Built(
        samples=samples,
        wanted=[reference.run(sample) for sample in samples],
        found=found,
        table=table,
        program=program,
    )


def whole(folder, model, *, keep=()):
    """The Program and the least SQNR of its outputs, in dB."""
    made = built(save(folder, model), keep=keep)
    return made.program, min(
        decibels(found[name], want)
        for wanted, found in zip(made.wanted, made.found, strict=True)
        for name, want in wanted.items()
    )
