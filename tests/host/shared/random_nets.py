# SPDX-License-Identifier: Apache-2.0
"""Random ONNX networks with every attribute that ONNX allows, the odd ones too."""

import math

import numpy as np
from hypothesis import strategies as st
from onnx import helper

from onnx_nets import net, node

F = np.float32
OPSETS = (10, 13, 22)
LARGEST = 3.4028235e38
BOUNDS = (None, 0.0, 6.0, -0.5, 1.5, -1.0)
MAX_ELEMENTS = 600
FUNCTIONS = ("Sigmoid", "Tanh", "Erf", "Softplus", "HardSigmoid", "Elu", "Abs", "Neg")


def all_see(image, kernel, out, attributes):
    """True if no window lies in the padding with all its taps."""
    for axis, size in enumerate(image):
        first = attributes.get("pads", [0] * len(image))[axis]
        starts = np.arange(out[axis])[:, None] * attributes["strides"][axis] - first
        taps = starts + np.arange(kernel[axis]) * attributes["dilations"][axis]
        if not ((taps >= 0) & (taps < size)).any(axis=1).all():
            return False
    return True


class Builder:
    """Grows a network; tensors: name -> shape, batch 1."""

    def __init__(self, draw):
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.nodes, self.weights = [], {}
        self.opset = self.pick(OPSETS)
        self.tensors = {"x": self.pick([(1, 4, 6, 6), (1, 3, 5, 7), (1, 4, 9)])}

    def pick(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def constant(self, value):
        """An initializer of its own, or one that has the same value already."""
        for name, old in self.weights.items():
            same = old.shape == value.shape and old.dtype == value.dtype
            if same and np.array_equal(old, value) and self.pick([True, False]):
                return name
        name = f"w{len(self.weights)}"
        self.weights[name] = value
        return name

    def weight(self, *shape):
        for name, old in self.weights.items():
            fits = old.shape == shape and old.dtype == F and np.isfinite(old).all()
            if fits and self.pick([True, False]):
                return name
        size = np.prod(shape[1:], dtype=int) if len(shape) > 1 else 1
        return self.constant(self.rng.normal(0, 1 / np.sqrt(size), shape).astype(F))

    def emit(self, operator, inputs, shape, **attributes):
        output = f"t{len(self.nodes)}"
        made = node(operator, "", output, **attributes)
        made.input.extend(inputs)
        self.nodes.append(made)
        self.tensors[output] = tuple(int(size) for size in shape)
        return output

    def window(self, image, sizes=(1, 1, 2, 3, 5)):
        """Kernel, output and attributes; None if no window fits."""
        rank = len(image)
        kernel = [self.pick(sizes) for _ in range(rank)]
        strides = [self.pick([1, 1, 2, 3]) for _ in range(rank)]
        dilations = [self.pick([1, 1, 2, 3]) for _ in range(rank)]
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        attributes = {"strides": strides, "dilations": dilations}
        modes = ["NOTSET", "NOTSET", "VALID"]
        pool = sizes[0] > 1
        stepped = any(s > k for s, k in zip(strides, kernel, strict=True))
        if dilations == [1] * rank and not (pool and stepped):  # limits of onnxruntime
            modes += ["SAME_UPPER", "SAME_LOWER"]
        mode = self.pick(modes)
        if mode == "NOTSET":
            pads = [self.pick(range(min(k, 3))) for k in kernel * 2]
            attributes["pads"] = pads
            room = [
                size + pads[axis] + pads[axis + rank] - reach[axis]
                for axis, size in enumerate(image)
            ]
        else:
            attributes["auto_pad"] = mode
            room = [size - r for size, r in zip(image, reach, strict=True)]
        if mode.startswith("SAME"):
            out = [math.ceil(s / t) for s, t in zip(image, strides, strict=True)]
        else:
            out = [r // t + 1 for r, t in zip(room, strides, strict=True)]
        return None if min(room) < 0 else (kernel, out, attributes)

    def conv(self, x, shape):
        window = self.window(shape[2:]) if len(shape) > 2 else None
        if window is None:
            return
        kernel, out, attributes = window
        c = shape[1]
        groups = self.pick([1, 1, c, 2 if c % 2 == 0 else 1])
        channels = groups * self.pick([1, 2, 3] if groups < 5 else [1])
        inputs = [x, self.weight(channels, c // groups, *kernel)]
        if self.pick([True, False]):
            inputs.append(self.weight(channels))
        self.emit("Conv", inputs, (1, channels, *out), group=groups, **attributes)

    def pool(self, x, shape):
        window = self.window(shape[2:], (2, 3, 4)) if len(shape) > 2 else None
        if window is None:
            return
        kernel, out, attributes = window
        if not all_see(shape[2:], kernel, out, attributes):
            return
        operator = self.pick(["MaxPool", "AveragePool"])
        if operator == "AveragePool":
            if attributes["dilations"] != [1] * len(kernel):
                return
            del attributes["dilations"]
            attributes["count_include_pad"] = self.pick([0, 1])
        self.emit(operator, [x], (*shape[:2], *out), kernel_shape=kernel, **attributes)

    def whole_image(self, x, shape):
        if len(shape) > 2:
            operator = self.pick(["GlobalAveragePool", "GlobalMaxPool"])
            self.emit(operator, [x], (*shape[:2], *(1 for _ in shape[2:])))

    def dense(self, x, shape):
        if len(shape) != 2:
            return
        out = self.pick([1, 3, 5])
        if self.pick([True, False]):
            self.emit("MatMul", [x, self.weight(shape[1], out)], (1, out))
            return
        turned = self.pick([0, 1])
        w = self.weight(*((out, shape[1]) if turned else (shape[1], out)))
        c = self.weight(*self.pick([(out,), (1, out), (1,), ()]))
        scales = {"alpha": self.pick([1.0, 0.5]), "beta": self.pick([1.0, -2.0])}
        self.emit("Gemm", [x, w, c], (1, out), transB=turned, **scales)

    def norm(self, x, shape):
        c = shape[1]
        names = [self.weight(c) for _ in range(3)]
        variance = self.constant(self.rng.uniform(0.5, 2, c).astype(F))
        self.emit("BatchNormalization", [x, *names, variance], shape)

    def arithmetic(self, x, shape):
        operator = self.pick(["Add", "Sub", "Mul", "Div"])
        ones = (1,) * (len(shape) - 2)
        full = self.pick([(shape[1], *ones), (1, shape[1], *ones), (1,), ()])
        if operator == "Div":
            value = self.constant(self.rng.uniform(0.5, 2, full).astype(F))
            self.emit("Div", [x, value], shape)
            return
        value = self.weight(*full)
        inputs = [x, value] if self.pick([True, False]) else [value, x]
        self.emit(operator, inputs, shape)

    def function(self, x, shape):
        """One value at a time, sometimes as a factor of what it is of."""
        y = self.emit(self.pick(FUNCTIONS), [x], shape)
        if self.pick([True, False]):
            self.emit("Mul", self.pick([[x, y], [y, x]]), shape)

    def product(self, x, shape):
        """Two tensors of one shape, or broadcast by a mean over the image."""
        other = x
        if self.pick([True, False]) and len(shape) > 2:
            whole = (*shape[:2], *(1 for _ in shape[2:]))
            other = self.emit("GlobalAveragePool", [x], whole)
        operator = self.pick(["Mul", "Sub", "Add", "Div"])
        if operator == "Div":
            sizes = self.tensors[other]
            other = self.emit("Abs", [other], sizes)
            other = self.emit("Add", [other, self.constant(F(0.5))], sizes)
        swapped = operator != "Div" and self.pick([True, False])
        self.emit(operator, [other, x] if swapped else [x, other], shape)

    def reduce(self, x, shape):
        """The mean over an image, with and without its axes."""
        if len(shape) < 3 or self.opset >= 18:
            return
        axes, keep = list(range(2, len(shape))), self.pick([0, 1])
        out = (*shape[:2], *(1 for _ in axes if keep))
        self.emit("ReduceMean", [x], out, axes=axes, keepdims=keep)

    def local(self, x, shape):
        """LRN of bounded values: onnxruntime's sum slides, so big ones cancel."""
        if len(shape) == 4:
            x = self.emit("Tanh", [x], shape)
            self.emit("LRN", [x], shape, size=self.pick([1, 3, 5]), alpha=0.5)

    def instance(self, x, shape):
        if len(shape) > 2 and math.prod(shape[2:]) > 1:
            names = [self.weight(shape[1]) for _ in range(2)]
            self.emit("InstanceNormalization", [x, *names], shape)

    def activation(self, x, shape):
        operator = self.pick(["Relu", "LeakyRelu", "PRelu", "Clip", "Clip"])
        if operator == "LeakyRelu":
            alpha = self.pick([0.0, 0.01, 0.3, 1.0, 2.0, -0.5])
            self.emit(operator, [x], shape, alpha=alpha)
        elif operator == "PRelu":
            slope = np.full((1,) * self.pick([0, 1, 2]), 0.2, F)
            if self.pick([True, False]):
                slope = self.rng.uniform(-0.5, 1, (shape[1], *(1 for _ in shape[2:])))
            self.emit(operator, [x, self.constant(slope.astype(F))], shape)
        elif operator == "Relu":
            self.emit(operator, [x], shape)
        else:
            self.clip(x, shape)

    def clip(self, x, shape):
        """Bounds left out, infinite, equal or in the wrong order."""
        lo = self.pick([*BOUNDS, -np.inf, -LARGEST])
        hi = self.pick([*BOUNDS, np.inf, LARGEST])
        if self.opset < 11:
            if (lo or 0) > 0 or (hi or 0) < 0:  # what onnxruntime makes of two such
                return  # Clips in a row, with lo > hi, it refuses itself
            bounds = {"min": lo, "max": hi}
            bounds = {key: value for key, value in bounds.items() if value is not None}
            self.emit("Clip", [x], shape, **bounds)
            return
        inputs = [x, *("" if b is None else self.constant(F(b)) for b in (lo, hi))]
        while inputs[-1] == "":
            inputs.pop()
        self.emit("Clip", inputs, shape)

    def reshape(self, x, shape):
        size = math.prod(shape)
        factor = self.pick([f for f in range(1, size + 1) if size % f == 0])
        choices = [
            (1, size), (1, size, 1), (1, size, 1, 1), (1, factor, size // factor),
            (1, factor, size // factor, 1), (1, factor, 1, size // factor),
            (1, *reversed(shape[1:])), shape,
        ]  # fmt: skip
        new = self.pick(choices)
        given = list(new)
        if self.pick([True, False]):
            given[self.pick(range(1, len(new)))] = -1
        return self.emit("Reshape", [x, self.constant(np.array(given))], new)

    def move(self, x, shape):
        """Operators that move no value, and chains of them."""
        kind = self.pick(["Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"])
        if kind == "Flatten":
            self.emit(kind, [x], (1, math.prod(shape)), axis=1)
        elif kind in ("Identity", "Dropout"):
            self.emit(kind, [x], shape)
        elif kind == "Unsqueeze" and len(shape) < 4:
            axis = self.pick(range(1, len(shape) + 1))
            self.axes(kind, x, [axis], (*shape[:axis], 1, *shape[axis:]))
        elif kind == "Squeeze" and 1 in shape[2:]:
            axis = shape.index(1, 2)
            self.axes(kind, x, [axis], (*shape[:axis], *shape[axis + 1 :]))

    def turn(self, x, shape):
        """Transpose, channel shuffle, or pixels as channels and back."""
        kind = self.pick(["Transpose", "shuffle", "SpaceToDepth", "DepthToSpace"])
        if kind == "Transpose":
            order = self.draw(st.permutations(range(1, len(shape))))
            new = [shape[axis] for axis in (0, *order)]
            self.emit(kind, [x], new, perm=[0, *order])
        elif kind == "shuffle" and shape[1] % 2 == 0:
            split = (1, 2, shape[1] // 2, *shape[2:])
            y = self.emit("Reshape", [x, self.constant(np.array(split))], split)
            new = [1, split[2], 2, *shape[2:]]
            order = [0, 2, 1, *range(3, len(new))]
            y = self.emit("Transpose", [y], new, perm=order)
            self.emit("Reshape", [y, self.constant(np.array(shape))], shape)
            for name in [n for n, dims in self.tensors.items() if len(dims) > 4]:
                del self.tensors[name]  # nothing else here is made for rank 5
        elif (
            kind == "SpaceToDepth"
            and len(shape) == 4
            and not any(size % 2 for size in shape[2:])
        ):
            _, c, h, w = shape
            self.emit(kind, [x], (1, 4 * c, h // 2, w // 2), blocksize=2)
        elif kind == "DepthToSpace" and len(shape) == 4 and shape[1] % 4 == 0:
            mode = {} if self.opset < 11 else {"mode": self.pick(["DCR", "CRD"])}
            _, c, h, w = shape
            self.emit(kind, [x], (1, c // 4, 2 * h, 2 * w), blocksize=2, **mode)

    def enlarge(self, x, shape):
        """Resize or ConvTranspose of an image."""
        if len(shape) != 4:
            return
        _, c, h, w = shape
        kind = self.pick(["Resize", "ConvTranspose"])
        if kind == "Resize":
            factors = [self.pick([0.5, 1, 2, 3]), self.pick([1, 1.5, 2])]
            new = (1, c, int(h * factors[0]), int(w * factors[1]))
            scales = self.constant(np.array([1, 1, *factors], F))
            modes = ["nearest", "linear", "cubic"]
            mode = {"mode": self.pick(modes[: 3 if self.opset > 10 else 2])}
            if self.opset > 10:
                modes = ["half_pixel", "asymmetric", "align_corners"]
                mode["coordinate_transformation_mode"] = self.pick(modes)
            inputs = [x, scales] if self.opset < 11 else [x, "", scales]
            if min(new) > 0:
                self.emit(kind, inputs, new, **mode)
            return
        kernel = [self.pick([1, 2, 3]) for _ in range(2)]
        strides = [self.pick([1, 2]) for _ in range(2)]
        pads = [self.pick([0, 1]) for _ in range(4)]
        sizes = [
            (size - 1) * stride + each - pads[axis] - pads[axis + 2]
            for axis, (size, stride, each) in enumerate(
                zip((h, w), strides, kernel, strict=True)
            )
        ]
        groups = self.pick([1, c])
        each = self.pick([1, 2])
        inputs = [x, self.weight(c, each, *kernel)]
        if self.pick([True, False]):
            inputs.append(self.weight(each * groups))
        if min(sizes) > 0:
            attributes = {"strides": strides, "pads": pads, "group": groups}
            self.emit(kind, inputs, (1, each * groups, *sizes), **attributes)

    def take(self, x, shape):
        """Slice, Gather, Pad or Split along one axis."""
        axis = self.pick(range(1, len(shape)))
        size = shape[axis]
        kind = self.pick(["Slice", "Gather", "Pad", "Split"])
        new = list(shape)
        if kind == "Slice":
            start, step = self.pick(range(size)), self.pick([1, 1, 2, -1])
            end = size if step > 0 else -size - 1
            new[axis] = len(range(size)[start::step])
            bounds = [self.constant(np.array([v])) for v in (start, end, axis, step)]
            self.emit(kind, [x, *bounds], new)
        elif kind == "Gather":
            taken = [self.pick(range(-size, size)) for _ in range(self.pick([1, 3]))]
            new[axis] = len(taken)
            self.emit(kind, [x, self.constant(np.array(taken))], new, axis=axis)
        elif kind == "Pad":
            pads = [0] * (2 * len(shape))
            pads[axis], pads[axis + len(shape)] = self.pick([0, 1]), self.pick([1, -1])
            new[axis] += pads[axis] + pads[axis + len(shape)]
            mode = self.pick(["constant", "edge"])
            if new[axis] < 1 or (mode == "edge" and size + min(pads) < 1):
                return
            if self.opset < 11:
                self.emit(kind, [x], new, pads=pads, mode=mode)
            else:
                self.emit(kind, [x, self.constant(np.array(pads))], new, mode=mode)
        elif size > 1 and self.opset < 18:
            halves = [size // 2, size - size // 2]
            self.emit("Split", [x], shape, axis=axis)
            split = self.nodes[-1]
            split.output.append(f"{split.output[0]}b")
            for name, half in zip(split.output, halves, strict=True):
                new[axis] = half
                self.tensors[name] = tuple(new)
            if self.opset < 13:
                split.attribute.append(helper.make_attribute("split", halves))
            else:
                split.input.append(self.constant(np.array(halves)))

    def place(self, x, shape):
        """GatherND, GatherElements, ScatterND or ScatterElements along axis 1."""
        if self.opset < 11:
            return
        size, count = shape[1], self.pick([1, 2, 3])
        kind = self.pick(["GatherND", "GatherElements", "ScatterND", "ScatterElements"])
        rows = self.draw(
            st.lists(st.integers(-size, size - 1), min_size=count, max_size=count)
        )
        if kind.startswith("Scatter"):  # of two at one place onnxruntime takes either
            rows = list({row % size: row for row in rows}.values())
            count = len(rows)
        if kind.endswith("ND"):
            taken = np.array([(0, row) for row in rows])
            new = (count, *shape[2:])
        else:
            new = (1, count, *shape[2:])
            taken = np.array(rows).reshape(1, count, *(1 for _ in shape[2:]))
            taken = np.broadcast_to(taken, new).copy()
        inputs = [x, self.constant(taken)]
        axis = {} if kind.endswith("ND") else {"axis": 1}
        if kind.startswith("Scatter"):
            inputs.append(self.constant(self.rng.normal(0, 1, new).astype(F)))
            self.emit(kind, inputs, shape, **axis)
        else:
            made = self.emit(kind, inputs, new, **axis)
            if kind == "GatherND":  # whose first axis is no batch
                whole = (1, *new)
                self.emit("Reshape", [made, self.constant(np.array(whole))], whole)
                del self.tensors[made]

    def axes(self, operator, x, axes, shape):
        if self.opset < 13:
            self.emit(operator, [x], shape, axes=axes)
        else:
            self.emit(operator, [x, self.constant(np.array(axes))], shape)

    def vector(self, x, shape):
        """An image reshaped, then dense or a 1x1 convolution with odd attributes."""
        size = math.prod(shape)
        if size > MAX_ELEMENTS // 2:
            return
        new = self.pick([(1, size), (1, size, 1, 1)])
        y = self.emit("Reshape", [x, self.constant(np.array(new))], new)
        if len(new) == 2:
            self.dense(y, new)
            return
        attributes = {
            "strides": [self.pick([1, 2]), 1],
            "dilations": [self.pick([1, 2, 3]), self.pick([1, 4])],
        }
        out = self.pick([1, 4])
        self.emit("Conv", [y, self.weight(out, size, 1, 1)], (1, out, 1, 1),
                  **attributes)  # fmt: skip

    def softmax(self, x, shape):
        if len(shape) == 2:
            self.emit("Softmax", [x], shape, axis=1)

    def join(self, x, shape):
        same = [name for name, other in self.tensors.items() if other == shape]
        if self.pick([True, False]):
            self.emit(self.pick(["Add", "Max", "Min"]), [x, self.pick(same)], shape)
            return
        axis = self.pick(range(1, len(shape)))
        others = [
            name
            for name, other in self.tensors.items()
            if len(other) == len(shape)
            and other[:axis] + other[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
        ]
        parts = [x, *(self.pick(others) for _ in range(self.pick([0, 1, 2])))]
        joined = list(shape)
        joined[axis] = sum(self.tensors[name][axis] for name in parts)
        if self.opset > 10:
            axis = self.pick([axis, axis - len(shape)])
        self.emit("Concat", parts, joined, axis=axis)

    def choose(self, x, shape):
        """Where, by what holds of the input of the network, or by a constant."""
        if shape == self.tensors["x"]:
            bound = self.constant(self.rng.normal(0, 1, shape[1:]).astype(F))
            condition = f"c{len(self.nodes)}"
            operator = self.pick(["Less", "Greater"])
            self.nodes.append(node(operator, f"x {bound}", condition))
        else:
            condition = self.constant(self.rng.random(shape[1:]) < 0.5)
        same = [name for name, other in self.tensors.items() if other == shape]
        other = self.pick([*same, self.constant(F(self.pick([0, 1, -2])))])
        both = self.pick([[x, other], [other, x]])
        self.emit("Where", [condition, *both], shape)

    def grow(self):
        x = self.pick(list(self.tensors)[-3:])
        kinds = (
            *(self.conv, self.conv, self.pool, self.whole_image, self.dense),
            *(self.norm, self.arithmetic, self.activation, self.activation),
            *(self.reshape, self.move, self.move, self.vector, self.softmax),
            *(self.join, self.turn, self.take, self.function, self.function),
            *(self.product, self.reduce, self.local, self.instance),
            *(self.enlarge, self.choose, self.place),
        )
        if math.prod(self.tensors[x]) <= MAX_ELEMENTS:
            self.pick(kinds)(x, self.tensors[x])


@st.composite
def networks(draw):
    """A model with one input; any of its tensors may be outputs."""
    builder = Builder(draw)
    for _ in range(draw(st.integers(1, 12))):
        builder.grow()
    if not builder.nodes:
        builder.emit("Relu", ["x"], builder.tensors["x"])
    made = list(builder.tensors)[1:]
    outputs = draw(st.sets(st.sampled_from(made), max_size=3)) | {made[-1]}
    return net(
        builder.nodes,
        {"x": builder.tensors["x"]},
        " ".join(sorted(outputs)),
        builder.weights,
        opset=builder.opset,
    )
