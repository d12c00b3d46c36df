# SPDX-License-Identifier: Apache-2.0
"""Random steps without weights, and the table of all that a network grows from."""

from dataclasses import replace

import numpy as np

import random_floats
import random_integers
import random_places
from neon8.operators.interpolation import ends
from random_convs import grow_conv, grow_depthwise
from random_integers import pick_any
from random_net import Net, gain, pick, pick_float, pick_wide, window


def grow_add(net: Net) -> None:
    """Sum of two tensors of one shape, or of one with itself."""
    a = pick_wide(net)
    same = [t for t in net.levels if t.shape == a.shape]
    b = same[int(net.rng.integers(len(same)))]
    append_sum(net, a, b, a.shape, (0.5, 0.25, 2.0, 0.37, 1e-30))


def append_sum(net: Net, a, b, shape, choices) -> None:
    """choices: factors of the second tensor."""
    out = net.tensor(shape, dtype=net.width())
    net.grow(
        "Add",
        out,
        a,
        b,
        scale=np.float32(2.0 ** net.rng.uniform(-3, 2) * gain(out) / gain(a)),
        residual_scale=factor(net, choices, b, out),
        **net.activation(out),
    )


def factor(net: Net, choices, source, out):
    """One of the choices, times what the ranges of the levels ask for."""
    value = float(net.rng.choice(choices)) * gain(out) / gain(source)
    least = 1e-30 if value > 0 else 0
    return np.float32(min(max(value, least) if value >= 0 else value, 2.0**64))


def broadcast_pair(net: Net):
    """Two operands and the shape of their result: one may have ones for its sizes."""
    a = pick_wide(net)
    fitting = [
        t
        for t in net.levels
        if all(1 in (m, n) or m == n for m, n in zip(a.shape, t.shape, strict=True))
    ]
    b = fitting[int(net.rng.integers(len(fitting)))]
    if net.rng.integers(2):
        b = reduced(net, a)
    if net.rng.integers(2):
        a, b = b, a
    shape = tuple(max(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    if np.prod(shape) > 30000:
        return a, a, a.shape
    return a, b, shape


def reduced(net: Net, a):
    """`a` with some sizes made 1 by a pool over all of them."""
    batch, channels, height, width = a.shape
    rows, columns = (bool(net.rng.integers(3)) for _ in range(2))
    kernel = (height if rows else 1, width if columns else 1)
    shape = (batch, channels, 1 if rows else height, 1 if columns else width)
    out = net.tensor(shape, like=a)
    net.grow(
        "Pool",
        out,
        a,
        kind="max",
        kernel=kernel,
        strides=(1, 1),
        dilations=(1, 1),
        pads=(0, 0, 0, 0),
        lo=out.lo,
        hi=out.hi,
    )
    return out


def grow_sum(net: Net) -> None:
    """Sum or difference of two tensors, one of them broadcast at times."""
    a, b, shape = broadcast_pair(net)
    append_sum(net, a, b, shape, (0.5, -0.5, -1.0, -0.37, 0.0))


def grow_product(net: Net, kind) -> None:
    """Product or quotient of two tensors, one of them broadcast at times."""
    a, b, shape = broadcast_pair(net)
    out = net.tensor(shape, dtype=net.width())
    product = kind == "Multiply"
    wider = gain(out) / gain(a) / gain(b) if product else gain(out)
    scales = [2.0**-7, 2.0**-8, 1e-30, 0.0061] if product else [8, 0.5, 1e19]
    scales = [min(max(scale * wider, 1e-30), 2.0**64) for scale in scales]
    fields = {"scale": np.float32(net.rng.choice(scales))}
    if product and net.rng.integers(2):
        each = net.rng.choice([*scales, 0.0], shape[1]).astype(np.float32)
        fields = {"scale": np.float32(0), "multiplier": each}
    net.grow(
        kind,
        out,
        a,
        b,
        **fields,
        **net.activation(out),
    )


def grow_total(net: Net) -> None:
    """Sum of two tensors or more of one shape, the same ones at times."""
    a = pick_wide(net)
    same = [t for t in net.levels if t.shape == a.shape]
    count = int(net.rng.integers(2, 6))
    summed = [same[int(net.rng.integers(len(same)))] for _ in range(count)]
    out = net.tensor(a.shape, dtype=net.width())
    values = net.rng.choice([0.5, -0.25, 1, 0.37, 0], count)
    values = values * [gain(out) / gain(source) for source in summed]
    net.grow(
        "Sum",
        out,
        *summed,
        values=values.astype(np.float32),
        **net.activation(out),
    )


def grow_extreme(net: Net) -> None:
    """The larger or smaller of a tensor and a constant on its grid, broadcast."""
    a = pick_wide(net)
    b = net.tensor([1 if net.rng.integers(2) else size for size in a.shape], like=a)
    levels = net.rng.integers(b.lo, b.hi + 1, int(np.prod(b.shape)), a.dtype)
    net.grow("Constant", b, levels=levels)
    out = net.tensor(a.shape, like=a)
    kind = "Maximum" if net.rng.integers(2) else "Minimum"
    net.grow(kind, out, *((a, b) if net.rng.integers(2) else (b, a)))


def grow_table(net: Net) -> None:
    """Any table at all, or one for each run of channels, or for channels anywhere."""
    source = pick(net)
    out = net.tensor(source.shape)
    channels = source.shape[1]
    most = int(net.rng.choice([1, 2, 3, 200]))
    each = net.rng.integers(0, most, channels)
    if net.rng.integers(2):
        each.sort()
    numbers = {number: at for at, number in enumerate(dict.fromkeys(each.tolist()))}
    shape = (len(numbers), 256) if len(numbers) > 1 else 256
    table = net.rng.integers(out.lo, out.hi + 1, shape, np.int8)
    fields = {}
    if len(numbers) > 1:
        fields["indices"] = np.array([numbers[at] for at in each.tolist()], np.int32)
    net.grow("Table", out, source, table=table, **fields)


def grow_interpolate(net: Net) -> None:
    """Any lines at all; the input or the output is int16."""
    source = pick_wide(net)
    out = net.tensor(
        source.shape, dtype="int16" if source.dtype == "int8" else net.width()
    )
    lo, hi = ends(source)
    groups = 1 << int(net.rng.integers(max((hi - lo).bit_length() - 12, 0), 16))
    most = 2 ** int(net.rng.integers(6, 16))
    lines = net.rng.integers(-most, most, ((hi - lo) // groups + 1, 2))
    net.grow("Interpolate", out, source, lines=lines.astype(np.int16), groups=groups)


def grow_lrn(net: Net) -> None:
    """The settings of AlexNet, and others."""
    source = pick(net)
    out = net.tensor(source.shape)
    size = net.rng.choice([1, 3, 5, 5, 41])
    alpha = net.rng.choice([1e-4, 0.0, 0.5, 30.0])
    beta = net.rng.choice([0.75, 0.5, 1.0, 0.0, 0.6])
    net.grow(
        "Lrn",
        out,
        source,
        values=np.array([size, alpha, beta, net.rng.choice([1, 2, 0.01])], np.float32),
    )


def grow_instance_norm(net: Net) -> None:
    """Any gamma and beta; images of one value, which have no variance, too."""
    source = pick(net)
    out = net.tensor(source.shape)
    channels = source.shape[1]
    values = net.rng.normal(0, 1, 2 * channels + 1)
    values[-1] = net.rng.choice([1e-5, 1e-3, 1e-30])
    net.grow(
        "InstanceNorm",
        out,
        source,
        values=values.astype(np.float32),
        **net.activation(out),
    )


def grow_softmax(net: Net) -> None:
    """Along any axis; the results mostly fill the output's range."""
    source = pick_wide(net)
    out = net.tensor(source.shape, dtype=net.width())
    if net.rng.integers(4):
        fitting = np.float32(net.rng.choice([1, 0.3, 0.05]) / (out.hi - out.lo))
        out = net.tensors[out.name] = replace(out, scale=fitting)
    net.grow("SoftmaxQ", out, source, axis=int(net.rng.integers(out.rank)))


def grow_normalization(net: Net) -> None:
    """Groups of the channels of pixels or of images; some have no variance."""
    source = pick_wide(net)
    out = net.tensor(source.shape, dtype=net.width())
    channels = source.shape[1]
    values = net.rng.normal(0, 1, 2 * channels + 1)
    values[:-1] *= gain(out)
    values[-1] = net.rng.choice([1e-5, 1e-3, 1e-30, 1e10])
    net.grow(
        "Normalization",
        out,
        source,
        values=values.astype(np.float32),
        groups=int(
            net.rng.choice([n for n in (1, 1, 2, 3, channels) if channels % n == 0])
        ),
        axis=int(net.rng.choice([1, 3])),
        function=str(net.rng.choice(["none", "subtract", "subtract"])),
        **net.activation(out),
    )


def grow_requantize(net: Net) -> None:
    """Another scale, another type, or an activation."""
    source = pick_wide(net)
    out = net.tensor(source.shape, dtype=net.width())
    net.grow(
        "Requantize",
        out,
        source,
        scale=factor(net, (0.5, 1.5, 2.0**64, 1e-30, 0.773), source, out),
        **net.activation(out),
    )


def pool_window(net: Net, source):
    """The fields of a pool whose windows all have a tap inside, and its shape."""
    batch, channels, height, width = source.shape
    while True:
        rows, columns = window(net, height), window(net, width)
        if net.rng.integers(4) == 0:  # global
            rows, columns = (height, 1, 1, 0, 0, 1), (width, 1, 1, 0, 0, 1)
        if inside(rows, height) and inside(columns, width):
            break
    # One more row or column, as ceil_mode gives: taps beyond the padding never count.
    rows, columns = longer(net, rows, height), longer(net, columns, width)
    fields = {
        "kernel": (rows[0], columns[0]),
        "strides": (rows[1], columns[1]),
        "dilations": (rows[2], columns[2]),
        "pads": (rows[3], columns[3], rows[4], columns[4]),
    }
    return fields, (batch, channels, rows[5], columns[5])


def grow_pool(net: Net, kind: str) -> None:
    """Max or average, each window having a tap inside; some averages to float."""
    source = pick_wide(net)
    fields, shape = pool_window(net, source)
    if kind == "max":
        out = net.tensor(shape, like=source)
    else:
        out = net.tensor(
            shape, dtype="float32" if net.rng.integers(4) == 0 else source.dtype
        )
    net.grow(
        "Pool",
        out,
        source,
        kind=kind,
        count_pad=kind == "average" and bool(net.rng.integers(2)),
        **net.clamp(out),
        **fields,
    )


def inside(axis, size) -> bool:
    """True if every window has a tap in the input."""
    kernel, stride, dilation, before, _, out = axis
    at = np.arange(out)[:, None] * stride - before + np.arange(kernel) * dilation
    return bool(((at >= 0) & (at < size)).any(axis=1).all())


def longer(net, axis, size):
    """The axis with one more output where that still touches the input."""
    more = (*axis[:5], axis[5] + 1)
    return more if inside(more, size) and net.rng.integers(2) else axis


def grow_concat(net: Net) -> None:
    """Two or three tensors, rescaled first, along N, C, H or W."""
    axis = int(net.rng.choice([0, 1, 1, 2, 3]))
    first = pick_wide(net)
    rest = first.shape[:axis] + first.shape[axis + 1 :]
    fitting = [t for t in net.levels if t.shape[:axis] + t.shape[axis + 1 :] == rest]
    pieces = [first]
    for _ in range(net.rng.integers(1, 3)):
        piece = fitting[int(net.rng.integers(len(fitting)))]
        if (piece.scale, piece.dtype) != (first.scale, first.dtype):
            copy = net.tensor(piece.shape, like=first)
            net.grow(
                "Requantize",
                copy,
                piece,
                scale=np.float32(piece.scale / first.scale),
                lo=first.lo,
                hi=first.hi,
            )
            piece = copy
        pieces.append(piece)
    shape = list(first.shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    out = net.tensor(shape, like=first)
    net.grow("Concat", out, *pieces, axis=axis)


def grow_reshape(net: Net) -> None:
    """Another shape of as many values."""
    source = pick_wide(net)
    batch, channels, height, width = source.shape
    shapes = [
        (batch, channels * height * width, 1, 1),
        (batch, height, channels, width),
        (batch, channels, width, height),
        (batch, 1, height, channels * width),
        (1, batch * channels, height, width),
        source.shape,
    ]
    shape = shapes[int(net.rng.integers(len(shapes)))]
    out = net.tensor(shape, like=source)
    net.grow("Reshape", out, source)


def move(net: Net, source, shape, kind: str, **fields) -> None:
    """A step that moves the values of a tensor of any type."""
    real = source.dtype == "float32"
    out = net.tensor(shape, **({"dtype": "float32"} if real else {"like": source}))
    net.grow(kind, out, source, **fields)
    if real:
        random_floats.grow_quantize(net, out)


def grow_permute(net: Net) -> None:
    """Axes turned, some of them cut in two; the output is a shape that they make."""
    source = pick_any(net)
    view = [size for dim in source.shape for size in cut(net, dim)][:8]
    if np.prod(view) != np.prod(source.shape):  # too many axes
        view = list(source.shape)
    order = [int(axis) for axis in net.rng.permutation(len(view))]
    turned = [view[axis] for axis in order]
    ends = sorted(int(end) for end in net.rng.integers(0, len(view) + 1, 3))
    pieces = np.split(np.array(turned, np.int64), ends)
    rest = list(range(len(view), 8))
    indices = np.array([view + [1] * len(rest), order + rest], np.int32)
    shape = [int(np.prod(piece)) for piece in pieces]
    move(net, source, shape, "Permute", indices=indices)


def cut(net: Net, size: int) -> list[int]:
    """One axis as one or two."""
    factor = int(net.rng.choice([f for f in range(1, size + 1) if size % f == 0]))
    return [factor, size // factor] if net.rng.integers(2) else [size]


def grow_gather(net: Net) -> None:
    """For each axis all, a slice, some of them doubled, or some in any order."""
    source = pick_any(net)
    lists = []
    for size in source.shape:
        taken = np.arange(size)
        kind = net.rng.integers(6)
        if kind == 0:
            taken = taken[net.rng.integers(size) :: net.rng.choice([1, 2, -1])]
        elif kind == 1:
            taken = net.rng.permutation(size)
        elif kind == 2 and size < 40:
            taken = np.repeat(taken, net.rng.integers(1, 3))
        elif kind == 3:
            taken = np.pad(taken, net.rng.integers(0, 3, 2), constant_values=-1)
        lists.append(taken.astype(np.int32))
    shape = [len(taken) for taken in lists]
    fill = np.float32(net.rng.integers(source.lo, source.hi + 1))
    move(net, source, shape, "Gather", indices=np.concatenate(lists), fill=fill)


def grow_matmul(net: Net) -> None:
    """Matrices that lie anywhere in two tensors, of which the second has zero point 0.

    They may overlap; those of the result are each value of it once.
    """
    first, second = pick(net), pick(net)
    if second.zero_point:
        centred = net.tensor(second.shape)
        centred = replace(centred, zero_point=0, lo=-127, hi=127)
        net.tensors[centred.name] = centred
        one = np.float32(1)
        net.grow("Requantize", centred, second, scale=one, lo=-127, hi=127)
        second = centred
    batch = [1, 1, 1, 1, *net.rng.integers(1, 4, 2)]
    rows, columns = net.rng.choice([1, 2, 3, 7, 8, 9, 17, 33, 70], 2)
    depth = int(net.rng.integers(1, first.shape[1] + 1))
    sizes = np.array([*batch, rows, depth]), np.array([*batch, depth, columns])
    views = [
        anywhere(net, first, sizes[0], last=True),
        anywhere(net, second, sizes[1], last=False),
    ]
    room = {0: 1, 1: int(columns)}  # pixels, channels that are taken
    steps = np.zeros((8, 2), int)
    steps[7, 1] = 1
    for axis in net.rng.permutation(7):
        side = int(net.rng.integers(4) == 0)
        steps[axis, side] = room[side]
        room[side] *= int([*batch, rows][axis])
    views.append(np.array([0, 0, *steps.reshape(-1)]))
    images = int(net.rng.choice([n for n in range(1, 7) if room[0] % n == 0]))
    shape = (images, room[1], room[0] // images, 1)
    real = net.rng.integers(4) == 0
    out = net.tensor(shape, dtype="float32" if real else net.width())
    net.grow(
        "Matmul",
        out,
        first,
        second,
        indices=np.array([*batch, rows, columns, depth, *np.concatenate(views)], "i4"),
        scale=np.float32(2.0 ** net.rng.uniform(-4, 1) * gain(out) / 100 / depth**0.5),
        **net.clamp(out),
    )
    if real:
        random_floats.grow_quantize(net, out)


def anywhere(net: Net, tensor, sizes, *, last: bool):
    """The first value of a view, and its steps.  last: the last axis is of channels."""
    batch, channels, height, width = tensor.shape
    room = [batch * height * width - 1, channels - 1]
    steps = np.zeros((8, 2), int)
    if last:
        steps[7, 1] = 1
        room[1] -= int(sizes[7]) - 1
    for axis in net.rng.permutation(7 if last else 8):
        side, times = int(net.rng.integers(2)), int(sizes[axis]) - 1
        most = room[side] // max(times, 1)
        steps[axis, side] = net.rng.integers(0, most + 1)
        if net.rng.integers(2):
            steps[axis, side] = min(1, most)
        room[side] -= times * int(steps[axis, side])
    return np.array([*(net.rng.integers(0, left + 1) for left in room), *steps.flat])


def grow_resize(net: Net) -> None:
    """Any rows and columns, two or more; to the same scale or another."""
    source = pick(net) if net.rng.integers(4) else pick_float(net)
    batch, channels, height, width = source.shape
    sizes = [int(size) for size in net.rng.integers(1, 12, 2)]
    indices, values = [], []
    taps = int(net.rng.choice([2, 2, 3, 4, 7]))
    for size, out in zip((height, width), sizes, strict=True):
        indices.append(net.rng.integers(0, size, (out, taps)))
        share = net.rng.choice([0, 0.25, 0.5, 1, 0.3], out)
        more = net.rng.choice([0, 0, -0.2, 0.7, -1.5], (out, taps - 2))
        values.append(np.column_stack([1 - share, share, more]))
    shape = (batch, channels, *sizes)
    scale = np.float32(1)
    if source.dtype == "float32":
        out = net.tensor(shape, dtype="float32")
    else:
        out = net.tensor(shape, like=source if net.rng.integers(2) else None)
        scale = np.float32(source.scale / out.scale)
    net.grow(
        "Resize",
        out,
        source,
        groups=taps - 1,
        scale=scale,
        indices=np.concatenate(indices).reshape(-1).astype(np.int32),
        values=np.concatenate(values).reshape(-1).astype(np.float32),
    )


GROW = {
    "conv": grow_conv,
    "depthwise": grow_depthwise,
    "add": grow_add,
    "sum": grow_sum,
    "multiply": lambda net: grow_product(net, "Multiply"),
    "divide": lambda net: grow_product(net, "Divide"),
    "total": grow_total,
    "extreme": grow_extreme,
    "table": grow_table,
    "interpolate": grow_interpolate,
    "lrn": grow_lrn,
    "instance_norm": grow_instance_norm,
    "normalization": grow_normalization,
    "softmax": grow_softmax,
    "requantize": grow_requantize,
    "max": lambda net: grow_pool(net, "max"),
    "average": lambda net: grow_pool(net, "average"),
    "concat": grow_concat,
    "reshape": grow_reshape,
    "permute": grow_permute,
    "gather": grow_gather,
    "matmul": grow_matmul,
    "resize": grow_resize,
    "float softmax": random_floats.grow_softmax,
    "float move": random_floats.grow_move,
    "unary": random_floats.grow_unary,
    "binary": random_floats.grow_binary,
    "float conv": random_floats.grow_conv,
    "float max": lambda net: random_floats.grow_pool(net, "max", pool_window),
    "float average": lambda net: random_floats.grow_pool(net, "average", pool_window),
    "recurrent": random_floats.grow_recurrent,
    "integer move": lambda net: random_floats.grow_move(
        net, random_integers.pick_integer
    ),
    "to float": random_integers.grow_to_float,
    "integer": random_integers.grow_integer,
    "compare": random_integers.grow_compare,
    "where": random_integers.grow_where,
    **random_places.GROW,
}
