# SPDX-License-Identifier: Apache-2.0
"""Attention from an ONNX file to the library, and to a Q/DQ file and back."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

import neon8
from attention_nets import NETS, vit
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.formats import qdq
from neon8.graph.importer import load
from neon8.operators.conversion import RequantizeOp
from neon8.operators.matmul import MatmulOp
from neon8.rewrite.own_scales import load_quantized
from neon8.runtime import Model
from onnx_nets import net, node, random_inputs_of, save
from quantized_nets import ort
from random_program import differing_bytes
from whole_nets import decibels, run_once

F = np.float32


def calibrated(folder, model, *, samples=12, **options):
    """The Graph, the table and the samples."""
    path = save(folder, model)
    graph = load(path)
    data = random_inputs_of(graph, samples)
    return path, graph, neon8.calibrate_model(path, data, **options), data


@pytest.fixture(scope="module", params=NETS)
def attention(request, tmp_path_factory):
    return calibrated(tmp_path_factory.mktemp(request.param), NETS[request.param]())


def check(path, graph, table, data):
    """The library and onnxruntime agree with the program, which is returned."""
    program = lower(graph, table)
    assert sum(isinstance(op, MatmulOp) for op in program.ops) == 2
    with Model.from_bytes(neon8.compile_model(path, table)) as model:
        for sample in data[:2]:
            found = model.session(2).run(sample)
            assert differing_bytes(found, oracle.run(program, sample)) == {}
            assert decibels(found["y"], ort(path, sample, fused=False)["y"]) > 25
    return program


def test_attention(attention):
    """Second operands have no zero point by calibration: none is requantized."""
    program, table = check(*attention), attention[2]
    assert not any(isinstance(op, RequantizeOp) for op in program.ops)
    for op in program.ops:
        if isinstance(op, MatmulOp):
            assert table.tensors[op.inputs[1]].scheme == "symmetric"


def test_attention_of_int16(tmp_path):
    check(*calibrated(tmp_path, vit(), bits=16))


def test_a_second_operand_with_a_zero_point_is_requantized(tmp_path):
    model = net([node("MatMul", "a b", "y")], {"a": (9, 8), "b": (8, 9)}, "y")
    path, graph, table, data = calibrated(tmp_path, model)
    entry = table.tensors["b"]
    assert entry.zero_point == 0
    table.tensors["b"] = replace(entry, scheme="asymmetric", zero_point=5)
    program = lower(graph, table)
    assert any(isinstance(op, RequantizeOp) for op in program.ops)
    found = oracle.run(program, data[0])["y"]
    assert decibels(found, ort(path, data[0], fused=False)["y"]) > 25


def test_bytes_below_the_range_count_as_its_end(tmp_path):
    """-128 of a caller, for which two products in int16 are not proved."""
    model = net([node("MatMul", "a b", "y")], {"a": (1, 64), "b": (64, 40)}, "y")
    path, graph, table, _ = calibrated(tmp_path, model)
    sample = {
        name: np.full(graph.tensors[name].dims, -128, np.int8) for name in graph.inputs
    }
    program = lower(graph, table, io="int8")
    want = oracle.run(program, sample)
    blob = neon8.compile_model(path, table, io="int8")
    for isa in ("c", "auto"):
        assert differing_bytes(run_once(blob, sample, isa=isa), want) == {}
    lowest = {"a": sample["a"], "b": np.full_like(sample["b"], -127)}
    assert differing_bytes(oracle.run(program, lowest), want) == {}


def test_constant_matrices(tmp_path):
    model = net(
        [node("MatMul", "x w", "y")],
        {"x": (3, 5, 16)},
        "y",
        {"w": np.random.default_rng(0).normal(0, 1, (3, 16, 8)).astype(F)},
    )
    path, graph, table, data = calibrated(tmp_path, model)
    found = oracle.run(lower(graph, table), data[0])["y"]
    assert decibels(found, ort(path, data[0], fused=False)["y"]) > 30


def test_a_qdq_file_computes_the_same(tmp_path, attention):
    path, graph, table, data = attention
    written = onnx.load_model_from_string(qdq.dumps(table, graph, path))
    other = save(tmp_path, written, "qdq.onnx")
    again = lower(*load_quantized(other))
    for sample in data[:2]:
        want = oracle.run(lower(graph, table), sample)["y"]
        assert decibels(ort(other, sample, fused=False)["y"], want) > 40
        assert np.array_equal(oracle.run(again, sample)["y"], want)


def test_memory_counts_what_is_packed(tmp_path):
    path, _, table, _ = calibrated(tmp_path, vit(tokens=60, width=64, heads=1))
    with Model.from_bytes(neon8.compile_model(path, table)) as model:
        assert model.memory.scratch >= 2 * 60 * 64
