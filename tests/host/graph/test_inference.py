# SPDX-License-Identifier: Apache-2.0
"""Constants: what is folded, and that a tiny file cannot ask for time or memory."""

import itertools
import sys
import textwrap

import numpy as np
import onnx
import pytest

from neon8.errors import GraphError
from neon8.graph.importer import load
from onnx_nets import assert_same, net, node, save
from processes import ran

F = np.float32
IMAGE = (1, 3, 6, 6)
HUGE = 10**12
TIME = 20  # seconds of processor time for all files; the slowest took 48
MEMORY = 1 << 30  # bytes of address space beyond the modules; one took 7.7 GB

# Each makes "big", a list of integers, and each of the others reads it.
MAKERS = {
    "Range": [node("Range", "zero huge one", "big")],
    "ConstantOfShape": [node("ConstantOfShape", "size", "big")],
    "Expand": [node("Expand", "ones size", "big")],
    "Tile": [node("Tile", "ones size", "big")],
    "Pad": [node("Pad", "ones pads", "big")],
    "Resize": [
        node("Cast", "ones", "f", to=1),
        onnx.helper.make_node("Resize", ["f", "", "", "size"], ["r"]),
        node("Cast", "r", "big", to=7),
    ],
    "OneHot": [node("OneHot", "zero huge ends", "big")],
    "EyeLike": [
        node("ConstantOfShape", "square", "s"),
        node("EyeLike", "s", "e"),
        node("Reshape", "e all", "big"),
    ],
    "RandomNormal": [
        node("RandomNormal", "", "f", shape=[HUGE]),
        node("Cast", "f", "big", to=7),
    ],
    "HannWindow": [node("HannWindow", "huge", "big", output_datatype=7)],
    "Concat": [
        node("Expand", "ones half", "h"),
        node("Concat", "h h", "big", axis=0),
    ],
    "input": [
        node("Reshape", "x all", "f"),
        node("Expand", "f size", "g"),
        node("Cast", "g", "big", to=7),
    ],
    "many": [
        node("ConstantOfShape", "million", "m0"),
        *(node("Add", f"m{i} m{i}", f"m{i + 1}") for i in range(100)),
        node("Identity", "m100", "big"),
    ],
}
READERS = {
    "none": [],
    "Add": [node("Add", "big big", "o")],
    "Concat": [node("Concat", "big big", "o", axis=0)],
    "Cast": [node("Cast", "big", "o", to=1)],
    "string": [node("Cast", "big", "o", to=8)],
    "Gather": [node("Gather", "big big", "o")],
    "Slice": [node("Slice", "big zeros ends", "o")],
    "Size": [node("Size", "big", "o")],
    "Reshape": [node("Reshape", "x big", "o")],
    "Expand": [node("Expand", "x big", "o")],
    "Tile": [node("Tile", "x big", "o")],
    "Pad": [node("Pad", "x big", "o")],
    "Resize": [onnx.helper.make_node("Resize", ["x", "", "", "big"], ["o"])],
    "Split": [node("Split", "x big", "o p", axis=1)],
    "Unsqueeze": [node("Unsqueeze", "x big", "o")],
    "ConstantOfShape": [node("ConstantOfShape", "big", "o")],
    "If": [
        onnx.helper.make_node(
            "If", ["yes"], ["o"], then_branch=onnx.helper.make_graph(
                [node("Reshape", "x big", "t")], "then", [],
                [onnx.ValueInfoProto(name="t")]),
            else_branch=onnx.helper.make_graph(
                [node("Reshape", "x big", "e")], "else", [],
                [onnx.ValueInfoProto(name="e")])),
    ],
}  # fmt: skip
WEIGHTS = {
    "zero": np.array(0), "one": np.array(1), "ones": np.array([1]),
    "zeros": np.array([0]), "huge": np.array(HUGE), "size": np.array([HUGE]),
    "half": np.array([HUGE // 2]), "pads": np.array([0, HUGE]),
    "ends": np.array([0, 1]), "all": np.array([-1]), "yes": np.array(True),
    "square": np.array([10**6, 10**6]), "million": np.array([10**6]),
}  # fmt: skip
SCRIPT = """
    import resource, sys, time
    from neon8.errors import GraphError
    from neon8.graph.importer import load
    import onnx.reference
    has = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit = has + {memory}
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, ({time}, {time}))
    for line in sys.stdin:
        print(line.strip(), flush=True)
        try:
            load(line.strip())
        except GraphError as error:
            assert str(error).count(chr(10)) == 0
    print("done")
"""


def test_a_tiny_file_cannot_fill_the_memory(tmp_path):
    paths = []
    for maker, reader in itertools.product(MAKERS, READERS):
        nodes = [*MAKERS[maker], *READERS[reader], node("Relu", "x", "y")]
        model = onnx.helper.make_model(
            onnx.helper.make_graph(
                nodes,
                "net",
                [onnx.helper.make_tensor_value_info("x", 1, IMAGE)],
                [onnx.helper.make_tensor_value_info("y", 1, IMAGE)],
                [onnx.numpy_helper.from_array(v, name) for name, v in WEIGHTS.items()],
            ),
            opset_imports=[onnx.helper.make_opsetid("", 17)],
            ir_version=8,
        )
        paths.append(str(save(tmp_path, model, f"{maker}-{reader}.onnx")))
    script = textwrap.dedent(SCRIPT.format(memory=MEMORY, time=TIME))
    done = ran(sys.executable, "-I", "-c", script, input="\n".join(paths))
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, last) == (0, "done"), (last, done.stderr[-2000:])


def test_a_sparse_constant_is_refused(tmp_path):
    values = onnx.numpy_helper.from_array(np.ones(1, F), "v")
    indices = onnx.numpy_helper.from_array(np.array([0]), "i")
    sparse = onnx.helper.make_sparse_tensor(values, indices, [1 << 30])
    nodes = [
        onnx.helper.make_node("Constant", [], ["c"], sparse_value=sparse),
        node("Relu", "x", "y"),
    ]
    with pytest.raises(GraphError, match="sparse weights are"):
        load(save(tmp_path, net(nodes, {"x": IMAGE}, "y")))


def test_large_weights_pass_through_many_nodes(tmp_path):
    """A budget for hostile files that no exporter's chain of nodes comes near."""
    w = np.random.default_rng(1).normal(size=(2000, 2000)).astype(F)
    nodes = [
        node("Transpose", "w", "a", perm=[1, 0]),
        node("Reshape", "a shape", "b"),
        node("Identity", "b", "c"),
        node("Mul", "c half", "d"),
        node("Gemm", "x d", "y"),
    ]
    weights = {"w": w, "shape": np.array([2000, 2000]), "half": F(0.5)}
    assert_same(tmp_path, net(nodes, {"x": (1, 2000)}, "y", weights))


def test_shape_arithmetic(tmp_path):
    """Expand, Where, Equal, Range, Tile: what exporters write for view and expand."""
    nodes = [
        node("Shape", "x", "s"),
        node("Range", "zero three one", "r"),
        node("Gather", "s r", "front"),
        node("Equal", "front minus", "eq"),
        node("Where", "eq ones3 front", "front2"),
        node("Tile", "one1 two", "tail"),
        node("Expand", "one1 one1", "more"),
        node("Concat", "front2 minus tail more", "shape", axis=0),
        node("Slice", "shape zero1 four", "shape4"),
        node("Reshape", "x shape4", "y"),
    ]
    weights = {
        "zero": np.array(0), "one": np.array(1), "three": np.array(3),
        "ones3": np.ones(3, np.int64), "one1": np.array([1]), "two": np.array([2]),
        "minus": np.array([-1]), "zero1": np.array([0]), "four": np.array([4]),
    }  # fmt: skip
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert graph.tensors["y"].shape == IMAGE


def test_shape_arithmetic_of_old_opsets(tmp_path):
    """Unsqueeze, Squeeze and Slice, whose axes and ends were attributes once."""
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s", "front", axes=[0], starts=[0], ends=[1]),
        node("Squeeze", "front", "n", axes=[0]),
        node("Unsqueeze", "n", "first", axes=[0]),
        node("Concat", "first rest", "shape", axis=0),
        node("Reshape", "x shape", "y"),
    ]
    weights = {"rest": np.array([-1])}
    for opset in (7, 9):
        model = net(nodes, {"x": IMAGE}, "y", weights, opset=opset)
        assert assert_same(tmp_path, model).tensors["y"].dims == (1, 108)


def test_a_constant_is_cast_like_a_tensor(tmp_path):
    """As PyTorch's exporter writes each weight, unless it is told to optimize."""
    nodes = [node("CastLike", "half x", "w"), node("Conv", "x w", "y")]
    half = np.ones((2, 3, 1, 1), np.float16)
    model = net(nodes, {"x": IMAGE}, "y", {"half": half}, opset=18)
    assert [item.name for item in assert_same(tmp_path, model).nodes] == ["Conv_y"]


def test_a_table_of_waves_is_folded(tmp_path):
    """Positions as sines of many places, and numbers that say which of them to take."""
    rng = np.random.default_rng(0)
    nodes = [
        node("CumSum", "ones axis", "places"),
        node("Sin", "places", "s"),
        node("Cos", "places", "c"),
        node("Concat", "s c", "waves", axis=1),
        node("GatherElements", "waves chosen", "few", axis=1),
        node("Add", "x few", "t"),
        node("Conv", "t w", "y"),
    ]
    weights = {
        "ones": np.ones((6, 5000), F),
        "axis": np.array(1),
        "chosen": rng.integers(-10000, 10000, (6, 6)),
        "w": rng.normal(0, 1, (2, 3, 1, 1)).astype(F),
    }
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights, opset=17))
    assert not {"waves", "few"} & graph.tensors.keys()


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scale", [None, 1, 1.1])
def test_a_resize_that_changes_nothing(tmp_path, mode, scale):
    """Exporters write it where a size happens to fit; of a constant it is one.

    A scale that makes the same size copies as well, in onnxruntime.
    """
    rng = np.random.default_rng(1)
    tail = ["", "", "sizes"] if scale is None else ["", "scales"]
    nodes = [
        onnx.helper.make_node("Resize", ["x", *tail], ["r"], mode=mode),
        onnx.helper.make_node("Resize", ["table", *tail], ["t"], mode=mode),
        node("Conv", "t v", "places"),
        node("Add", "r places", "s"),
        node("Conv", "s w", "y"),
    ]
    weights = {
        "scales": np.array([1, 1, scale or 1, scale or 1], F),
        "sizes": np.array(IMAGE),
        "table": rng.normal(0, 1, IMAGE).astype(F),
        "v": rng.normal(0, 1, (3, 3, 1, 1)).astype(F),
        "w": rng.normal(0, 1, (2, 3, 1, 1)).astype(F),
    }
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights, opset=18))
    assert not {"r", "t", "places"} & graph.tensors.keys()


def test_a_conv_of_a_large_constant_is_folded(tmp_path):
    """A position table of EdgeNeXt, of 50 000 values and 64 channels."""
    rng = np.random.default_rng(2)
    nodes = [node("Conv", "table w", "places"), node("Add", "x places", "y")]
    weights = {
        "table": rng.normal(0, 1, (1, 64, 32, 32)).astype(F),
        "w": rng.normal(0, 1, (48, 64, 1, 1)).astype(F),
    }
    model = net(nodes, {"x": (1, 48, 32, 32)}, "y", weights)
    assert "places" not in assert_same(tmp_path, model).tensors
