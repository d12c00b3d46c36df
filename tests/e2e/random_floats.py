# SPDX-License-Identifier: Apache-2.0
"""Random steps in float32."""

import dataclasses

import numpy as np

from neon8.operators.functions import ARGUMENTS, FUNCTIONS, MOST_FUNCTIONS
from random_net import Net, pick_float, window

ONE_VALUE = tuple(name for name in FUNCTIONS if ARGUMENTS.get(name) == 1)
TWO_VALUES = (
    *("add", "subtract", "multiply", "divide", "minimum", "maximum", "prelu"),
    *("power", "remainder", "modulo"),
)
PARAMETERS = {
    "power": (2.0, 3.0, -1.0, 0.5, 0.3, 0.0, 70.0),
    "elu": (1.0, 0.5),
    "leaky": (0.1, -0.5, 0.0),
    "threshold": (0.0, 1.0),
    "constant": (0.5, -2.0, 0.0),
}
BOUNDS = ((0.0, 6.0), (-np.inf, 1.0), (-1.0, np.inf), (0.0, 0.0))


def finish(net: Net, kind, out, /, *sources, **fields) -> None:
    """Append a step, and half of the time the int8 form of a float result."""
    net.grow(kind, out, *sources, **fields)
    if out.dtype == "float32":
        grow_quantize(net, out)


def grow_quantize(net: Net, source) -> None:
    """The int8 or int16 form of a float tensor, half of the time."""
    if net.rng.integers(2):
        out = net.tensor(source.shape, dtype=net.width())
        net.grow("Quantize", out, source)


def like(net: Net, source):
    """A new tensor with the dimensions of `source`."""
    out = dataclasses.replace(source, name=f"t{len(net.tensors)}")
    net.tensors[out.name] = out
    return out


def grow_softmax(net: Net) -> None:
    """Softmax along one of the axes."""
    source = pick_float(net)
    out = like(net, source)
    axis = int(net.rng.integers(source.rank))
    finish(net, "Softmax", out, source, axis=axis)


def grow_move(net: Net, pick=pick_float) -> None:
    """Reshape or Concat of floats, or of what `pick` gives."""
    source = pick(net)
    batch, channels, height, width = source.shape
    axis = int(net.rng.integers(4))
    if axis == 0:
        shapes = [
            (batch, height, channels, width),
            (1, batch * channels, width, height),
        ]
        shape = shapes[int(net.rng.integers(len(shapes)))]
        out = net.tensor(shape, dtype=source.dtype)
        finish(net, "Reshape", out, source)
    else:
        shape = list(source.shape)
        shape[axis] *= 2
        out = net.tensor(shape, dtype=source.dtype)
        finish(net, "Concat", out, source, source, axis=axis)


def constant(net: Net, dims):
    """A constant with these dimensions, zeros and large values among it."""
    values = net.rng.normal(0, 1, dims)
    odd = net.rng.choice([0.0, -0.0, 1e30, -1e-30, np.inf, -np.inf], dims)
    values = np.where(net.rng.random(dims) < 0.1, odd, values).astype(np.float32)
    out = net.tensor((1, 1, 1, 1), dtype="float32")
    out = dataclasses.replace(out, dims=tuple(int(size) for size in dims))
    net.tensors[out.name] = out
    net.grow("Constant", out, values=values)
    return out


def random_function(net: Net, depth: int = 3):
    """(name, parameters) of a tree in postfix order."""
    kind = int(net.rng.integers(4)) if depth else 0
    if kind == 0:
        if net.rng.integers(3):
            return [("x", (0.0, 0.0))]
        return [("constant", (net.rng.choice(PARAMETERS["constant"]), 0.0))]
    first = random_function(net, depth - 1)
    if kind == 1:
        name = str(net.rng.choice(TWO_VALUES[:4]))
        return [*first, *random_function(net, depth - 1), (name, (0.0, 0.0))]
    name = str(net.rng.choice(ONE_VALUE))
    if name == "narrow":
        return [*first, (name, (net.rng.integers(1, 13), net.rng.integers(-149, 4)))]
    if name == "clip":
        return [*first, (name, BOUNDS[int(net.rng.integers(len(BOUNDS)))])]
    return [*first, (name, (net.rng.choice(PARAMETERS.get(name, (0.0,))), 0.0))]


def grow_unary(net: Net) -> None:
    """A random function of each value, or one that has a form of its own in float32."""
    source = pick_float(net)
    alone = [("x", (0.0, 0.0)), (str(net.rng.choice(["sigmoid", "tanh"])), (0.0, 0.0))]
    tree = random_function(net) if net.rng.integers(4) else alone
    indices = np.zeros(MOST_FUNCTIONS, np.int32)
    values = np.zeros((MOST_FUNCTIONS, 2), np.float32)
    for at, (name, parameters) in enumerate(tree):
        indices[at] = FUNCTIONS.index(name)
        values[at] = parameters
    out = like(net, source)
    finish(net, "Unary", out, source, indices=indices, values=values)


def grow_binary(net: Net) -> None:
    """Two tensors, often broadcast, or one and a constant."""
    source = pick_float(net)
    same = [t for t in net.floats if t.dims == source.dims]
    other = same[int(net.rng.integers(len(same)))]
    if net.rng.integers(3):
        kept = net.rng.integers(2, size=source.rank)
        if net.rng.integers(2):
            kept = np.arange(source.rank) == 1  # a value for each channel
        dims = [
            size if keep else 1 for size, keep in zip(source.dims, kept, strict=True)
        ]
        other = constant(net, dims[int(net.rng.integers(len(dims) + 1)) :])
    pair = [source, other]
    if net.rng.integers(2):
        pair.reverse()
    out = like(net, source)
    finish(net, "Binary", out, *pair, function=str(net.rng.choice(TWO_VALUES)))


def grow_conv(net: Net) -> None:
    """Any groups, depthwise among them, windows that reach into the padding."""
    source = pick_float(net)
    batch, channels, height, width = source.shape
    rows, columns = window(net, height), window(net, width)
    divisors = [n for n in range(1, channels + 1) if channels % n == 0]
    groups = int(net.rng.choice([1, channels, net.rng.choice(divisors)]))
    outputs = groups * int(net.rng.choice([1, 1, 2, 9])) if groups > 1 else 11
    kernel = (rows[0], columns[0])
    shape = (outputs, *kernel, channels // groups)
    out = net.tensor((batch, outputs, rows[5], columns[5]), dtype="float32")
    finish(
        net,
        "Conv2dF32",
        out,
        source,
        bias_f32=net.rng.normal(0, 1, outputs).astype(np.float32),
        values=net.rng.normal(0, 1, shape).astype(np.float32),
        kernel=kernel,
        strides=(rows[1], columns[1]),
        dilations=(rows[2], columns[2]),
        pads=(rows[3], columns[3], rows[4], columns[4]),
        groups=groups,
    )


def grow_pool(net: Net, kind: str, draw) -> None:
    """As of int8; draw(net, source): the fields of a window, and the output's shape."""
    source = pick_float(net)
    fields, shape = draw(net, source)
    out = net.tensor(shape, dtype="float32")
    count_pad = kind == "average" and bool(net.rng.integers(2))
    finish(net, "PoolF32", out, source, kind=kind, count_pad=count_pad, **fields)


def gate_options(net: Net, kind, directions, hidden):
    """Other activations, a clip and peepholes, at times."""
    rng = net.rng
    if rng.integers(2):
        return {}
    names = [FUNCTIONS.index(str(rng.choice(["x", "sigmoid", "tanh"]))) for _ in "fgh"]
    forms = [
        rng.choice([[1, 0, -np.inf, np.inf], [0.2, 0.5, 0, 1], [-1, 0, -3, 4]])
        for _ in names
    ]
    holes = rng.normal(0, 1, 3 * directions * hidden if kind == "lstm" else 0)
    values = np.concatenate([[rng.choice([np.inf, 0.5, 8])], *forms, holes])
    return {"indices": np.array(names, np.int32), "values": values.astype(np.float32)}


def grow_recurrent(net: Net) -> None:
    """GRU, LSTM and RNN, in each direction, with and without states."""
    rng = net.rng
    kind = str(rng.choice(["gru", "lstm", "rnn"]))
    gates = {"gru": 3, "lstm": 4, "rnn": 1}[kind]
    states = 2 if kind == "lstm" else 1
    source = pick_float(net)
    size = int(np.prod(source.shape))
    steps = int(rng.choice([n for n in range(1, 25) if size % n == 0]))
    batch = int(rng.choice([1, 1, 2])) if size // steps % 2 == 0 else 1
    inputs = size // steps // batch
    directions, hidden = int(rng.integers(1, 3)), int(rng.integers(1, 20))
    x = net.tensor((1, 1, 1, 1), dtype="float32")
    x = dataclasses.replace(x, dims=(steps, batch, inputs))
    net.tensors[x.name] = x
    net.grow("Reshape", x, source)
    given = []
    if rng.integers(2):
        dims = (directions, batch, hidden)
        given = [constant(net, dims) for _ in range(states)]
    more = states if rng.integers(2) else 0
    dims = (steps + more, directions, batch, hidden)
    out = dataclasses.replace(x, name=f"t{len(net.tensors)}", dims=dims)
    net.tensors[out.name] = out
    rows = gates * hidden
    scale = rng.uniform(0, 0.03, (directions, rows, 2))
    finish(
        net,
        "Recurrent",
        out,
        x,
        *given,
        kind=kind,
        weights=rng.integers(-127, 128, (directions, rows, inputs + hidden), np.int8),
        multiplier=scale.astype(np.float32),
        bias_f32=rng.normal(0, 1, (directions, rows, 2)).astype(np.float32),
        **gate_options(net, kind, directions, hidden),
        reverse=directions == 1 and bool(rng.integers(2)),
        linear_before_reset=kind == "gru" and bool(rng.integers(2)),
    )
