# SPDX-License-Identifier: Apache-2.0
"""Opening an ONNX file: read once, the large weights apart, and still all checked."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from neon8.calibrate.run.collector import open_network
from neon8.calibrate.run.reference import Reference
from neon8.errors import GraphError
from neon8.graph.extend import batch_sizes
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.graph.protos import LARGE
from neon8.operators.convolution import Conv2d
from onnx_nets import assert_same, net, node, save

F = np.float32
IMAGE = (1, 8, 6, 6)
X = np.random.default_rng(1).normal(0, 1, IMAGE).astype(F)


def weights(seed=0):
    """A large one, which is kept apart, and a small one."""
    rng = np.random.default_rng(seed)
    large, small = rng.normal(0, 1, (16, 8, 3, 3)), rng.normal(0, 1, 16)
    assert 4 * large.size >= LARGE > 4 * small.size
    return {"w": large.astype(F), "b": small.astype(F)}


def model(*, seed=0, outputs="y"):
    nodes = [node("Conv", "x w b", "c", "conv"), node("Relu", "c", "y")]
    return net(nodes, {"x": IMAGE}, outputs, weights(seed))


def tensor(made, name):
    return next(item for item in made.graph.initializer if item.name == name)


def conv(graph):
    (only,) = (item for item in graph.nodes if isinstance(item, Conv2d))
    return only


def run(path, *names):
    return {name: value.copy() for name, value in Reference(path, names)
            .run({"x": X}).items()}  # fmt: skip


def test_large_weights_are_there_once(tmp_path):
    path = save(tmp_path, model())
    file = open_onnx(path)
    assert list(file.weights) == ["w"]
    assert len(file.model) < LARGE
    assert np.shares_memory(conv(load(file)).weight, file.weights["w"])
    assert open_onnx(file) is file


def test_a_file_that_changes_is_read_once(tmp_path, monkeypatch):
    """What is observed and the network that runs are of the same file."""
    path = save(tmp_path, model(seed=0))
    expected = run(path, "c")["c"]
    versions = iter([model(seed=n).SerializeToString() for n in range(9)])
    monkeypatch.setattr(Path, "read_bytes", lambda _: next(versions))
    network = open_network(path).first
    assert conv(network.graph).weight.tobytes() == weights(0)["w"].tobytes()
    values = network.references[0].run({"x": X})
    assert values["c"].tobytes() == expected.tobytes()


def test_extra_outputs(tmp_path):
    """One that is an output already, one twice, and those of the file as they were."""
    path = save(tmp_path, model())
    plain, more = run(path), run(path, "y", "c", "c")
    assert list(plain) == ["y"]
    assert list(more) == ["y", "c"]
    assert more["y"].tobytes() == plain["y"].tobytes()
    assert np.array_equal(np.maximum(more["c"], 0), more["y"])


@pytest.mark.parametrize("threshold", [0, LARGE])
def test_weights_beside_the_file(tmp_path, threshold):
    """The same network, and a digest over the file and then each of them."""
    inline = save(tmp_path, model(), "inline.onnx")
    path = tmp_path / "net.onnx"
    onnx.save(model(), path, save_as_external_data=True, location="net.bin",
              size_threshold=threshold)  # fmt: skip
    outside = [value.tobytes() for value in weights().values()
               if value.nbytes >= threshold]  # fmt: skip
    digest = hashlib.sha256(b"".join([path.read_bytes(), *outside])).hexdigest()

    assert load(path).digest == digest
    assert load(inline).digest == hashlib.sha256(inline.read_bytes()).hexdigest()
    for one, other in zip(load(path).nodes, load(inline).nodes, strict=True):
        assert one.weight.tobytes() == other.weight.tobytes()
        assert one.bias.tobytes() == other.bias.tobytes()
    assert run(path, "c")["c"].tobytes() == run(inline, "c")["c"].tobytes()


def test_the_digest_covers_constants_beside_the_file(tmp_path):
    value = numpy_helper.from_array(weights()["w"], "w")
    data = value.raw_data
    value.ClearField("raw_data")
    value.data_location = onnx.TensorProto.EXTERNAL
    value.external_data.add(key="location", value="w.bin")
    nodes = [onnx.helper.make_node("Constant", [], ["w"], value=value)]
    nodes.append(node("Conv", "x w", "y"))
    path, digests = tmp_path / "net.onnx", set()
    for content in (data, bytes(len(data))):
        (tmp_path / "w.bin").write_bytes(content)
        graph = onnx.helper.make_graph(nodes, "net", *[
            [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)]
            for name, shape in (("x", IMAGE), ("y", (1, 16, 4, 4)))
        ])  # fmt: skip
        made = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8
        )
        path.write_bytes(made.SerializeToString())
        digests.add(open_onnx(path).digest.result())
    assert len(digests) == 2


@pytest.mark.parametrize("version", [3, 8])
def test_weights_that_are_inputs_too(tmp_path, version):
    """As every weight was before IR 4; since then, they may be."""
    made = model()
    for name, value in weights().items():
        kind = onnx.TensorProto.FLOAT
        made.graph.input.append(
            onnx.helper.make_tensor_value_info(name, kind, value.shape)
        )
    made.ir_version = version
    assert_same(tmp_path, made)
    assert batch_sizes(tmp_path / "net.onnx")["x"] == 1
    kept = onnx.ModelProto.FromString(open_onnx(tmp_path / "net.onnx").model)
    inputs = [value.name for value in kept.graph.input]
    assert (inputs == ["x"]) == (version == 3), "as constants, onnxruntime folds them"


def test_large_constants_are_folded(tmp_path):
    """Weights that nodes make of others, and those that no node reads."""
    large = weights()["w"]
    made = net(
        [
            node("Transpose", "t", "w", perm=[3, 2, 1, 0]),
            node("Constant", "", "f", value=numpy_helper.from_array(F(2) * large)),
            node("Add", "w f", "sum"),
            node("Conv", "x sum", "c"),
            node("Relu", "c", "y"),
        ],
        {"x": IMAGE},
        "y",
        {"t": large.T, "dead": large},
    )
    graph = assert_same(tmp_path, made)
    assert np.array_equal(conv(graph).weight, large + F(2) * large)


def test_weights_of_a_branch(tmp_path):
    """onnxruntime runs more than neon8 imports."""
    large = weights()["w"]

    def branch(operator):
        value = onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
        nodes = [node(operator, "w", "z")]
        return onnx.helper.make_graph(nodes, operator, [], [value])

    branches = {"then_branch": branch("Neg"), "else_branch": branch("Identity")}
    made = net(
        [node("If", "yes", "i", **branches), node("Conv", "x i", "y")],
        {"x": IMAGE},
        "y",
        {"w": large, "yes": np.array(True)},
    )
    path = save(tmp_path, made)
    assert list(open_onnx(path).weights) == ["w"]
    straight = net([node("Conv", "x w", "y")], {"x": IMAGE}, "y", {"w": -large})
    expected = run(save(tmp_path, straight, "straight.onnx"))["y"]
    # Weights that are known late may meet another kernel, which sums in another order.
    assert np.allclose(run(path)["y"], expected, rtol=0, atol=1e-5)


def longer(item):
    item.raw_data += b"\0\0\0\0"


def shorter(item):
    item.raw_data = item.raw_data[:-4]


def negative(item):
    item.dims[0] *= -1
    item.dims.append(-1)


def empty(item):
    item.dims[0] = 0


def huge(item):
    item.dims[0] = 1 << 62


def twice(item):
    item.float_data.append(1)


def segment(item):
    item.segment.begin, item.segment.end = 0, 1


def untyped(item):
    item.data_type = 0


@pytest.mark.parametrize("name", ["w", "b"])
@pytest.mark.parametrize(
    "change",
    [longer, shorter, negative, empty, huge, twice, segment, untyped],
)
def test_odd_weights_are_refused(tmp_path, change, name):
    made = model()
    change(tensor(made, name))
    path = save(tmp_path, made)
    with pytest.raises(GraphError, match=f"^{path}: .*'?{name}\\b") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def repeated(graph):
    graph.initializer.append(graph.initializer[0])


def made_by_a_node(graph):
    graph.node.append(node("Relu", "x", "w"))


def nameless(graph):
    graph.initializer.add().CopyFrom(graph.initializer[0])
    graph.initializer[-1].name = ""


@pytest.mark.parametrize("change", [repeated, made_by_a_node, nameless])
def test_names_are_checked(tmp_path, change):
    made = model()
    change(made.graph)
    path = save(tmp_path, made)
    with pytest.raises(GraphError, match=f"^{path}: is not valid ONNX: "):
        open_onnx(path)


def test_weights_of_old_files_that_are_no_inputs(tmp_path):
    """Invalid before IR 4, but onnxruntime's quantizer adds such ones to old files."""
    made = model()
    made.ir_version = 3
    assert_same(tmp_path, made)
