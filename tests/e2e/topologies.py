# SPDX-License-Identifier: Apache-2.0
"""Small programs with shapes that test the plan of memory, beside whole networks."""

import numpy as np

from neon8.ir.program import Op, Program, Tensor
from neon8.operators.arithmetic import AddOp
from neon8.operators.conversion import RequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.movement import ConcatOp, PermuteOp, ReshapeOp
from neon8.operators.pooling import PoolOp
from neon8.operators.resize import ResizeOp
from neon8.operators.selection import GatherOp
from programs import program
from random_convs import bound, random_bias, random_multiplier


class Drawing:
    """A Program while it grows; each method appends a step and returns its output."""

    def __init__(self, seed, channels, size) -> None:
        """An int8 image to begin with."""
        self.rng = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.image = self._tensor((1, channels, size, size))

    def _tensor(self, shape) -> Tensor:
        name = f"t{len(self.tensors)}"
        dims = tuple(map(int, shape))
        tensor = Tensor(name=name, dims=dims, scale=np.float32(0.5))
        self.tensors[name] = tensor
        return tensor

    def _append(self, step, inputs, shape, **fields) -> Tensor:
        out = self._tensor(shape)
        self.ops.append(
            step(
                name=f"{step.__name__}{len(self.ops)}",
                inputs=tuple(each.name for each in inputs),
                output=out.name,
                **fields,
            )
        )
        return out

    def conv(
        self, source, channels, kernel=1, *, stride=1, pad=None, plus=None, groups=1
    ):
        """plus: the residual.  pad: by default the size is kept, but for the stride."""
        pad = (kernel - 1) // 2 if pad is None else pad
        size = (source.shape[2] + 2 * pad - kernel) // stride + 1
        weights = self.rng.integers(
            -9, 10, (channels, kernel, kernel, source.shape[1] // groups), np.int8
        )
        bias = random_bias(self.rng, weights)
        return self._append(
            Conv2dOp,
            [source] if plus is None else [source, plus],
            (1, channels, size, size),
            weights=weights,
            bias=bias,
            multiplier=random_multiplier(self.rng, weights),
            residual_scale=np.float32(0 if plus is None else 1),
            strides=(stride, stride),
            pads=(pad,) * 4,
            groups=groups,
            acc_bound=bound(weights, bias),
            lo=-127,
        )

    def depthwise(self, source, *, stride=1):
        """3x3."""
        channels = source.shape[1]
        return self.conv(source, channels, 3, stride=stride, groups=channels)

    def up(self, source, channels):
        """Twice the size, by a convolution of mostly padding."""
        return self.conv(source, channels, pad=source.shape[2] // 2)

    def resize(self, source, size):
        """Another size, by the two nearest rows and columns."""
        at = (np.arange(size) + 0.5) * source.shape[2] / size - 0.5
        low = np.clip(np.floor(at), 0, source.shape[2] - 1)
        high = np.minimum(low + 1, source.shape[2] - 1)
        share = np.clip(at - low, 0, 1) * (high > low)
        indices = np.stack([low, high], 1).reshape(-1).astype(np.int32)
        values = np.stack([1 - share, share], 1).reshape(-1).astype(np.float32)
        return self._append(
            ResizeOp,
            [source],
            (*source.shape[:2], size, size),
            scale=np.float32(1),
            indices=np.tile(indices, 2),
            values=np.tile(values, 2),
        )

    def add(self, a, b):
        """The sum of two tensors."""
        scales = {"scale": np.float32(1), "residual_scale": np.float32(0.5)}
        return self._append(AddOp, [a, b], a.shape, lo=-127, **scales)

    def activate(self, source):
        """A step on its own, as an activation that could not be fused."""
        return self._append(
            RequantizeOp, [source], source.shape, scale=np.float32(0.75), lo=-127
        )

    def pool(self, source, kernel, stride, kind="max"):
        """Padded, so that the size is kept but for the stride."""
        pad = (kernel - 1) // 2
        sizes = ((size + 2 * pad - kernel) // stride + 1 for size in source.shape[2:])
        return self._append(
            PoolOp,
            [source],
            (*source.shape[:2], *sizes),
            kind=kind,
            kernel=(kernel, kernel),
            strides=(stride, stride),
            dilations=(1, 1),
            pads=(pad,) * 4,
            lo=-127,
        )

    def join(self, *pieces, axis=1):
        """A concat."""
        shape = list(pieces[0].shape)
        shape[axis] = sum(piece.shape[axis] for piece in pieces)
        return self._append(ConcatOp, pieces, shape, axis=axis)

    def split(self, source, first, count):
        """Some channels."""
        _, _, height, width = source.shape
        indices = np.concatenate(
            [[0], np.arange(first, first + count), np.arange(height), np.arange(width)]
        )
        return self._append(
            GatherOp,
            [source],
            (1, count, height, width),
            indices=indices.astype(np.int32),
        )

    def shuffle(self, source):
        """The channels of two halves in turn."""
        _, channels, height, width = source.shape
        sizes = [1, 2, channels // 2, height, width, 1, 1, 1]
        return self._append(
            PermuteOp,
            [source],
            source.shape,
            indices=np.array([sizes, [0, 2, 1, 3, 4, 5, 6, 7]], np.int32),
        )

    def reshape(self, source, shape):
        """Another shape."""
        return self._append(ReshapeOp, [source], shape)

    def program(self, *outputs) -> Program:
        """What was drawn."""
        names = " ".join(each.name for each in outputs)
        return program(self.tensors.values(), self.ops, self.image.name, names)


def chain(seed=0):
    """Convolutions of random widths and strides, and activations on their own."""
    d = Drawing(seed, 3, 32)
    x = d.image
    for _ in range(14):
        stride = 2 if x.shape[2] > 4 and d.rng.integers(5) == 0 else 1
        x = d.conv(x, int(d.rng.integers(1, 40)), 3, stride=stride)
        if d.rng.integers(3) == 0:
            x = d.activate(x)
    return d.program(x)


def resnet():
    """Basic blocks with and without a projection; the sum in the epilogue."""
    d = Drawing(2, 3, 32)
    x = d.pool(d.conv(d.image, 16, 3), 3, 2)
    for channels in (16, 16, 32, 32, 64, 64):
        stride = 1 if channels == x.shape[1] else 2
        y = d.conv(x, channels, 3, stride=stride)
        residual = x if stride == 1 else d.conv(x, channels, stride=2)
        x = d.conv(y, channels, 3, plus=residual)
    return d.program(d.pool(x, x.shape[2], x.shape[2], "average"))


def unet():
    """Down and up again, with a concat at each level."""
    d = Drawing(7, 1, 32)
    kept, x = [], d.image
    for channels in (16, 32, 64):
        x = d.conv(d.conv(x, channels, 3), channels, 3)
        kept.append(x)
        x = d.pool(x, 2, 2)
    x = d.conv(x, 128, 3)
    for skip in reversed(kept):
        channels = skip.shape[1]
        x = d.join(skip, d.up(x, channels))
        x = d.conv(d.conv(x, channels, 3), channels, 3)
    return d.program(d.conv(x, 2))


def twice():
    """One tensor and a part of it, both in concats that hold them more than once."""
    d = Drawing(11, 9, 3)
    pooled = d.pool(d.image, 1, 1)
    active = d.activate(pooled)
    part = d.split(active, 3, 2)
    rows = d.join(d.image, d.image, active, pooled, axis=2)
    return d.program(rows, d.activate(d.join(part, part, axis=2)))


def elan(width):
    """A chain of convolutions, all of whose results are concatenated."""
    d = Drawing(12, 32, 16)
    x = d.image
    for _ in range(2):
        pieces = [d.conv(x, width), d.conv(x, width)]
        for _ in range(4):
            pieces.append(d.conv(pieces[-1], width, 3))
        x = d.conv(d.join(*pieces), 32)
    return d.program(x)


def dpn():
    """Half of the channels is added to, the other half grows."""
    d = Drawing(17, 3, 8)
    w = d.conv(d.conv(d.image, 24), 96)
    kept, dense = d.split(w, 0, 64), d.split(w, 64, 32)
    for _ in range(3):
        y = d.conv(d.conv(d.conv(d.join(kept, dense), 128), 128, 3), 80)
        more = [d.split(y, 0, 64), d.split(y, 64, 16)]
        kept, dense = d.add(kept, more[0]), d.join(dense, more[1])
    return d.program(d.conv(d.join(kept, dense), 64))


def res2net():
    """Each quarter of the channels but the last is convolved with the one before."""
    d = Drawing(18, 3, 8)
    x = d.conv(d.image, 64)
    for _ in range(2):
        y = d.conv(x, 64)
        quarters = [d.split(y, first, 16) for first in range(0, 64, 16)]
        pieces = [d.conv(quarters[0], 16, 3)]
        for quarter in quarters[1:3]:
            pieces.append(d.conv(d.add(pieces[-1], quarter), 16, 3))
        x = d.conv(d.join(*pieces, quarters[3]), 64, plus=x)
    return d.program(x)


def backwards():
    """The quarters of a tensor are convolved and concatenated from the last one on."""
    d = Drawing(19, 3, 8)
    y = d.conv(d.image, 64, 3)
    quarters = [d.split(y, first, 16) for first in range(0, 64, 16)]
    x = d.join(*(d.conv(quarter, 16, 3) for quarter in reversed(quarters)))
    return d.program(d.conv(x, 8))


def crossed():
    """Halves of two tensors are concatenated across."""
    d = Drawing(20, 3, 8)
    x = d.conv(d.image, 32, 3)
    y = d.conv(x, 32, 3)
    a = d.join(d.split(x, 0, 16), d.split(y, 16, 16))
    b = d.join(d.split(y, 0, 16), d.split(x, 16, 16))
    return d.program(d.add(d.conv(a, 32, 3), d.conv(b, 32, 3)))


def pyramid(channels):
    """Maps of four sizes, resized to the largest of them and joined."""
    d = Drawing(31, 3, 32)
    x = d.conv(d.image, 16, 3)
    maps = [x]
    for _ in range(3):
        maps.append(d.conv(maps[-1], 16, 3, stride=2))
    parts = [d.resize(d.conv(each, channels), x.shape[2]) for each in maps]
    return d.program(d.conv(d.join(*reversed(parts)), 8))


def unetpp():
    """A U-Net with a node in between that reads skips of two levels."""
    d = Drawing(21, 3, 16)
    x0 = d.conv(d.image, 16, 3)
    x1 = d.conv(d.pool(x0, 2, 2), 32, 3)
    x01 = d.conv(d.join(x0, d.up(x1, 16)), 16, 3)
    x2 = d.conv(d.pool(x1, 2, 2), 64, 3)
    x11 = d.conv(d.join(x1, d.up(x2, 32)), 32, 3)
    x02 = d.conv(d.join(x0, x01, d.up(x11, 16)), 16, 3)
    return d.program(d.conv(x02, 2))


def uneven():
    """Branches of an inception of very different widths and depths."""
    d = Drawing(42, 3, 8)
    x = d.conv(d.image, 32, 3)
    for _ in range(3):
        pieces = []
        for width in d.rng.integers(1, 8, 4) * 8:
            y = x
            for _ in range(d.rng.integers(1, 4)):
                y = d.conv(y, int(width * d.rng.integers(1, 3)), 3)
            pieces.append(d.conv(y, int(width)))
        x = d.join(*pieces)
    return d.program(x)


def in_place(count):
    """Steps that all write over what they read."""
    d = Drawing(13, 8, 2)
    x = d.image
    for _ in range(count):
        x = d.activate(x)
    return d.program(x)


def wide(count):
    """A concat of very many pieces."""
    d = Drawing(14, 8, 2)
    return d.program(d.join(*(d.activate(d.image) for _ in range(count))))


def moves(seed):
    """Steps drawn at random that move values, most of them; concats may hold one twice,
    convolutions read and write neighbouring channels of it.
    """
    rng = np.random.default_rng(seed)
    d = Drawing(seed, int(rng.integers(2, 20)), int(rng.integers(1, 5)))
    drawn = [d.image]
    while len(d.ops) < 24:
        x = drawn[-min(int(rng.geometric(0.4)), len(drawn))]
        channels, height, width = x.shape[1:]
        match rng.integers(8):
            case 0:
                drawn.append(d.pool(x, 1, 1))
            case 1:
                drawn.append(d.activate(x))
            case 2:
                cut = int(rng.integers(channels)) if channels > 1 else 0
                drawn.append(d.split(x, cut, channels - cut))
                drawn.append(d.split(x, 0, cut or 1))
            case 3:
                drawn.append(d.reshape(x, (1, channels, height * width, 1)))
            case 4 if channels % 2 == 0:
                drawn.append(d.shuffle(x))
            case 5 if height == width:
                drawn.append(d.conv(x, int(rng.integers(1, 33)), 3))
            case 6 if height == width:
                drawn.append(d.depthwise(x))
            case _:
                axis = int(rng.integers(1, 4))
                others = [0, *(other for other in (1, 2, 3) if other != axis)]
                fit = [
                    each
                    for each in (x, *drawn[-8:])
                    if all(each.shape[i] == x.shape[i] for i in others)
                ]
                count = min(int(rng.integers(1, 4)), 120 // x.shape[axis])
                pieces = [fit[i] for i in rng.integers(len(fit), size=count)]
                if pieces:
                    drawn.append(d.join(x, *pieces, axis=axis))
    read = {name for op in d.ops for name in op.inputs}
    return d.program(*(t for t in d.tensors.values() if t.name not in read))


TOPOLOGIES = {
    **{f"chain{seed}": (lambda seed=seed: chain(seed)) for seed in range(5)},
    "resnet": resnet,
    "unet": unet,
    "twice": twice,
    "elan": lambda: elan(32),
    "dpn": dpn,
    "pyramid24": lambda: pyramid(24),
}

AWKWARD = {
    "backwards": (backwards, 1.63),
    "crossed": (crossed, 1.34),
    "elan24": (lambda: elan(24), 1.10),
    "pyramid12": (lambda: pyramid(12), 1.72),
    "res2net": (res2net, 1.35),
    "uneven": (uneven, 1.19),
    "unetpp": (unetpp, 1.14),
}
"""Programs that take more, as docs/memory.md says, and how much more than the bound."""
