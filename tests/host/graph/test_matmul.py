# SPDX-License-Identifier: Apache-2.0
"""Products of two tensors, and what attention leaves of the moves around them."""

import numpy as np
import pytest

from attention_nets import NETS
from neon8.ir.strided import Axis, Strided, whole
from neon8.operators.matmul import MOST_PRODUCTS, MatMul
from onnx_nets import assert_same, net, node, why_opaque

REFUSED = {
    "gemm C": (node("Gemm", "a b b", "y"), (2, 3), (3, 2), "MatMul, Mul and Add"),
    "gemm alpha": (node("Gemm", "a b", "y", alpha=-1.0), (3, 3), (3, 3), "above 0"),
    "depth": (node("MatMul", "a b", "y"), (1, MOST_PRODUCTS + 1),
              (MOST_PRODUCTS + 1, 1), "int32 is proved to hold 66052"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("made", "first", "second", "text"), REFUSED.values(), ids=REFUSED
)
def test_refusals(tmp_path, made, first, second, text):
    assert text in why_opaque(tmp_path, net([made], {"a": first, "b": second}, "y"))


LEFT = {
    "vit": (2, 0),
    "sdpa": (2, 0),
    "multihead": (1, 0),
    "c2psa": (0, 1),
    "swin": (2, 0),
}
"""Transposes, which are those of the input and the output, and Slices: of c2psa of V,
which a convolution reads, too."""


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", NETS)
def test_attention_moves_nothing(tmp_path, name, batch):
    more = {"batch": batch} if name in ("vit", "sdpa") else {}
    graph = assert_same(tmp_path, NETS[name](**more))
    kinds = [type(each).__name__ for each in graph.nodes]
    assert (kinds.count("Permute"), kinds.count("Gather")) == LEFT[name]
    scores, heads = (each for each in graph.nodes if isinstance(each, MatMul))
    width = {"c2psa": 4, "swin": 32}.get(name, 8)
    assert scores.factor == pytest.approx(width**-0.5)
    assert heads.factor == 1


def test_a_factor_that_is_read_elsewhere_stays(tmp_path):
    nodes = [
        node("MatMul", "a b", "c"),
        node("Mul", "c w", "d"),
        node("Add", "c d", "y"),
    ]
    weights = {"w": np.float32(3)}
    graph = assert_same(tmp_path, net(nodes, {"a": (5, 7), "b": (7, 3)}, "y", weights))
    assert "Conv2d" in [type(each).__name__ for each in graph.nodes]


def test_views():
    """(N, C, H, W) = (2, 6, 3, 1), channels as (3, 2): second of the three, turned."""
    pixels, channels = Axis(3, 1), Axis(2, 0, 1)
    taken = whole((2, 6, 3, 1)).taken(
        (2, 3, 2, 3), [np.arange(2), np.array([1]), np.arange(2), np.arange(3)]
    )
    assert taken is not None
    turned = taken.permuted((2, 2, 3), (0, 2, 1))
    assert turned is not None
    view = turned.along((2, 3, 2))
    assert view == Strided((Axis(2, 3), pixels, channels), 0, 2)
    assert turned.along((3, 4)) is None
    boxes = view.boxes((2, 6, 3, 1))
    assert boxes is not None
    assert boxes.view == (2, 3, 1, 6, 1)
    assert view.of((2, 6, 3, 1), whole((2, 6, 3, 1))) == view
