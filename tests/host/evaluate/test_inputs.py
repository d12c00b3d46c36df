# SPDX-License-Identifier: Apache-2.0
"""Networks with inputs of other types and with fixed batches."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from neon8 import calibrate_model, diagnose_model, observe_model, solve_observation
from neon8.compile.compiler import compile_model
from neon8.errors import DataError
from neon8.evaluate.evaluate import evaluate_model
from neon8.evaluate.runner import open_float
from neon8.graph.importer import load
from neon8.ir.groups import scale_groups
from neon8.rewrite.bits import with_bits
from neon8.runtime import Model
from onnx_nets import net, node, save

F = np.float32
X = np.random.default_rng(7).normal(size=(11, 5)).astype(F)
EYE = np.eye(5, 3, dtype=F)
SCORES = X @ EYE
LABELS = SCORES.argmax(1)


def gemm(folder, batch, kind=TensorProto.FLOAT):
    """y = x times a matrix; with ids, of int64, added, and turned by a sign."""
    matrix = EYE.astype(helper.tensor_dtype_to_np_dtype(kind))
    nodes = [
        node("MatMul", "x w", "m"),
        node("Cast", "ids", "i", to=kind),
        node("Where", "turn i i", "j"),
        node("Add", "m j", "y"),
    ]
    shapes = {"x": (batch, 5), "ids": (batch, 1), "turn": (1,)}
    types = {
        "x": kind,
        "ids": TensorProto.INT64,
        "turn": TensorProto.BOOL,
        "y": kind,
    }
    return save(folder, net(nodes, shapes, "y", {"w": matrix}, types=types))


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_integers_and_float16(tmp_path, kind):
    path = gemm(tmp_path, "n", kind)
    ids = np.arange(11, dtype=np.int32)
    got = evaluate_model(
        path,
        [{"x": X, "ids": ids, "turn": [True], "y": LABELS}],
        reference=path,
    )
    assert (got.n, got.top1, got.agreement) == (11, 100, 100)
    with pytest.raises(DataError, match="input 'ids': values are float64"):
        evaluate_model(path, [{"x": X, "ids": ids * 0.5, "turn": [True]}])


def linear(folder, batch):
    model = net([node("MatMul", "x w", "y")], {"x": (batch, 5)}, "y", {"w": EYE})
    return save(folder, model, f"{batch}.onnx")


def test_a_fixed_batch_counts_every_sample(tmp_path, caplog):
    y = LABELS.copy()
    y[[0, 5, 9]] = (y[[0, 5, 9]] + 1) % 3
    np.savez(tmp_path / "a.npz", x_test=X, y_test=y)
    one, four = linear(tmp_path, 1), linear(tmp_path, 4)
    got = evaluate_model(four, tmp_path / "a.npz", reference=four)
    assert got == evaluate_model(one, tmp_path / "a.npz", reference=one, limit=8)
    assert (got.n, got.top1, got.agreement) == (8, 75, 100)
    assert "left out 3 samples at the end" in caplog.text
    np.savez(tmp_path / "a.npz", x=X, y=np.full(11, 3))
    with pytest.raises(DataError, match="label 3, but the first output has 3 values"):
        evaluate_model(four, tmp_path / "a.npz")


def test_int16_ends(tmp_path):
    """They are fed and read through their own scales, as int8 ones are."""
    weights = {"w": np.random.default_rng(1).normal(size=(6, 3, 3, 3)).astype(F)}
    model = net([node("Conv", "x w", "y", "conv")], {"x": (1, 3, 6, 6)}, "y", weights)
    path, compiled = save(tmp_path, model), tmp_path / "net.n8"
    x = np.random.default_rng(2).normal(size=(20, 3, 6, 6)).astype(F)
    graph = load(path)
    table = solve_observation(observe_model(path, x), graph, method="minmax")
    groups = scale_groups(graph)
    found = {}
    for bits in (8, 16):
        wanted = dict.fromkeys(groups.values(), bits)
        wider = with_bits(table, graph, groups, wanted)
        compiled.write_bytes(compile_model(graph, wider, io="int8"))
        with open_float(compiled) as runner:
            assert set(runner.steps) == {"y"}
            assert runner.run({"x": x[:1]})["y"].dtype == F
        found[bits] = evaluate_model(compiled, x, reference=path).sqnr_db
    with Model.open(compiled) as read:
        assert (read.inputs["x"].dtype, read.outputs["y"].dtype) == ("int16", "int16")
    assert 30 < found[8] < found[16] - 3  # the weights have 8 bits either way


def test_token_ids_are_int64_in_the_file_and_int32_here(tmp_path):
    """Samples of either type serve the network, its .n8 file and the diagnosis."""
    rng = np.random.default_rng(4)
    weights = {"e": rng.normal(size=(50, 16)), "w": rng.normal(size=(16, 5))}
    nodes = [node("Gather", "e x", "a"), node("MatMul", "a w", "y")]
    model = net(nodes, {"x": (1, 6)}, "y", weights)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    path = save(tmp_path, model)
    ids = rng.integers(0, 50, (20, 1, 6))
    table = calibrate_model(path, ids)
    (tmp_path / "net.n8").write_bytes(compile_model(load(path), table))
    for kind in (np.int64, np.int32):
        found = evaluate_model(tmp_path / "net.n8", ids.astype(kind), reference=path)
        assert found.sqnr_db > 30
    assert diagnose_model(path, table, ids).sqnr_db > 30
