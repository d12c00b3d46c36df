# SPDX-License-Identifier: Apache-2.0
"""From an ONNX network to its int8 outputs, and what they are compared with."""

import numpy as np

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.graph.importer import load
from neon8.runtime import Model
from onnx_nets import save
from random_program import differing_bytes

SAMPLES = 4


def whole(folder, model, *, keep=()):
    """The Program and the least SQNR of its outputs, in dB.

    Calibrated on four samples, compiled, and run by the library and by the oracle,
    which must agree in every byte.
    """
    path = save(folder, model)
    graph = load(path)
    rng = np.random.default_rng(3)
    data = [
        {
            name: rng.normal(0, 1, graph.tensors[name].dims).astype(np.float32)
            for name in graph.inputs
        }
        for _ in range(SAMPLES)
    ]
    table = neon8.calibrate_model(path, data, method="minmax")
    program = lower(graph, table, keep_float=frozenset(keep))
    blob = neon8.compile_model(path, table, keep_float=keep)
    reference = Reference(path, list(graph.outputs))
    ratios = []
    with Model.from_bytes(blob) as loaded, loaded.session() as session:
        for inputs in data:
            found = session.run(inputs)
            assert differing_bytes(found, oracle.run(program, inputs)) == {}
            for name, wanted in reference.run(inputs).items():
                noise = np.square(found[name] - wanted).mean()
                ratios.append(np.square(wanted).mean() / max(noise, 1e-30))
    return program, 10 * float(np.log10(max(min(ratios), 1e-30)))
