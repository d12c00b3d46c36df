# SPDX-License-Identifier: Apache-2.0
"""Networks of which neon8 runs a part, and cut ones run by hand."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import neon8
from onnx_nets import net, node

F = np.float32
FOREIGN = "com.microsoft"


def weights(*shapes, seed=0):
    """Random ones by the names w0, w1 ..."""
    rng = np.random.default_rng(seed)
    return {
        f"w{number}": rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(F)
        for number, shape in enumerate(shapes)
    }


def foreign(model, shapes):
    """Nodes named after an output in `shapes` become operators of another domain.

    shapes: of these outputs, which onnx cannot infer.
    """
    for each in model.graph.node:
        if each.output[0] in shapes:
            each.domain, each.op_type = FOREIGN, "QuickGelu"
    del model.graph.value_info[:]
    model.graph.value_info.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in shapes.items()
    )
    model.opset_import.append(helper.make_opsetid(FOREIGN, 1))
    return model


def front():
    """Preprocessing of another domain, one of it an output, and a tail of NonZero.

    The batch is free.
    """
    nodes = [
        node("Sin", "x", "q", "aside"),
        node("Sin", "x", "p", "pre"),
        node("Conv", "p w0", "a", "c1", pads=[1] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", "c2", pads=[1] * 4),
        node("Relu", "c", "d"),
        node("Conv", "d w2", "e", "c3"),
        node("Sigmoid", "e", "s"),
        node("Round", "s", "g"),
        node("NonZero", "g", "places", "where"),
    ]
    constants = weights((8, 3, 3, 3), (16, 8, 3, 3), (4, 16, 1, 1))
    model = net(
        nodes,
        {"x": ("n", 3, 8, 8)},
        "s places q",
        constants,
        types={"places": TensorProto.INT64},
    )
    return foreign(model, dict.fromkeys("pq", ("n", 3, 8, 8)))


def tail():
    """A Loop after the convolutions, which reads an inner tensor of theirs, too."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            node("Mul", "old_state half", "scaled"),
            node("Add", "scaled b", "new_state"),
            node("Identity", "goes_on", "goes_on_still"),
        ],
        "body",
        [
            value("step", TensorProto.INT64, ()),
            value("goes_on", TensorProto.BOOL, ()),
            value("old_state", TensorProto.FLOAT, (1, 8, 8, 8)),
        ],
        [
            value("goes_on_still", TensorProto.BOOL, ()),
            value("new_state", TensorProto.FLOAT, (1, 8, 8, 8)),
        ],
    )
    nodes = [
        node("Conv", "x w0", "a", "c1", pads=[1] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", "c2", pads=[1] * 4),
        node("Loop", "times yes c", "y", "loop", body=body),
    ]
    constants = weights((8, 3, 3, 3), (8, 8, 3, 3))
    constants |= {"times": np.array(3), "yes": np.array(True), "half": F(0.5)}
    return net(nodes, {"x": (1, 3, 8, 8)}, "y", constants)


def middle(first, second):
    """Convolutions to so many channels before a foreign operator, and after it."""
    nodes = [
        node("Conv", "x w0", "a", "c1", pads=[1] * 4),
        node("Conv", "a w1", "b", "c2"),
        node("Sin", "b", "m", "between"),
        node("Conv", "m w2", "c", "c3", pads=[1] * 4),
        node("Conv", "c w3", "y", "c4"),
    ]
    shapes = (first, 3, 3, 3), (4, first, 1, 1), (second, 4, 3, 3), (2, second, 1, 1)
    model = net(nodes, {"x": (1, 3, 8, 8)}, "y", weights(*shapes))
    return foreign(model, {"m": (1, 4, 8, 8)})


def tokens():
    """Integers come in, and strings go out."""
    nodes = [
        node("Cast", "ids", "f", "numbers", to=TensorProto.FLOAT),
        node("Gemm", "f w0", "h", "dense", transB=1),
        node("Relu", "h", "r"),
        node("Gemm", "r w1", "y", "dense2", transB=1),
        node("Cast", "ids", "names", "spelled", to=TensorProto.STRING),
        node("NonZero", "y", "places", "where"),
    ]
    return net(
        nodes,
        {"ids": (1, 4)},
        "y names places",
        weights((16, 4), (4, 16)),
        types={
            "ids": TensorProto.INT64,
            "names": TensorProto.STRING,
            "places": TensorProto.INT64,
        },
    )


def branch():
    """An If of a condition that the data decides, one branch reading what is inside."""
    value = helper.make_tensor_value_info
    one = helper.make_graph(
        [node("Neg", "b", "t")], "then", [], [value("t", TensorProto.FLOAT, None)]
    )
    other = helper.make_graph(
        [node("Identity", "x", "u")], "else", [], [value("u", TensorProto.FLOAT, None)]
    )
    nodes = [
        node("Conv", "x w0", "a", "c1", pads=[1] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", "c2"),
        node("ReduceMax", "c", "m", "top", keepdims=0),
        node("Cast", "m", "some", "decide", to=TensorProto.BOOL),
        node("If", "some", "y", "branch", then_branch=one, else_branch=other),
    ]
    constants = weights((3, 3, 3, 3), (4, 3, 1, 1))
    return net(nodes, {"x": (1, 3, 6, 6)}, "y c", constants)


def doubles():
    """A network of float64, which the .n8 file computes as float32."""
    nodes = [
        node("MatMul", "x w0", "h", "dense"),
        node("Relu", "h", "r"),
        node("MatMul", "r w1", "y", "dense2"),
        node("Cast", "y", "single", to=TensorProto.FLOAT),
        node("NonZero", "single", "places", "where"),
    ]
    constants = {
        name: value.astype(np.float64)
        for name, value in weights((12, 16), (16, 5)).items()
    }
    kinds = {"x": TensorProto.DOUBLE, "y": TensorProto.DOUBLE}
    kinds["places"] = TensorProto.INT64
    return net(nodes, {"x": (1, 12)}, "y places", constants, types=kinds)


def function():
    """A function of the file's own, which the part after it calls."""
    model = net(
        [node("Conv", "x w0", "a", "c1"), node("Sin", "a", "y", "own")],
        {"x": (1, 3, 6, 6)},
        "y",
        weights((4, 3, 3, 3)),
    )
    model.graph.node[1].domain, model.graph.node[1].op_type = "my", "Twice"
    inner = helper.make_function(
        "my", "Inner", ["v"], ["w"], [node("Add", "v v", "w")],
        [helper.make_opsetid("", 13)],
    )  # fmt: skip
    outer = helper.make_function(
        "my", "Twice", ["v"], ["w"],
        [helper.make_node("Inner", ["v"], ["w"], domain="my")],
        [helper.make_opsetid("my", 1)],
    )  # fmt: skip
    spare = helper.make_function(
        "my", "Spare", ["v"], ["w"], [node("Neg", "v", "w")],
        [helper.make_opsetid("", 13)],
    )  # fmt: skip
    model.functions.extend([inner, outer, spare])
    model.opset_import.append(helper.make_opsetid("my", 1))
    return model


def channels_last():
    """As TensorFlow has it; what both branches read is not in the file N C H W."""
    first, last = {"perm": [0, 3, 1, 2]}, {"perm": [0, 2, 3, 1]}
    nodes = [
        node("Transpose", "x", "x1", **first),
        node("Conv", "x1 w0", "c1", "c1", pads=[1] * 4),
        node("Transpose", "c1", "c", **last),
        node("Add", "c shift", "d"),
        node("Sin", "d", "m", "between"),
        node("Transpose", "m", "m1", **first),
        node("Conv", "m1 w1", "y1", "c2", pads=[1] * 4),
        node("Transpose", "y1", "y", **last),
        node("Mul", "d shift", "e"),
        node("Transpose", "e", "e1", **first),
        node("Conv", "e1 w2", "z1", "c3"),
        node("Transpose", "z1", "z", **last),
    ]
    constants = weights((8, 3, 3, 3), (32, 8, 3, 3), (2, 8, 1, 1))
    constants["shift"] = np.linspace(-1, 1, 8, dtype=F)
    model = net(nodes, {"x": (1, 9, 8, 3)}, "y z", constants)
    return foreign(model, {"m": (1, 9, 8, 8)})


def constant():
    """What a foreign operator makes of a constant: nothing of the input is before."""
    nodes = [
        node("Conv", "x w0", "a", "c1"),
        node("Sin", "w1", "k", "scaling"),
        node("Mul", "a k", "b"),
        node("Conv", "b w2", "y", "c2"),
    ]
    constants = weights((4, 3, 3, 3), (1, 4, 6, 6), (2, 4, 1, 1))
    model = net(nodes, {"x": (1, 3, 8, 8)}, "y", constants)
    return foreign(model, {"k": (1, 4, 6, 6)})


def counted():
    """As many numbers as a value says, and how many they are."""
    nodes = [
        node("Conv", "x w0", "a", "c1"),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "y", "c2"),
        node("ReduceMax", "y", "m", "top", keepdims=0),
        node("Cast", "m", "n", "whole", to=TensorProto.INT64),
        node("Range", "zero n one", "numbers", "upwards"),
        node("Shape", "numbers", "size", "how many"),
    ]
    constants = weights((4, 3, 3, 3), (2, 4, 1, 1))
    constants |= {"zero": np.array(0), "one": np.array(1)}
    kinds = dict.fromkeys(("numbers", "size"), TensorProto.INT64)
    outputs = "y numbers size"
    return net(nodes, {"x": (1, 3, 8, 8)}, outputs, constants, types=kinds)


NETS = {
    "front": front,
    "tail": tail,
    "middle-first": lambda: middle(16, 8),
    "middle-second": lambda: middle(8, 16),
    "channels-last": channels_last,
    "tokens": tokens,
    "branch": branch,
    "doubles": doubles,
    "function": function,
    "constant": constant,
    "counted": counted,
}


def samples(graph, count=16, seed=1):
    """Random inputs of a Graph with one input."""
    rng = np.random.default_rng(seed)
    (name,) = graph.inputs
    tensor = graph.tensors[name]
    shape = (count, *tensor.dims)
    if not tensor.real:
        return [{name: each} for each in rng.integers(0, 9, shape)]
    return [{name: each} for each in rng.normal(size=shape).astype(tensor.dtype)]


def run_onnx(model, values):
    """All outputs of an ONNX file, of the tensors in `values` that it takes.

    model: its path, or its content.
    """
    model = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(model)
    names = [each.name for each in session.get_outputs()]
    given = {each.name: values[each.name] for each in session.get_inputs()}
    return dict(zip(names, session.run(names, given), strict=True))


def run_by_hand(path, inputs):
    """All tensors of a cut network in its three files, `path` being the .n8 file."""
    before, after = (
        path.with_name(f"{path.stem}.{part}.onnx") for part in ("before", "after")
    )
    values = dict(inputs)
    if before.exists():
        values |= run_onnx(before, values)
    with neon8.Model.open(path) as model, model.session() as session:
        given = {
            name: values[name].astype(info.dtype) for name, info in model.inputs.items()
        }
        values |= session.run(given)
    if after.exists():
        types = {
            value.name: helper.tensor_dtype_to_np_dtype(
                value.type.tensor_type.elem_type
            )
            for value in onnx.load(after).graph.input
        }
        given = {name: values[name].astype(kind) for name, kind in types.items()}
        values |= run_onnx(after, given)
    return values
