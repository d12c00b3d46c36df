# SPDX-License-Identifier: Apache-2.0
"""A lowered network computes what the float network does, to the noise of int8."""

import dataclasses

import make_golden
import numpy as np
import pytest

import graph_executor
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.ir.graph import Activation
from neon8.operators.reference import quantize
from neon8.quant.scale_table import TensorScale


def scales_of(values, scheme):
    """One scale for each tensor, from the least and largest value seen."""
    scales = {}
    for name, array in values.items():
        low, high = min(0.0, float(array.min())), max(0.0, float(array.max()))
        kind = scheme
        if scheme == "asymmetric" and low == 0:
            kind = "unsigned"
        if kind == "symmetric":
            step, zero_point = max(-low, high) / 127, 0
        else:
            step = (high - low) / 255
            zero_point = int(np.rint(-128 - low / step))
        scales[name] = TensorScale(
            scale=float(np.float32(step)),
            zero_point=zero_point,
            scheme=kind,
            threshold=(low, high),
            min=low,
            max=high,
        )
    return scales


def sqnr_db(reference, result):
    noise = np.square(reference - result).sum()
    return 10 * np.log10(np.square(reference).sum() / noise)


@pytest.mark.parametrize("io", ["float", "int8"])
@pytest.mark.parametrize(
    ("scheme", "least_db"), [("asymmetric", 40), ("symmetric", 36)]
)
def test_golden_network(io, scheme, least_db):
    net = make_golden.graph()
    inputs = make_golden.inputs()
    values = graph_executor.run(net, inputs)
    table = make_golden.table(net)
    table = dataclasses.replace(table, tensors=scales_of(values, scheme))
    program = lower(net, table, io=io)
    if io == "int8":
        entry = program.tensors["image"]
        inputs = {"image": quantize(inputs["image"], entry)}
    results = oracle.run(program, inputs)
    for name, array in results.items():
        out = program.tensors[name]
        real = (array.astype(float) - out.zero_point) * float(out.scale)
        assert sqnr_db(values[name], real) > least_db


def test_measure_notices_a_wrong_activation():
    """The same comparison fails for a network that differs in one activation."""
    net = make_golden.graph()
    values = graph_executor.run(net, make_golden.inputs())
    table = make_golden.table(net)
    table = dataclasses.replace(table, tensors=scales_of(values, "asymmetric"))
    nodes = list(net.nodes)
    assert nodes[2].activation.slope == np.float64(0.1)
    nodes[2] = dataclasses.replace(nodes[2], activation=Activation(slope=0.2))
    wrong = lower(dataclasses.replace(net, nodes=tuple(nodes)), table)
    results = oracle.run(wrong, make_golden.inputs())
    assert sqnr_db(values["sum"], results["sum"]) < 36
