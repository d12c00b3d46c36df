# SPDX-License-Identifier: Apache-2.0
"""Networks in float32, from ONNX to the library, against onnxruntime."""

import numpy as np
import pytest

from onnx_nets import net, node, save
from whole_nets import built

F = np.float32


def worst(made):
    """The largest error, relative to the largest value of the tensor."""
    return max(
        np.abs(theirs[name] - mine[name]).max() / (np.abs(theirs[name]).max() + 1e-30)
        for theirs, mine in zip(made.wanted, made.found, strict=True)
        for name in mine
    )


IMAGE = (1, 3, 8, 9)


@pytest.mark.parametrize("kept", ["Conv", "MaxPool", "Add", "Sigmoid", "n1"])
def test_one_node_in_float(tmp_path, kept):
    """Any node may be kept: it takes what is there and gives what is wanted."""
    nodes = [
        node("Conv", "x w0", "a", "n0", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", "n1", pads=[1, 1, 1, 1]),
        node("Add", "b c", "d", "sum"),
        node("MaxPool", "d", "e", "pool", kernel_shape=[2, 2]),
        node("Sigmoid", "e", "f", "gate"),
        node("Conv", "f w1", "y", "n2"),
    ]
    rng = np.random.default_rng(2)
    weights = {
        "w0": rng.normal(0, 0.3, (5, 3, 3, 3)).astype(F),
        "w1": rng.normal(0, 0.3, (5, 5, 3, 3)).astype(F),
    }
    path = save(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    made = built(path, keep=[kept])
    assert set(made.program.islands.values()) == {"kept in float32 by request"}
    assert worst(made) < 0.05


def test_a_detection_head(tmp_path):
    """Scores and boxes of two scales are never int8 after their convolutions."""
    rng = np.random.default_rng(4)
    nodes = [node("Conv", "x w", "t", "trunk"), node("Relu", "t", "f")]
    weights = {"w": rng.normal(0, 0.3, (8, 3, 3, 3)).astype(F)}
    for scale, stride in enumerate((1, 2)):
        for what, size in (("score", 2), ("box", 4)):
            name = f"{what}{scale}"
            weights[f"{name}_w"] = rng.normal(0, 0.3, (3 * size, 8, 1, 1)).astype(F)
            weights[f"{name}_shape"] = np.array([1, -1, size])
            nodes += [
                node("Conv", f"f {name}_w", f"{name}_c", strides=[stride, stride]),
                node("Transpose", f"{name}_c", f"{name}_t", perm=[0, 2, 3, 1]),
                node("Reshape", f"{name}_t {name}_shape", f"{name}_r"),
            ]
    rows = 3 * (30 * 30 + 15 * 15)
    priors = rng.uniform(0, 1, (1, rows, 4)).astype(F)
    weights |= {"center": priors[..., :2], "size": priors[..., 2:], "variance": F(0.1)}
    weights |= {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4])}
    weights |= {"half": F(2), "axis": np.array([2])}
    nodes += [
        node("Concat", "score0_r score1_r", "s", axis=1),
        node("Softmax", "s", "scores", axis=2),
        node("Concat", "box0_r box1_r", "raw", axis=1),
        node("Slice", "raw zero two axis", "xy"),
        node("Slice", "raw two four axis", "wh"),
        node("Mul", "xy variance", "xy1"),
        node("Mul", "xy1 size", "xy2"),
        node("Add", "xy2 center", "xy3"),
        node("Mul", "wh variance", "wh1"),
        node("Exp", "wh1", "wh2"),
        node("Mul", "wh2 size", "wh3"),
        node("Div", "wh3 half", "wh4"),
        node("Sub", "xy3 wh4", "low"),
        node("Add", "xy3 wh4", "high"),
        node("Concat", "low high", "boxes", axis=2),
    ]
    shape = (1, 3, 32, 32)
    path = save(tmp_path, net(nodes, {"x": shape}, "scores boxes", weights))
    made = built(path)
    program = made.program
    convolutions = {"trunk"} | {op.name for op in program.ops if "Conv" in op.name}
    int8 = {op.name for op in program.ops if program.tensors[op.output].dtype == "int8"}
    assert int8 <= {"x", "trunk"} | convolutions
    after = [op for op in program.ops if op.name not in convolutions | {"x"}]
    assert after
    assert not any(program.tensors[op.output].dtype == "int8" for op in after)
    assert worst(made) < 0.03
