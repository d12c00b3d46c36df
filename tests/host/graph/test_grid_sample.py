# SPDX-License-Identifier: Apache-2.0
"""GridSample, against onnxruntime, inside the image and far outside of it."""

import numpy as np
import pytest

import neon8
from onnx_nets import assert_same, net, node, save, why_opaque

F = np.float32
X = (2, 3, 5, 4)
GRID = (2, 6, 7, 2)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_modes(tmp_path, mode, padding, align):
    rng = np.random.default_rng(1)
    grid = rng.uniform(-3, 3, GRID).astype(F)
    made = node(
        "GridSample", "x g", "y", mode=mode, padding_mode=padding, align_corners=align
    )
    model = net([made], {"x": X, "g": GRID}, "y", opset=20)
    assert_same(tmp_path, model, inputs={"g": grid})


def test_names_of_opset_16(tmp_path):
    nodes = [
        node("GridSample", "x g", "a", mode="bilinear"),
        node("GridSample", "x g", "b", mode="bicubic"),
        node("Relu", "x", "c"),
    ]
    assert_same(tmp_path, net(nodes, {"x": X, "g": GRID}, "a b c", opset=16))


def test_one_pixel(tmp_path):
    made = node("GridSample", "x g", "y", padding_mode="reflection", align_corners=1)
    grid = np.array([[[[0.3, -0.2]]]], F)
    model = net([made], {"x": (1, 2, 3, 3), "g": grid.shape}, "y", opset=20)
    assert_same(tmp_path, model, inputs={"g": grid})


def test_volumes_are_refused(tmp_path):
    ends = {"x": (1, 2, 3, 3, 3), "g": (1, 2, 2, 2, 3)}
    model = net([node("GridSample", "x g", "y", "n")], ends, "y", opset=20)
    assert "node 'n' (operator GridSample)" in why_opaque(tmp_path, model)


def test_what_was_observed_can_be_read_again(tmp_path):
    """What GridSample makes inside has no scale, and names no group of tensors."""
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("Reshape", "c shape", "m"),
        node("GridSample", "m g", "y"),
    ]
    rng = np.random.default_rng(1)
    weights = {"w": rng.normal(size=(3, 3, 1, 1)).astype(F), "shape": np.array(X)}
    model = net(nodes, {"x": X, "g": GRID}, "y", weights, opset=20)
    path, file = save(tmp_path, model), tmp_path / "net.calib"
    inputs = {"x": rng.normal(size=X), "g": rng.uniform(-1, 1, GRID)}
    sample = {name: values.astype(F) for name, values in inputs.items()}
    made = neon8.observe_model(path, [sample], output=file)
    assert neon8.load_observation(file).scale_groups == made.scale_groups
