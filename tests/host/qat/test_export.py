# SPDX-License-Identifier: Apache-2.0
"""What is trained is what is exported, and what the runtime computes."""

import numpy as np
import onnxruntime
import pytest
import torch

import neon8
from neon8.compile.lower import lower
from neon8.qat import prepare
from neon8.qat.export import float_network, table_of
from torch_nets import NETWORKS, network

SCHEMES = ("auto", "symmetric", "symmetric_with_uint8")


@pytest.fixture(
    scope="module", params=[(n, s) for n in NETWORKS for s in SCHEMES], ids="-".join
)
def trained(request):
    """A network after a few steps of training, and its inputs."""
    name, scheme = request.param
    model, inputs = network(name)
    made = prepare(model, inputs, scheme=scheme).train()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.01)
    for number in range(6):
        if number == 4:
            made.freeze()
        optimizer.zero_grad()
        outputs = made(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        sum(each.square().mean() for each in outputs).backward()
        optimizer.step()
    return made.eval(), inputs, scheme


def outputs_of(model, inputs):
    with torch.no_grad():
        found = model(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    return [each.numpy() for each in found]


def assert_close(got, want, share=0.02):
    """But for sums between two levels, which float adds in another order.

    share: of values that may be a level off somewhere.
    """
    for one, other in zip(got, want, strict=True):
        error = np.abs(one - other)
        assert error.max() < 0.1 * np.abs(other).max()
        assert (error > 1e-4 * np.abs(other).max()).mean() <= share


def test_onnxruntime_computes_the_same(trained, tmp_path):
    model, inputs, scheme = trained
    path = tmp_path / "q.onnx"
    model.export(path)
    options = onnxruntime.SessionOptions()
    # Its kernels on integers are another implementation, judged by neon8's own tests.
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(str(path), options)
    names = [each.name for each in session.get_inputs()]
    assert [each.shape[0] for each in session.get_inputs()] == ["N"] * len(inputs)
    feeds = dict(zip(names, (each.numpy() for each in inputs), strict=True))
    # ONNX saturates at -128, the symmetric scheme at -127.
    share = 0.02 if scheme == "auto" else 1
    assert_close(session.run(None, feeds), outputs_of(model, inputs), share)


def test_the_runtime_computes_the_same(trained, tmp_path):
    model, inputs, scheme = trained
    path = tmp_path / "q.onnx"
    model.export(path)
    want = outputs_of(model, inputs)
    got = []
    program = neon8.compile_model(path)
    with neon8.Model.from_bytes(program) as net, net.session() as session:
        for index in range(len(want[0])):
            row = {
                name: each.numpy()[index : index + 1]
                for name, each in zip(net.inputs, inputs, strict=True)
            }
            got.append(list(session.run(row).values()))
    share = 0.02 if scheme == "auto" else 1
    assert_close([np.concatenate(each) for each in zip(*got, strict=True)], want, share)


def test_a_table_of_the_same_scales_gives_the_same(trained, tmp_path):
    model, inputs, _ = trained
    path = tmp_path / "net.onnx"
    path.write_bytes(float_network(model))
    neon8.save_table(table_of(model, neon8.load_graph(path)), tmp_path / "t.json")
    program = neon8.compile_model(path, neon8.load_table(tmp_path / "t.json"))
    row = [each.numpy()[:1] for each in inputs]
    with neon8.Model.from_bytes(program) as net, net.session() as session:
        got = session.run(dict(zip(net.inputs, row, strict=True)))
    want = [each[:1] for each in outputs_of(model, inputs)]
    assert_close(list(got.values()), want, 0.05)


def test_it_rounds_where_the_runtime_does(trained, tmp_path):
    model, _, _ = trained
    path = tmp_path / "net.onnx"
    path.write_bytes(float_network(model))
    graph = neon8.load_graph(path)
    program = lower(graph, table_of(model, graph))
    moved = {
        step.name for step in model.traced.steps if getattr(step.layer, "moves", 0)
    }
    rounded = {
        name.partition(".")[0].removesuffix("_int8")
        for name, tensor in program.tensors.items()
        if tensor.dtype == "int8"
    }
    assert rounded - moved == set(model.names) - moved
