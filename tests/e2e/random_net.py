# SPDX-License-Identifier: Apache-2.0
"""A random Program while it grows."""

from dataclasses import dataclass, field, replace

import numpy as np

from neon8.ir.program import Op, Tensor
from programs import step


@dataclass
class Net:
    """A Program while it grows.

    levels, floats, integers: tensors that an op may read, of int8 or int16, of float32,
    of int32.
    mixed: there are tensors of int16.
    """

    rng: np.random.Generator
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    levels: list[Tensor] = field(default_factory=list)
    floats: list[Tensor] = field(default_factory=list)
    integers: list[Tensor] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    mixed: bool = field(init=False)

    def __post_init__(self) -> None:
        """Half of the networks have int16, too."""
        self.mixed = bool(self.rng.integers(2))

    @property
    def live(self) -> list[Tensor]:
        """The tensors of int8."""
        return [tensor for tensor in self.levels if tensor.dtype == "int8"]

    def width(self) -> str:
        """The type of a result that may be wide: int8, in mixed networks either."""
        return "int16" if self.mixed and self.rng.integers(2) else "int8"

    def tensor(self, shape, *, like=None, dtype="int8"):
        """A new tensor with a random scale and scheme, or those of `like`."""
        name = f"t{len(self.tensors)}"
        shape = tuple(int(size) for size in shape)
        rank = max([1] + [axis + 1 for axis in range(4) if shape[axis] > 1])
        dims = shape[: int(self.rng.integers(rank, 5))]
        if like is not None:
            tensor = replace(like, name=name, dims=dims)
        elif dtype in ("float32", "uint8", "int32"):
            tensor = Tensor(name=name, dims=dims, dtype=dtype)
        else:
            zero_point, lo, hi = self.scheme() if dtype == "int8" else self.wide()
            scale = np.float32(2.0 ** self.rng.uniform(-8, 3) * 127 / hi)
            tensor = Tensor(
                name=name,
                dims=dims,
                dtype=dtype,
                scale=scale,
                zero_point=zero_point,
                lo=lo,
                hi=hi,
            )
        self.tensors[name] = tensor
        return tensor

    def scheme(self):
        """Zero point and range: symmetric, unsigned or asymmetric, or of seven bits."""
        kind = self.rng.integers(5)
        if kind == 0:
            return 0, -127, 127
        if kind == 1:
            return -128, -128, 127
        if kind == 2:
            return int(self.rng.choice([-128, -1, 0, 1, 127])), -128, 127
        if kind == 3:
            return int(self.rng.integers(-64, 64)), -64, 63
        return int(self.rng.integers(-128, 128)), -128, 127

    def wide(self):
        """The same of int16, of 9 to 16 bits."""
        end = 2 ** (int(self.rng.choice([9, 12, 15, 16, 16, 16])) - 1)
        kind = self.rng.integers(4)
        if kind == 0:
            return 0, 1 - end, end - 1
        if kind == 1:
            return -end, -end, end - 1
        if kind == 2:
            return int(self.rng.choice([-end, -1, 0, 1, end - 1])), -end, end - 1
        return int(self.rng.integers(-end, end)), -end, end - 1

    def grow(self, kind, out, /, *sources, **fields):
        """Append a step of this kind, which makes `out` of the sources."""
        inputs = " ".join(source.name for source in sources)
        self.add(step(kind, out.name, inputs, **fields), out)

    def add(self, op, out):
        """Append an op; its result may be read by the next ones."""
        self.ops.append(op)
        self.read.update(op.inputs)
        lists = {"float32": self.floats, "int32": self.integers}
        lists.get(out.dtype, self.levels).append(out)

    def clamp(self, out):
        """lo and hi of an activation: none, ReLU, or a narrow one; floats have none."""
        kind = self.rng.integers(4)
        if kind < 2 or out.dtype == "float32":
            return {"lo": out.lo, "hi": out.hi}
        if kind == 2:
            return {"lo": max(out.lo, out.zero_point), "hi": out.hi}
        ends = self.rng.integers(out.lo, out.hi + 1, 2)
        return {"lo": int(ends.min()), "hi": int(ends.max())}

    def activation(self, out):
        """The same with a leaky slope, often none."""
        slope = self.rng.choice([1, 1, 0.1, 0.25, 0, -0.5, 3])
        return self.clamp(out) | {"slope": np.float32(slope)}


def pick(net: Net) -> Tensor:
    """An int8 tensor, more often a late one; one is made where there is none."""
    if not net.live:
        source = pick_wide(net)
        out = net.tensor(source.shape)
        net.grow(
            "Requantize",
            out,
            source,
            scale=np.float32(gain(out) / gain(source)),
            lo=out.lo,
            hi=out.hi,
        )
    return late(net, net.live)


def pick_wide(net: Net) -> Tensor:
    """A tensor of int8 or int16, more often a late one."""
    return late(net, net.levels)


def gain(tensor: Tensor) -> float:
    """By what its levels are more than 255."""
    return (tensor.hi - tensor.lo) / 255


def pick_float(net: Net) -> Tensor:
    """A float tensor, more often a late one; one is made where there is none."""
    if not net.floats or net.rng.integers(8) == 0:
        source = pick_wide(net)
        out = net.tensor(source.shape, dtype="float32")
        net.grow("Dequantize", out, source)
    return late(net, net.floats)


def late(net: Net, tensors: list[Tensor]) -> Tensor:
    """One of them, more often a late one."""
    most = len(tensors) - 1
    return tensors[most - min(int(net.rng.geometric(0.6)) - 1, most)]


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
