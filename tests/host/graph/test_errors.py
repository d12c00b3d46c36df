# SPDX-License-Identifier: Apache-2.0
"""A file that cannot be read is one line with its cause; what cannot run, a list."""

import re

import numpy as np
import onnx
import pytest

from neon8.errors import GraphError
from neon8.graph.importer import load
from onnx_nets import chain, net, node, save, why_opaque
from refusals import refused

F = np.float32
IMAGE = (1, 3, 6, 6)
W = np.ones((4, 3, 3, 3), F)


def unreadable(folder, model, *words):
    """load() refuses the model in one line that has the file's name and all words."""
    path = save(folder, model)
    with refused(GraphError, f"{path}: ", *words):
        load(path)


def opaque(folder, model, *words):
    """load() takes the model, and the one refusal of compiling it has all words."""
    text = why_opaque(folder, model)
    for word in words:
        assert word in text, text


def nan(shape):
    value = np.zeros(shape, F)
    value.reshape(-1)[0] = np.nan
    return value


ONE_OPERATOR = {
    "tan": (("Tan", [], {}), IMAGE, "(operator Tan): is not supported"),
    "nan weights": (("Conv", [nan((4, 3, 3, 3))], {}), IMAGE, "'w0_0' contain NaN"),
    "inf bias": (("Conv", [W, np.full(4, np.inf, F)], {}), IMAGE, "infinity"),
    "inf when folded": (("Gemm", [np.full((3, 1), 3e38, F)], {"alpha": 9.0}), (1, 3),
                        "too large for float32"),
    "gemm C": (("Gemm", [(3, 5), (5, 1)], {}), (1, 3), "n0"),
    "variance": (("BatchNormalization", [(3,), (3,), (3,), np.full(3, -1, F)], {}),
                 IMAGE, "not positive"),
    "dropout": (("Dropout", [F(0.5), np.array(True)], {}), IMAGE, "training_mode"),
    "groups": (("Conv", [W], {"group": 2}), IMAGE, "n0"),
    "kernel_shape": (("Conv", [W], {"kernel_shape": [2, 2]}), IMAGE, "kernel_shape"),
    "negative pads": (("Conv", [W], {"pads": [-1, 0, 0, 0]}), IMAGE, "pads"),
    "stride 0": (("Conv", [W], {"strides": [0, 1]}), IMAGE, ""),
    "auto_pad": (("Conv", [W], {"auto_pad": "SAME"}), IMAGE, ""),
    "kernel too large": (("MaxPool", [], {"kernel_shape": [9, 9]}), IMAGE, ""),
    "pads too large": (("MaxPool", [], {"kernel_shape": [2, 2], "pads": [2, 2, 2, 2]}),
                       IMAGE, "smaller than the kernel"),
    "last window empty": (("MaxPool", [], {"kernel_shape": [1, 1], "ceil_mode": 1,
                                           "strides": [3, 4]}), IMAGE, "opset 22"),
    "div by 0": (("Div", [np.zeros(1, F)], {}), IMAGE, "zero"),
    "concat axis": (("Concat", [(1, 3, 6, 6)], {"axis": 4}), IMAGE, ""),
    "exponent nan": (("Pow", [F(np.nan)], {}), IMAGE, "not finite"),
    "celu 0": (("Celu", [], {"alpha": 0.0}), IMAGE, "not positive"),
    "clip nan": (("Clip", [F(np.nan)], {}), IMAGE, "not a number"),
    "clip inf": (("Clip", [F(np.inf)], {}), IMAGE, "every value infinite"),
    "clip -inf": (("Clip", [None, F(-np.inf)], {}), IMAGE, "every value infinite"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("step", "shape", "word"), ONE_OPERATOR.values(), ids=ONE_OPERATOR
)
def test_one_operator(tmp_path, step, shape, word):
    opaque(tmp_path, chain([step], shape, opset=15), word)


def test_a_node_is_named(tmp_path):
    nodes = [node("Relu", "x", "a"), node("Tan", "a", "y", "the odd one")]
    model = net(nodes, {"x": (1, 1, 6)}, "y")
    opaque(tmp_path, model, "'the odd one' (operator Tan): is not supported")


@pytest.mark.parametrize(
    ("name", "place"),
    [("a", "graph"), ("x", "graph"), ("odd", "node 1"), ("Neg", "node 1")],
)
def test_a_name_that_is_not_utf_8(tmp_path, name, place):
    nodes = [node("Relu", "x", "a"), node("Neg", "a", "y", "odd")]
    content = net(nodes, {"x": (1, 1, 6)}, "y a").SerializeToString()
    bad = b"\xff" * len(name)
    size = bytes([len(name)])
    path = tmp_path / "net.onnx"
    path.write_bytes(content.replace(size + name.encode(), size + bad))
    said = re.escape(f"{path}: {place}: name {bad!r} is not UTF-8; export")
    with pytest.raises(GraphError, match=f"^{said}"):
        load(path)


NETWORKS = {
    "training": ([node("BatchNormalization", "x v v v v", "y m n", training_mode=1)],
                 {"x": IMAGE}, "export for inference"),
    "sum of two shapes": ([node("Sum", "x x z", "y")], {"x": IMAGE, "z": (1, 3, 1, 1)},
                          "as Adds of two"),
    "mean of a constant": ([node("Mean", "x w x", "y")], {"x": IMAGE}, "'w'"),
    "min and a constant": ([node("Min", "x z w", "y")], {"x": IMAGE, "z": IMAGE},
                           "export two operators"),
    "runtime weights": ([node("Conv", "x v", "y")], {"x": IMAGE, "v": (1, 3, 1, 1)},
                        "must be a constant"),
    "sequence": ([node("SplitToSequence", "x", "s", axis=1),
                  node("SequenceAt", "s one", "y")], {"x": IMAGE},
                 "(operator SplitToSequence): sequences are not supported; export it"),
    "runtime shape": ([node("NonZero", "x", "n"), node("Cast", "n", "f", to=1),
                       node("Relu", "f", "y")], {"x": IMAGE}, "NonZero"),
    "pool indices": ([node("MaxPool", "x", "a i", kernel_shape=[99, 99]),
                      node("Cast", "i", "y", to=1)], {"x": (1, 9, 999, 999)},
                     "does not compute"),
    "constant output": ([node("Relu", "x", "z"), node("Identity", "w", "y")],
                        {"x": IMAGE}, "does not depend"),
}  # fmt: skip
INPUTS = {
    "symbolic height": (
        {"x": (1, 3, "h", 6)},
        "is 'h'; give it by --shape x=1,3,?,6",
    ),
    "batch 0": ({"x": (0, 3, 6, 6)}, "dimension 0 is 0"),
    "rank 9": ({"x": (1,) * 9}, "9 dimensions"),
    "no inputs": ({}, "no inputs"),
}


@pytest.mark.parametrize(("nodes", "inputs", "word"), NETWORKS.values(), ids=NETWORKS)
def test_network(tmp_path, nodes, inputs, word):
    weights = {"w": np.ones(IMAGE, F), "v": np.ones(3, F)}
    weights["one"] = np.array(1)
    weights["v3"] = np.arange(3, dtype=F).reshape(3, 1, 1)
    weights = {name: value for name, value in weights.items() if name not in inputs}
    opaque(tmp_path, net(nodes, inputs, "y", weights, opset=15), word)


@pytest.mark.parametrize(("inputs", "word"), INPUTS.values(), ids=INPUTS)
def test_inputs(tmp_path, inputs, word):
    name = next(iter(inputs), "w")
    weights = {} if inputs else {"w": np.ones(IMAGE, F)}
    unreadable(tmp_path, net([node("Relu", name, "y")], inputs, "y", weights), word)


def test_output_that_is_an_input(tmp_path):
    """It may be observed; only the compiler has no place for it."""
    model = net([node("Relu", "x", "y")], {"x": IMAGE}, "x y")
    assert load(save(tmp_path, model)).outputs == ("x", "y")


def test_foreign_operator_old_opset_other_types(tmp_path):
    model = chain([("Relu", [], {})], IMAGE)
    model.graph.node[0].domain = "com.acme"
    model.opset_import.append(onnx.helper.make_opsetid("com.acme", 1))
    opaque(tmp_path, model, "com.acme.Relu", "not an operator of ONNX itself")

    unreadable(
        tmp_path, chain([("Relu", [], {})], IMAGE, opset=6), "opset 6 is too old"
    )

    model = chain([("Relu", [], {})], IMAGE, opset=14)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.INT32
    opaque(tmp_path, model, "'x' is int32, not float32")

    model = chain([("QuantizeLinear", [F(1), np.uint8(0)], {})], IMAGE)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    opaque(tmp_path, model, "neon8 compile takes it as it is")


def test_what_onnx_says_is_kept_whole(tmp_path):
    """The cause, which onnx writes last, and the node; in one line, not too long."""
    model = net([node("Conv", "x w", "y", "conv1")], {"x": IMAGE}, "y", {"w": W})
    model.graph.node[0].input[1] = "elsewhere"
    unreadable(
        tmp_path, model, "'elsewhere'", "name: conv1", "not output of any previous"
    )
    model.graph.node[0].input[1] = "w"
    attribute = onnx.helper.make_attribute("foo", 3)
    model.graph.node[0].attribute.append(attribute)
    unreadable(tmp_path, model, "attribute: foo", "Name: conv1 OpType: Conv")
    model.graph.node[0].name = "long" * 10_000
    with pytest.raises(GraphError, match=r"attribute: foo.*OpType: Conv") as caught:
        load(save(tmp_path, model))
    assert len(str(caught.value)) < 1000


def test_external_data_that_is_missing(tmp_path):
    model = net([node("Conv", "x w", "y")], {"x": IMAGE}, "y", {"w": W})
    path = tmp_path / "net.onnx"
    onnx.save(
        model, path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    (tmp_path / "w.bin").unlink()
    with pytest.raises(GraphError, match="external data"):
        load(path)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"PK\3\4", b"# Markdown\n" * 9, bytes(range(256)) * 64]
)
def test_garbage(tmp_path, data):
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with pytest.raises(GraphError, match=f"^{path}: .*not an ONNX file"):
        load(path)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(GraphError, match="cannot be read"):
            load(path)


def small_net():
    nodes = [
        node("Conv", "x w b", "a", "conv", pads=[1] * 4),
        node("Relu", "a", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", "p s", "f"),
        node("Gemm", "f v", "y"),
    ]
    weights = {
        "w": np.ones((2, 3, 3, 3), F),
        "b": np.ones(2, F),
        "s": np.array([0, -1]),
        "v": np.ones((18, 4), F),
    }
    return net(nodes, {"x": IMAGE}, "y", weights)


def loads_or_refuses(path, data):
    path.write_bytes(data)
    try:
        load(path)
    except GraphError:
        return False
    return True


def test_truncated_anywhere(tmp_path):
    """Nothing but GraphError; whole messages may be missing without anyone noticing."""
    data = small_net().SerializeToString()
    path = tmp_path / "net.onnx"
    assert loads_or_refuses(path, data)
    passed = sum(loads_or_refuses(path, data[:end]) for end in range(0, len(data), 7))
    assert passed <= 2


def test_any_byte_changed(tmp_path):
    data = small_net().SerializeToString()
    rng = np.random.default_rng(5)
    path = tmp_path / "net.onnx"
    for position in range(0, len(data), 5):
        changed = bytearray(data)
        changed[position] ^= int(rng.integers(1, 256))
        loads_or_refuses(path, bytes(changed))


def test_strings(tmp_path):
    model = net([node("Relu", "x", "y"), node("Identity", "labels", "out", "names")],
                {"x": IMAGE}, "y")  # fmt: skip
    labels = onnx.helper.make_tensor("labels", onnx.TensorProto.STRING, [1], [b"cat"])
    model.graph.initializer.append(labels)
    kind = onnx.helper.make_tensor_value_info("out", onnx.TensorProto.STRING, [1])
    model.graph.output.append(kind)
    opaque(
        tmp_path, model, "'names' (operator Identity): tensor 'labels' is of strings"
    )


def test_a_loop(tmp_path):
    """Its body is read, and the node is named."""
    infos = {
        name: onnx.helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("i", onnx.TensorProto.INT64, []),
            ("go", onnx.TensorProto.BOOL, []),
            ("again", onnx.TensorProto.BOOL, []),
            ("v", onnx.TensorProto.FLOAT, IMAGE),
            ("w", onnx.TensorProto.FLOAT, IMAGE),
        )
    }
    body = onnx.helper.make_graph(
        [node("Identity", "go", "again"), node("Relu", "v", "w")],
        "body",
        [infos[name] for name in ("i", "go", "v")],
        [infos[name] for name in ("again", "w")],
    )
    loop = onnx.helper.make_node("Loop", ["n", "", "x"], ["y"], "round", body=body)
    model = net([loop], {"x": IMAGE}, "y", {"n": np.array(3)})
    opaque(tmp_path, model, "'round' (operator Loop): loops are not supported; export")


def test_a_sparse_initializer(tmp_path):
    values = onnx.numpy_helper.from_array(np.ones(1, F), "thin")
    indices = onnx.numpy_helper.from_array(np.array([0]), "")
    model = net([node("Relu", "x", "y")], {"x": IMAGE}, "y")
    model.graph.sparse_initializer.append(
        onnx.helper.make_sparse_tensor(values, indices, [1 << 30])
    )
    unreadable(
        tmp_path, model, "initializer 'thin' is sparse", "store it as a plain one"
    )
