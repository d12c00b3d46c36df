# SPDX-License-Identifier: Apache-2.0
"""Each kind of step in float32 once, after a tensor "real", to be damaged."""

import numpy as np

from neon8.operators.functions import FUNCTIONS, MOST_FUNCTIONS
from neon8.operators.recurrent import RecurrentOp
from programs import step

F = np.float32
SHAPES = {
    "constant": (6, 1),
    "function": (1, 4, 6, 6),
    "broadcast": (1, 4, 6, 6),
    "conv32": (1, 2, 5, 5),
    "max32": (1, 2, 4, 4),
    "mean32": (1, 2, 2, 2),
    "sequence": (6, 2, 12),
    "state": (1, 2, 5),
    "gru": (7, 1, 2, 5),
    "cell": (1, 2, 5),
    "lstm": (8, 1, 2, 5),
    "rnn": (6, 1, 2, 5),
}
OUTPUTS = ("mean32", "gru", "lstm", "rnn")
WINDOW = {"kernel": (2, 2), "dilations": (1, 1), "pads": (0,) * 4}


def function():
    """elu of x, then add of a constant: indices and values of a Unary."""
    indices = np.zeros(MOST_FUNCTIONS, np.int32)
    values = np.zeros((MOST_FUNCTIONS, 2), F)
    for at, (name, parameter) in enumerate(
        (("x", 0), ("elu", 0.5), ("constant", 2), ("add", 0))
    ):
        indices[at] = FUNCTIONS.index(name)
        values[at, 0] = parameter
    return {"indices": indices, "values": values}


OPTIONS = {
    "indices": np.full(3, FUNCTIONS.index("tanh"), np.int32),
    "values": np.array([3, *[1, 0, -1, 1] * 3, *[0.5] * 15], F),
}
"""Options of an LSTM: activations, a clip and peepholes."""


def recurrent(kind, gates, *states, **options):
    """A layer with five hidden values."""
    rows = 5 * gates
    return RecurrentOp(
        name=kind,
        inputs=("sequence", *states),
        output=kind,
        kind=kind,
        weights=np.ones((1, rows, 17), np.int8),
        multiplier=np.full((1, rows, 2), 0.01, F),
        bias_f32=np.zeros((1, rows, 2), F),
        **options,
    )


def ops():
    """The steps, in order of execution."""
    return (
        step("Constant", "constant", values=np.ones((6, 1), F)),
        step("Unary", "function", "real", **function()),
        step("Binary", "broadcast", "function constant", function="add"),
        step(
            "Conv2dF32",
            "conv32",
            "broadcast",
            bias_f32=np.zeros(2, F),
            values=np.ones((2, 2, 2, 2), F),
            kernel=(2, 2),
            groups=2,
        ),
        step("PoolF32", "max32", "conv32", kind="max", strides=(1, 1), **WINDOW),
        step(
            "PoolF32",
            "mean32",
            "max32",
            kind="average",
            strides=(2, 2),
            count_pad=True,
            **WINDOW,
        ),
        step("Reshape", "sequence", "broadcast"),
        *(
            step("Constant", name, values=np.zeros((1, 2, 5), F))
            for name in ("state", "cell")
        ),
        recurrent("gru", 3, "state"),
        recurrent("lstm", 4, "state", "cell", **OPTIONS),
        recurrent("rnn", 1),
    )
