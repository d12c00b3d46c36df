# SPDX-License-Identifier: Apache-2.0
"""What compile says of a network beside the sizes."""

import numpy as np
import pytest

from command_lines import succeed
from onnx_nets import net, node, save


@pytest.mark.parametrize("operator", ["TopK", "ArgMax", "NonMaxSuppression"])
def test_compile_says_that_int8_scores_may_tie(tmp_path, capsys, operator):
    """And the remedy that it names is one."""
    rng = np.random.default_rng(1)
    rank = (
        node("TopK", "s k", "v i", "best")
        if operator == "TopK"
        else node("ArgMax", "s", "i", "best", axis=3)
    )
    nodes = [
        node("Conv", "x w", "a", "c1"),
        node("Relu", "a", "s"),
        rank,
        node("GlobalAveragePool", "s", "y"),
    ]
    constants = {"w": rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)}
    if operator == "TopK":
        constants["k"] = np.array([3], np.int64)
    if operator == "NonMaxSuppression":
        nodes[2:3] = [
            node("Reshape", "s rows", "boxes"),
            node("Reshape", "s lists", "scores"),
            node("NonMaxSuppression", "boxes scores k", "i", "best"),
        ]
        constants["rows"], constants["lists"] = np.array([[1, 32, 4], [1, 4, 32]])
        constants["k"] = np.array([3])
    model = net(nodes, {"x": (1, 3, 6, 6)}, "i y", constants, types={"i": 7})
    path, table, x = save(tmp_path, model), tmp_path / "t.json", tmp_path / "x.npy"
    np.save(x, rng.normal(size=(20, 3, 6, 6)).astype(np.float32))
    said = {}
    named = "int16:scores" if operator == "NonMaxSuppression" else "int16:s"
    for remedy in ("", named):
        options = ["--precision", remedy] if remedy else []
        succeed(capsys, "calibrate", path, "--data", x, "-o", table, *options)
        words = ["compile", path, "--scales", table, "-o", tmp_path / "n.n8"]
        said[remedy] = succeed(capsys, *words)
    assert "ranks int8 values" in said[""]
    assert f"--precision {named}\n" in said[""]
    assert "ranks" not in said[named]
