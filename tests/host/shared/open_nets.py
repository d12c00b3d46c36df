# SPDX-License-Identifier: Apache-2.0
"""Networks that leave dimensions open, as exporters write them."""

import math

import numpy as np

from onnx_nets import net, node

NONE = np.zeros(0, np.float32)


class Block:
    """Nodes of a network while they are appended, with random weights; x to y."""

    def __init__(self, seed=0):
        self.nodes, self.weights, self.made = [], {}, set()
        self.rng = np.random.default_rng(seed)

    def __call__(self, operator, inputs, output, *constants, **attributes):
        """Appends a node, with constants after its inputs."""
        names = inputs.split()
        for at, value in enumerate(constants):
            names.append(f"{output}_{at}")
            self.weights[names[-1]] = np.asarray(value)
        self.nodes.append(node(operator, " ".join(names), output, **attributes))

    def random(self, *shape):
        """A weight."""
        scale = 1 / math.sqrt(shape[0])
        return (self.rng.normal(0, scale, shape)).astype(np.float32)

    def linear(self, name, output, inputs, outputs):
        """A projection of tokens, with a bias."""
        self("MatMul", name, f"{output}_product", self.random(inputs, outputs))
        self("Add", f"{output}_product", output, self.random(outputs))

    def model(self, shape, *, opset=17):
        """x of this shape to y."""
        return net(self.nodes, {"x": shape}, "y", self.weights, opset=opset)

    def conv(self, x, output, into, out, kernel=3, **attributes):
        """A convolution with a bias, "same" unless told otherwise."""
        if "auto_pad" not in attributes:
            attributes = {"pads": [kernel // 2] * 4} | attributes
        self.weights[f"{output}_w"] = self.random(out, into, kernel, kernel)
        self.weights[f"{output}_b"] = self.random(out)
        self("Conv", f"{x} {output}_w {output}_b", output, **attributes)

    def size(self, x, axis):
        """The name of a vector with one dimension of x."""
        name = f"{x}_size{axis}"
        if f"{x}_shape" not in self.made:
            self("Shape", x, f"{x}_shape")
            self.made.add(f"{x}_shape")
        if name not in self.made:
            self("Gather", f"{x}_shape", name, np.array([axis]), axis=0)
            self.made.add(name)
        return name

    def sizes(self, output, *parts):
        """A shape: numbers, and names of vectors."""
        names = []
        for at, part in enumerate(parts):
            name = part
            if isinstance(part, int):
                name = f"{output}_{at}"
                self.weights[name] = np.array([part])
            names.append(name)
        self("Concat", " ".join(names), output, axis=0)
        return output


def unet():
    """Skips, resizes of both kinds, squeeze and excitation, a global pool."""
    b = Block()
    b.conv("x", "a", 3, 8)
    b("Relu", "a", "a1")
    b.conv("a1", "b", 8, 16, strides=[2, 2])
    b("Relu", "b", "b1")
    b.conv("b1", "c", 16, 16, strides=[2, 2])
    b("Relu", "c", "c1")
    b("GlobalAveragePool", "c1", "se")
    b.conv("se", "se1", 16, 16, 1)
    b("Sigmoid", "se1", "se2")
    b("Mul", "c1 se2", "c2")
    shape = b.sizes(
        "b_sizes", b.size("c2", 0), b.size("c2", 1), b.size("b1", 2), b.size("b1", 3)
    )
    b.weights["none"] = NONE
    b("Resize", f"c2 none none {shape}", "up", mode="linear")
    b("Concat", "up b1", "d", axis=1)
    b.conv("d", "d1", 32, 8)
    b.weights["twice"] = np.array([1, 1, 2, 2], np.float32)
    b("Resize", "d1 none twice", "up2", mode="nearest", nearest_mode="floor",
      coordinate_transformation_mode="asymmetric")  # fmt: skip
    b("Concat", "up2 a1", "e", axis=1)
    b.conv("e", "y", 16, 4)
    return b.model(("n", 3, "h", "w"))


def recogniser():
    """Convolutions that leave one line, an LSTM and attention along it."""
    b = Block()
    b.conv("x", "a", 3, 8, strides=[2, 2])
    b("Relu", "a", "a1")
    b.conv("a1", "b", 8, 8, strides=[2, 1])
    b("HardSwish", "b", "b1")
    b("Transpose", "b1", "t", perm=[3, 0, 1, 2])
    shape = b.sizes("line", b.size("b1", 3), b.size("b1", 0), 32)
    b("Reshape", f"t {shape}", "lines")
    b("LSTM", "lines", "states", b.random(2, 48, 32), b.random(2, 48, 12),
      hidden_size=12, direction="bidirectional")  # fmt: skip
    b("Transpose", "states", "turned", perm=[2, 0, 1, 3])
    b("Reshape", "turned", "tokens", np.array([0, -1, 24]))
    for name in "qkv":
        b.linear("tokens", f"{name}0", 24, 24)
        parts = b.sizes(f"{name}_parts", b.size("b1", 0), b.size("b1", 3), 3, 8)
        b("Reshape", f"{name}0 {parts}", f"{name}1")
        order = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        b("Transpose", f"{name}1", name, perm=order)
    b("MatMul", "q k", "scores")
    b("Mul", "scores", "scaled", np.float32(8**-0.5))
    b("Softmax", "scaled", "p", axis=-1)
    b("MatMul", "p v", "heads")
    b("Transpose", "heads", "joined", perm=[0, 2, 1, 3])
    b("Reshape", "joined", "flat", np.array([0, 0, 24]))
    b("Add", "flat tokens", "sum")
    b.linear("sum", "classes", 24, 11)
    b("Softmax", "classes", "y", axis=-1)
    return b.model(("n", 3, 16, "w"))


def mobile():
    """An inverted residual of any batch, and a classifier."""
    b = Block()
    b.conv("x", "a", 4, 16, 1)
    b("Clip", "a", "a1", np.float32(0), np.float32(6))
    b.weights["w"], b.weights["b"] = b.random(16, 1, 3, 3), b.random(16)
    b("Conv", "a1 w b", "c", group=16, pads=[1, 1, 1, 1])
    b("Clip", "c", "c1", np.float32(0), np.float32(6))
    b.conv("c1", "d", 16, 4, 1)
    b("Add", "d x", "e")
    b("GlobalAveragePool", "e", "f")
    b("Flatten", "f", "g", axis=1)
    b("Gemm", "g", "y", b.random(4, 5), b.random(5))
    return b.model(("batch", 4, 7, 7))


def detector():
    """Two levels with anchors that are computed from the shape, as YOLO has them."""
    b = Block()
    b.conv("x", "p0", 3, 8, strides=[4, 4])
    b.conv("p0", "p1", 8, 8, strides=[2, 2])
    for level in (0, 1):
        p = f"p{level}"
        b.conv(p, f"head{level}", 8, 4, 1)
        flat = b.sizes(f"flat{level}", b.size("x", 0), 4, -1)
        b("Reshape", f"head{level} {flat}", f"boxes{level}")
        for axis, name in ((2, "v"), (3, "u")):
            size = b.size(p, axis)
            scalar, places = f"{name}{level}_n", f"{name}{level}"
            b("Squeeze", size, scalar)
            b.weights |= {"zero": np.array(0), "one": np.array(1)}
            b("Range", f"zero {scalar} one", f"{places}_i")
            b("Cast", f"{places}_i", f"{places}_f", to=1)
            b("Add", f"{places}_f", places, np.float32(0.5))
        both = b.sizes(f"grid{level}", b.size(p, 2), b.size(p, 3))
        b("Unsqueeze", f"v{level}", f"v{level}_c", np.array([1]))
        for name, source in (("v", f"v{level}_c"), ("u", f"u{level}")):
            b("Expand", f"{source} {both}", f"{name}{level}_grid")
            b("Reshape", f"{name}{level}_grid", f"{name}{level}_row", np.array([1, -1]))
        b("Concat", f"u{level}_row v{level}_row", f"anchors{level}", axis=0)
        b("Mul", f"anchors{level}", f"strides{level}", np.float32(0))
        b("Add", f"strides{level}", f"stride{level}", np.float32(4 * 2**level))
    b("Concat", "boxes0 boxes1", "boxes", axis=2)
    b("Concat", "anchors0 anchors1", "anchors", axis=1)
    b("Concat", "stride0 stride1", "stride", axis=1)
    b("Slice", "boxes", "near", *map(np.array, ([0], [2], [1])))
    b("Slice", "boxes", "far", *map(np.array, ([2], [4], [1])))
    b("Sigmoid", "near", "near1")
    b("Exp", "far", "far1")
    b("Sub", "anchors near1", "from")
    b("Add", "anchors far1", "to")
    b("Concat", "from to", "corners", axis=1)
    b("Concat", "stride stride", "strides", axis=0)
    b("Mul", "corners strides", "y")
    return b.model((1, 3, "h", "w"))


def moves():
    """Shuffle, split, pads of all kinds, slices and tiles."""
    b = Block()
    parts = b.sizes("parts", b.size("x", 0), 2, 2, b.size("x", 2), b.size("x", 3))
    b("Reshape", f"x {parts}", "five")
    b("Transpose", "five", "shuffled", perm=[0, 2, 1, 3, 4])
    b("Reshape", f"shuffled {b.sizes('four', 0, 4, b.size('x', 2), -1)}", "back")
    b("Split", "back", "s0", np.array([1, 3]), axis=1)
    b.nodes[-1].output.append("s1")
    b("Pad", "s1", "edge", np.array([0, 0, 1, 2, 0, 0, 3, 1]), mode="edge")
    b("Pad", "edge", "mirror", np.array([0, 0, 2, 1, 0, 0, 0, 2]), mode="reflect")
    b("Pad", "mirror", "zero", np.array([0, 0, 2, 0, 0, 0, 1, 3]), np.float32(0))
    b.conv("zero", "between", 3, 3)
    b("Slice", "between", "third", *map(np.array, ([2, 1], [1000, -1], [2, 3], [3, 2])))
    b("Slice", "third", "turned", *map(np.array, ([-1], [-1000], [3], [-1])))
    b("Tile", "turned", "tiled", np.array([1, 1, 1, 2]))
    b.conv("tiled", "y", 3, 4)
    return b.model((1, 4, "h", "w"))


def resizes():
    """Cubic and antialiased ones, by a scale and to the size of another tensor."""
    b = Block()
    b.conv("x", "a", 3, 4, strides=[2, 2])
    b.weights |= {
        "none": NONE,
        "half": np.array([1, 1, 0.5, 0.5], np.float32),
        "wide": np.array([1, 1, 1, 3], np.float32),
    }
    shape = b.sizes(
        "there", b.size("a", 0), b.size("a", 1), b.size("x", 2), b.size("x", 3)
    )
    b("Resize", f"a none none {shape}", "b", mode="cubic",
      coordinate_transformation_mode="pytorch_half_pixel")  # fmt: skip
    b("Resize", "b none half", "c", mode="cubic", antialias=1, cubic_coeff_a=-0.5)
    b("Resize", "c none half", "d", mode="linear", antialias=1, exclude_outside=1)
    b("Resize", "d none wide", "e", mode="cubic", exclude_outside=1,
      coordinate_transformation_mode="asymmetric")  # fmt: skip
    b.conv("e", "y", 4, 4)
    return b.model((1, 3, "h", "w"), opset=18)


def windows():
    """Pads that depend on the size, and windows that reach beyond the end."""
    b = Block()
    b.conv("x", "a", 3, 4, strides=[3, 2], auto_pad="SAME_UPPER")
    b("MaxPool", "a", "b", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)
    b("AveragePool", "b", "c", kernel_shape=[3, 3], strides=[2, 1],
      auto_pad="SAME_LOWER", count_include_pad=1)  # fmt: skip
    b("ConvTranspose", "c", "d", b.random(4, 4, 3, 3), strides=[2, 2])
    b("ReduceMean", "d", "y", axes=[3], keepdims=1)
    return b.model((1, 3, "h", "w"), opset=13)


def speech():
    """Tokens of any number with learned positions, and a mask for what comes later."""
    b = Block()
    b.linear("x", "t", 6, 8)
    b.weights |= {"table": b.random(64, 8), "zero": np.array([0])}
    b("Slice", f"table zero {b.size('x', 1)} zero", "positions")
    b("Add", "t positions", "u")
    b.linear("u", "qk", 8, 8)
    b("Transpose", "qk", "turned", perm=[0, 2, 1])
    b("MatMul", "qk turned", "scores")
    both = b.sizes("both", b.size("x", 1), b.size("x", 1))
    b("ConstantOfShape", both, "ones")
    b("Add", "ones", "low", np.float32(-50))
    b("Trilu", "low", "mask", np.array(1))
    b("Add", "scores mask", "masked")
    b("Softmax", "masked", "p", axis=-1)
    b("MatMul", "p u", "v")
    b.linear("v", "y", 8, 5)
    return b.model(("n", "t", 6))


def padded():
    """Sides that are padded to a multiple of 8 inside, and cropped at the end."""
    b = Block()
    ends = []
    for axis in (2, 3):
        b("Mod", b.size("x", axis), f"rest{axis}", np.array([8]))
        b("Sub", "", f"left{axis}")
        b.nodes[-1].input[:] = ["eight", f"rest{axis}"]
        b("Mod", f"left{axis}", f"pad{axis}", np.array([8]))
        ends.append(f"pad{axis}")
    b.weights["eight"] = np.array([8])
    pads = b.sizes("pads", 0, 0, 0, 0, 0, 0, *ends)
    b("Pad", f"x {pads}", "whole")
    b.conv("whole", "a", 3, 8, strides=[4, 4])
    b("Relu", "a", "b")
    b("ConvTranspose", "b", "c", b.random(8, 3, 4, 4), strides=[4, 4])
    b.weights |= {"from": np.array([0, 0]), "axes": np.array([2, 3])}
    b("Slice", f"c from {b.sizes('to', b.size('x', 2), b.size('x', 3))} axes", "y")
    return b.model((1, 3, "h", "w"))


def keyword():
    """Sound of any length: convolutions along it, a GRU, the mean of its states."""
    b = Block()
    b.weights |= {"w": b.random(8, 6, 3), "v": b.random(8, 1, 5), "b": b.random(8)}
    b("Conv", "x w b", "a", strides=[2], pads=[1, 1])
    b("Relu", "a", "a1")
    b("Conv", "a1 v b", "c", group=8, dilations=[2])
    b("MaxPool", "c", "d", kernel_shape=[3], strides=[2])
    b("Transpose", "d", "t", perm=[2, 0, 1])
    b("GRU", "t", "states", b.random(1, 18, 8), b.random(1, 18, 6), hidden_size=6)
    b("Squeeze", "states", "lines", np.array([1]))
    b("ReduceMean", "lines", "mean", axes=[0], keepdims=0)
    b("Gemm", "mean", "y", b.random(6, 4), b.random(4))
    return b.model(("n", 6, "t"))


def attention():
    """Heads of images in a sequence first order, in which one image has no axis."""
    b = Block()
    b("Transpose", "x", "first", perm=[1, 0, 2])
    b.linear("first", "qkv", 8, 24)
    b("Split", "qkv", "q", np.array([8, 8, 8]), axis=2)
    b.nodes[-1].output.extend(["k", "v"])
    flat = b.sizes("heads", 10, -1, 4)
    for name in "qkv":
        b("Reshape", f"{name} {flat}", f"{name}1")
        order = [1, 2, 0] if name == "k" else [1, 0, 2]
        b("Transpose", f"{name}1", f"{name}2", perm=order)
    b("MatMul", "q2 k2", "scores")
    b("Softmax", "scores", "p", axis=-1)
    b("MatMul", "p v2", "z")
    b("Transpose", "z", "back", perm=[1, 0, 2])
    b("Reshape", f"back {b.sizes('whole', 10, b.size('x', 0), 8)}", "joined")
    b.linear("joined", "last", 8, 8)
    b("Transpose", "last", "y", perm=[1, 0, 2])
    return b.model(("n", 10, 8))


def packings():
    """Windows of 3x3, for which other kernels are chosen where there are few pixels."""
    b = Block()
    b.conv("x", "a", 3, 16)
    b("Relu", "a", "b")
    b.conv("b", "c", 16, 24)
    b("Relu", "c", "d")
    b.conv("d", "e", 24, 16)
    b("GlobalAveragePool", "e", "f")
    b.conv("f", "y", 16, 8, 1)
    return b.model((1, 3, "h", "w"))
