# SPDX-License-Identifier: Apache-2.0
"""Attention, against onnxruntime."""

import numpy as np

from onnx_nets import net, node, why_opaque

HEADS = {"q": (1, 4, 5, 8), "k": (1, 4, 7, 8), "v": (1, 4, 7, 6)}
SEEN = np.tri(5, 7, 2, bool)


def test_refused(tmp_path):
    """Who sees nothing gets 0, which no softmax gives."""
    nodes = [node("Attention", "q k v seen", "y", "a")]
    model = net(nodes, HEADS, "y", {"seen": SEEN & False}, opset=23)
    assert "Attention" in why_opaque(tmp_path, model)
