# SPDX-License-Identifier: Apache-2.0
"""A network with one tensor that 8 bits do not serve."""

import numpy as np

from onnx_nets import chain

CHANNELS = 8
HARD = "t1"
"""The tensor with a channel three hundred times as large as what is read of it: 8 bits
do not serve it unless it is equalized."""
LOUD = 3


def one_hard_tensor(seed=0):
    """Convolutions with ReLU; no layer reads the channel that sets HARD's range."""
    rng = np.random.default_rng(seed)
    first, second, third, last = (
        rng.normal(0, 0.5, (CHANNELS, CHANNELS, 1, 1)).astype(np.float32)
        for _ in range(4)
    )
    first[LOUD] *= 300
    second[:, LOUD] = 0
    steps = [
        ("Conv", [first], {"kernel_shape": [1, 1]}),
        ("Relu", [], {}),
        ("Conv", [second], {"kernel_shape": [1, 1]}),
        ("Relu", [], {}),
        ("Conv", [third], {"kernel_shape": [1, 1]}),
        ("Relu", [], {}),
        ("Conv", [last], {"kernel_shape": [1, 1]}),
    ]
    return chain(steps, [1, CHANNELS, 6, 6])


def images(count, seed=1):
    """Samples, (count, C, 6, 6)."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (count, CHANNELS, 6, 6)).astype(np.float32)
