# SPDX-License-Identifier: Apache-2.0
"""Random small Programs, and inputs for them, that all back ends must agree on.

Drawn so that the awkward cases are frequent: odd channel counts, windows that reach far
into the padding, ranges of every scheme, multipliers that give x.5 ties or saturate,
weights that are all +-127, sums near 2**31.
"""

from dataclasses import dataclass, field

import numpy as np

from neon8.compile.program import (
    Add,
    Concat,
    Conv2d,
    Dequantize,
    Op,
    Pool,
    Program,
    Quantize,
    Requantize,
    Reshape,
    Softmax,
    Tensor,
)

KINDS = (
    "conv",
    "conv",
    "conv",
    "depthwise",
    "depthwise",
    "add",
    "requantize",
    "max",
    "average",
    "concat",
    "reshape",
    "softmax",
)


@dataclass
class Net:
    """A Program while it grows.  live: int8 tensors that an op may read."""

    rng: np.random.Generator
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    live: list[Tensor] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def tensor(self, shape, *, like=None, dtype="int8"):
        """A new tensor with a random scale and scheme, or those of `like`."""
        name = f"t{len(self.tensors)}"
        shape = tuple(int(size) for size in shape)
        rank = max([1] + [axis + 1 for axis in range(4) if shape[axis] > 1])
        rank = int(self.rng.integers(rank, 5))
        if dtype == "float32":
            tensor = Tensor(name=name, shape=shape, rank=rank, dtype=dtype)
        elif like is not None:
            tensor = Tensor(
                name=name,
                shape=shape,
                rank=rank,
                scale=like.scale,
                zero_point=like.zero_point,
                lo=like.lo,
                hi=like.hi,
            )
        else:
            zero_point, lo = self.scheme()
            scale = np.float32(2.0 ** self.rng.uniform(-8, 3))
            tensor = Tensor(
                name=name,
                shape=shape,
                rank=rank,
                scale=scale,
                zero_point=zero_point,
                lo=lo,
            )
        self.tensors[name] = tensor
        return tensor

    def scheme(self):
        """Zero point and lowest level: symmetric, unsigned or asymmetric."""
        kind = self.rng.integers(4)
        if kind == 0:
            return 0, -127
        if kind == 1:
            return -128, -128
        if kind == 2:
            return int(self.rng.choice([-128, -1, 0, 1, 127])), -128
        return int(self.rng.integers(-128, 128)), -128

    def add(self, op, out):
        """Appends an op; an int8 result may be read by the next ones."""
        self.ops.append(op)
        self.read.update(op.inputs)
        if out.dtype == "int8":
            self.live.append(out)

    def clamp(self, out):
        """lo, hi of an activation: none, ReLU, or a narrow one."""
        kind = self.rng.integers(4)
        if kind < 2:
            return out.lo, out.hi
        if kind == 2:
            return max(out.lo, out.zero_point), out.hi
        lo, hi = sorted(int(level) for level in self.rng.integers(out.lo, 128, 2))
        return lo, hi

    def slope(self):
        """A leaky slope, often none."""
        return np.float32(self.rng.choice([1, 1, 0.1, 0.25, 0, -0.5, 3]))


def random_program(seed: int) -> Program:
    """A network of 1 to 7 layers; every result that nothing reads is an output."""
    net = Net(np.random.default_rng(seed))
    rng = net.rng
    batch = int(rng.choice([1, 1, 2, 3]))
    inputs = []
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.integers(8)
        channels, height, width = rng.integers(1, (20, 12, 12))
        if kind < 2:  # a vector
            height = width = 1
        elif kind == 2:  # deep: more than one step along the channels
            channels, height, width = rng.integers(1, (150, 5, 5))
        elif kind == 3:  # wide: more than one piece of an image
            channels, height, width = rng.integers((1, 20, 20), (4, 42, 42))
        shape = (batch, channels, height, width)
        if rng.integers(2):
            source = net.tensor(shape, dtype="float32")
            inputs.append(source.name)
            out = net.tensor(shape)
            net.add(Quantize(name="in", inputs=(source.name,), output=out.name), out)
        else:
            source = net.tensor(shape)
            inputs.append(source.name)
            net.live.append(source)
    size = len(net.ops) + rng.integers(1, 8)
    while len(net.ops) < size:
        GROW[str(rng.choice(KINDS))](net)
    for tensor in tuple(net.live):
        if tensor.name not in net.read and rng.integers(2):
            out = net.tensor(tensor.shape, dtype="float32")
            op = Dequantize(name="out", inputs=(tensor.name,), output=out.name)
            net.add(op, out)
    made = {op.output for op in net.ops}
    outputs = tuple(name for name in net.tensors if name in made - net.read)
    # A tensor that is an output and is read, too.
    inner = [tensor.name for tensor in net.live if tensor.name in made & net.read]
    if inner and rng.integers(3) == 0:
        outputs += (str(rng.choice(inner)),)
    return Program(
        source_digest=f"{seed:064x}",
        tensors=net.tensors,
        ops=tuple(net.ops),
        inputs=tuple(inputs),
        outputs=outputs,
    )


def random_inputs(program: Program, seed: int) -> dict[str, np.ndarray]:
    """Arrays for a program: int8 of the whole range; floats with ties, NaN and inf."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        shape = tensor.shape[: tensor.rank]
        if tensor.dtype == "int8":
            values = rng.integers(-128, 128, shape, np.int8)
            if rng.integers(3) == 0:
                values = np.full(shape, rng.choice([-128, 127]), np.int8)
            arrays[name] = values
            continue
        (scale,) = {
            program.tensors[op.output].scale for op in program.ops if name in op.inputs
        }
        values = rng.normal(0, 60, shape)
        ties = rng.integers(-300, 300, shape) + 0.5
        values = np.where(rng.random(shape) < 0.3, ties, values) * scale
        odd = rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0, 1e-40], shape)
        values = np.where(rng.random(shape) < 0.05, odd, values)
        arrays[name] = values.astype(np.float32)
    return arrays


def pick(net: Net) -> Tensor:
    """An int8 tensor, more often a late one."""
    at = len(net.live) - 1 - min(int(net.rng.geometric(0.6)) - 1, len(net.live) - 1)
    return net.live[at]


def window(net: Net, size, *, least: int = 1):
    """(kernel, stride, dilation, pad before, pad after, out) along one axis."""
    rng = net.rng
    while True:
        kernel, stride = int(rng.choice([1, 1, 2, 3, 3, 5])), int(rng.integers(1, 4))
        dilation = int(rng.choice([1, 1, 2, 3]))
        before, after = (int(pad) for pad in rng.integers(0, kernel + 1, 2))
        out = (size + before + after - dilation * (kernel - 1) - 1) // stride + 1
        if out >= least and kernel >= 1:
            return kernel, stride, dilation, before, after, out


def random_weights(rng, shape):
    """int8 weights in [-127, 127] of several temperaments."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.choice(np.array([-127, 127], np.int8), shape)
    if kind == 1:
        return np.full(shape, rng.choice([-127, 127]), np.int8)
    if kind == 2:
        return np.clip(np.rint(rng.normal(0, 2, shape)), -127, 127).astype(np.int8)
    return rng.integers(-127, 128, shape, np.int8)


def random_bias(rng, weights):
    """int32 biases, some as large as (12) allows."""
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) * 128
    room = 2**31 - 1 - sums
    small = rng.integers(-5000, 5000, sums.shape)
    large = room * rng.choice([-1, 1], sums.shape)
    bias = np.where(rng.random(sums.shape) < 0.05, large, small)
    return np.clip(bias, -room, room).astype(np.int32)


def random_multiplier(rng, weights):
    """Most keep the result in int8; powers of two give ties, the others saturate."""
    depth = max(1, int(np.prod(weights.shape[1:])))
    typical = 64 / (np.sqrt(depth) * 73 * max(1.0, np.abs(weights).mean()))
    values = typical * 2.0 ** rng.uniform(-2, 2, weights.shape[0])
    if rng.integers(3) == 0:
        values = 2.0 ** np.rint(np.log2(values))
    odd = rng.choice([0, 1e-30, 2.0**64, 1, 0.5], weights.shape[0])
    values = np.where(rng.random(weights.shape[0]) < 0.04, odd, values)
    return np.maximum(values, np.float32(1e-30) * (values > 0)).astype(np.float32)


def grow_conv(net: Net) -> None:
    """Convolution, dense or grouped: int8 with residual and slopes, or float."""
    source = pick(net)
    divisors = [g for g in range(1, source.shape[1] + 1) if source.shape[1] % g == 0]
    groups = int(net.rng.choice([1, 1, 1, net.rng.choice(divisors)]))
    append_conv(net, source, groups, groups * int(net.rng.integers(1, 11)))


def grow_depthwise(net: Net) -> None:
    """Depthwise convolution, often 3x3 with stride 1 or 2."""
    source = pick(net)
    append_conv(net, source, source.shape[1], source.shape[1], depthwise=True)


def append_conv(net, source, groups, out_channels, *, depthwise=False):
    rng = net.rng
    batch, channels, height, width = source.shape
    if depthwise and rng.integers(2):
        stride = int(rng.integers(1, 3))
        rows = (3, stride, 1, 1, 1, (height - 1) // stride + 1)
        columns = (3, stride, 1, 1, 1, (width - 1) // stride + 1)
    else:
        rows, columns = window(net, height), window(net, width)
    shape = (batch, out_channels, rows[5], columns[5])
    weights = random_weights(
        rng, (out_channels, rows[0], columns[0], channels // groups)
    )
    floats = rng.integers(6) == 0
    out = net.tensor(shape, dtype="float32" if floats else "int8")
    lo, hi = (-128, 127) if floats else net.clamp(out)
    inputs, slopes, residual_scale, bias_f32 = (source.name,), None, 0, None
    residuals = [
        tensor for tensor in net.live if tensor.shape == shape and tensor is not source
    ]
    if floats:
        bias_f32 = rng.normal(0, 10, out_channels).astype(np.float32)
    elif rng.integers(3) == 0:
        slopes = rng.normal(0, 1, out_channels).astype(np.float32)
    if not floats and residuals and rng.integers(4):
        inputs = (source.name, rng.choice([tensor.name for tensor in residuals]))
        residual_scale = 2.0 ** rng.uniform(-3, 2)
    bias = random_bias(rng, weights)
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) * 128
    op = Conv2d(
        name=f"conv{len(net.ops)}",
        inputs=tuple(str(name) for name in inputs),
        output=out.name,
        weights=weights,
        bias=bias,
        multiplier=random_multiplier(rng, weights),
        bias_f32=bias_f32,
        slopes=slopes,
        residual_scale=np.float32(residual_scale),
        strides=(rows[1], columns[1]),
        dilations=(rows[2], columns[2]),
        pads=(rows[3], columns[3], rows[4], columns[4]),
        groups=groups,
        lo=lo,
        hi=hi,
        acc_bound=int((sums + np.abs(bias.astype(np.int64))).max()),
    )
    net.add(op, out)
    if floats and rng.integers(2):
        again = net.tensor(shape)
        op = Quantize(name="again", inputs=(out.name,), output=again.name)
        net.add(op, again)


def grow_add(net: Net) -> None:
    """Sum of two tensors of one shape, or of one with itself."""
    a = pick(net)
    b = net.rng.choice([t.name for t in net.live if t.shape == a.shape])
    out = net.tensor(a.shape)
    lo, hi = net.clamp(out)
    op = Add(
        name=f"add{len(net.ops)}",
        inputs=(a.name, str(b)),
        output=out.name,
        scale=np.float32(2.0 ** net.rng.uniform(-3, 2)),
        residual_scale=np.float32(net.rng.choice([0.5, 0.25, 2.0, 0.37, 1e-30])),
        slope=net.slope(),
        lo=lo,
        hi=hi,
    )
    net.add(op, out)


def grow_requantize(net: Net) -> None:
    """Another scale, or an activation."""
    source = pick(net)
    out = net.tensor(source.shape)
    lo, hi = net.clamp(out)
    op = Requantize(
        name=f"requantize{len(net.ops)}",
        inputs=(source.name,),
        output=out.name,
        scale=np.float32(net.rng.choice([0.5, 1.5, 2.0**64, 1e-30, 0.773])),
        slope=net.slope(),
        lo=lo,
        hi=hi,
    )
    net.add(op, out)


def grow_pool(net: Net, kind: str) -> None:
    """Max or average, each window having a tap inside the input."""
    source = pick(net)
    batch, channels, height, width = source.shape
    while True:
        rows, columns = window(net, height), window(net, width)
        if net.rng.integers(4) == 0:  # global
            rows, columns = (height, 1, 1, 0, 0, 1), (width, 1, 1, 0, 0, 1)
        if inside(rows, height) and inside(columns, width):
            break
    # One more row or column, as ceil_mode gives: taps beyond the padding never count.
    rows, columns = longer(net, rows, height), longer(net, columns, width)
    shape = (batch, channels, rows[5], columns[5])
    out = net.tensor(shape, like=source if kind == "max" else None)
    lo, hi = net.clamp(out)
    op = Pool(
        name=f"{kind}{len(net.ops)}",
        inputs=(source.name,),
        output=out.name,
        kind=kind,
        kernel=(rows[0], columns[0]),
        strides=(rows[1], columns[1]),
        dilations=(rows[2], columns[2]),
        pads=(rows[3], columns[3], rows[4], columns[4]),
        count_pad=kind == "average" and bool(net.rng.integers(2)),
        lo=lo,
        hi=hi,
    )
    net.add(op, out)


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
    """Two or three tensors, rescaled first, along C, H or W."""
    axis = int(net.rng.integers(1, 4))
    first = pick(net)
    rest = first.shape[:axis] + first.shape[axis + 1 :]
    fitting = [t for t in net.live if t.shape[:axis] + t.shape[axis + 1 :] == rest]
    pieces = [first]
    for _ in range(net.rng.integers(1, 3)):
        piece = fitting[int(net.rng.integers(len(fitting)))]
        if piece.scale != first.scale:
            copy = net.tensor(piece.shape, like=first)
            op = Requantize(
                name="rescale",
                inputs=(piece.name,),
                output=copy.name,
                scale=np.float32(piece.scale / first.scale),
                lo=first.lo,
                hi=first.hi,
            )
            net.add(op, copy)
            piece = copy
        pieces.append(piece)
    shape = list(first.shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    out = net.tensor(shape, like=first)
    op = Concat(
        name=f"concat{len(net.ops)}",
        inputs=tuple(piece.name for piece in pieces),
        output=out.name,
        axis=axis,
    )
    net.add(op, out)


def grow_reshape(net: Net) -> None:
    """Another shape of as many values."""
    source = pick(net)
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
    op = Reshape(name="reshape", inputs=(source.name,), output=out.name)
    net.add(op, out)


def grow_softmax(net: Net) -> None:
    """Softmax over C of a vector, quantized again at times."""
    vectors = [t for t in net.live if t.shape[2:] == (1, 1)]
    if not vectors:
        grow_reshape(net)
        return
    source = vectors[int(net.rng.integers(len(vectors)))]
    real = net.tensor(source.shape, dtype="float32")
    net.add(Dequantize(name="x", inputs=(source.name,), output=real.name), real)
    out = net.tensor(source.shape, dtype="float32")
    net.add(Softmax(name="softmax", inputs=(real.name,), output=out.name), out)
    if net.rng.integers(2):
        again = net.tensor(source.shape)
        net.add(Quantize(name="p", inputs=(out.name,), output=again.name), again)


GROW = {
    "conv": grow_conv,
    "depthwise": grow_depthwise,
    "add": grow_add,
    "requantize": grow_requantize,
    "max": lambda net: grow_pool(net, "max"),
    "average": lambda net: grow_pool(net, "average"),
    "concat": grow_concat,
    "reshape": grow_reshape,
    "softmax": grow_softmax,
}


def differing_bytes(result, expected) -> dict[str, int]:
    """By output, how many bytes differ; outputs that do not differ are left out."""
    assert result.keys() == expected.keys()
    found = {}
    for name, array in expected.items():
        assert result[name].shape == array.shape, name
        assert result[name].dtype == array.dtype, name
        ours, theirs = (
            np.frombuffer(each.tobytes(), np.uint8) for each in (array, result[name])
        )
        if (ours != theirs).any():
            found[name] = int((ours != theirs).sum())
    return found
