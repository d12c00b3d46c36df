# SPDX-License-Identifier: Apache-2.0
"""A small network with every kind of tensor that observations tell apart, and data."""

import numpy as np

from neon8.data.samples import Sample
from onnx_nets import net, node

SHAPE = (1, 3, 8, 8)


def branchy():
    """Two convolutions with activations, a Concat, a depthwise one, pools, a Gemm."""
    rng = np.random.default_rng(5)

    def weight(*shape):
        return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)

    nodes = [
        node("Conv", "x w1 b1", "s1", "c1", pads=[1] * 4),
        node("Relu", "s1", "a1", "r1"),
        node("Conv", "x w2", "s2", "c2", pads=[1] * 4),
        node("LeakyRelu", "s2", "a2", "r2", alpha=0.1),
        node("Concat", "a1 a2", "both", "cat", axis=1),
        node("Conv", "both w3", "s3", "dw", pads=[1] * 4, group=12),
        node("MaxPool", "s3", "m3", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "m3", "g3", "mean"),
        node("Flatten", "g3", "f3", "flat"),
        node("Gemm", "f3 w4 b4", "y", "fc", transB=1),
    ]
    weights = {
        "w1": weight(8, 3, 3, 3),
        "b1": weight(8),
        "w2": weight(4, 3, 3, 3),
        "w3": weight(12, 1, 3, 3),
        "w4": weight(5, 12),
        "b4": weight(5),
    }
    return net(nodes, {"x": SHAPE}, "y", weights)


def images(count, *, seed=3):
    """(count, 3, 8, 8) float32 of very different ranges, some of them mostly zeros."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (count, *SHAPE[1:])) * 2.0 ** rng.integers(
        -9, 9, (count, 1, 1, 1)
    )
    x[::3] = np.maximum(x[::3], 0)
    return x.astype(np.float32)


def samples(count, *, seed=3):
    return [
        Sample(name=f"s{number}", inputs={"x": image[np.newaxis]})
        for number, image in enumerate(images(count, seed=seed))
    ]
