# SPDX-License-Identifier: Apache-2.0
"""Attention, against onnxruntime."""

import numpy as np
import pytest

from neon8.graph.importer import load
from neon8.operators.matmul import MatMul
from onnx_nets import assert_same, net, node, save, why_opaque

HEADS = {"q": (1, 4, 5, 8), "k": (1, 4, 7, 8), "v": (1, 4, 7, 6)}
FLAT = {"q": (2, 5, 32), "k": (2, 7, 16), "v": (2, 7, 12)}
GROUPS = {"q_num_heads": 4, "kv_num_heads": 2}
SEEN = np.tri(5, 7, 2, bool)
NETS = {
    "plain": ("q k v", HEADS, {}, {}),
    "joined and causal": ("q k v", FLAT, {}, {**GROUPS, "is_causal": 1}),
    "any mask": ("q k v m", {**HEADS, "m": (4, 5, 7)}, {}, {"is_causal": 1}),
}


@pytest.mark.parametrize("name", NETS)
def test_attention(tmp_path, name):
    inputs, shapes, weights, attributes = NETS[name]
    nodes = [node("Attention", inputs, "y", "a", **attributes)]
    model = net(nodes, shapes, "y", weights, opset=23)
    assert_same(tmp_path, model)
    products = [n for n in load(save(tmp_path, model)).nodes if isinstance(n, MatMul)]
    assert len(products) == 2


def test_refused(tmp_path):
    """Who sees nothing gets 0, which no softmax gives."""
    nodes = [node("Attention", "q k v seen", "y", "a")]
    model = net(nodes, HEADS, "y", {"seen": SEEN & False}, opset=23)
    assert "Attention" in why_opaque(tmp_path, model)
