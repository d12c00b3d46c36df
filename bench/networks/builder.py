# SPDX-License-Identifier: Apache-2.0
"""Net: an ONNX network written node by node, as an exporter would write it.

A definition (resnet.py, detectors.py ...) is a function that draws its nodes on a Net.
Weights are only described, so a definition of 140 million parameters can be counted in
a test; weights.py makes a file of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

EPSILON = 1e-5
BETA = 0.7
"""Mean of beta, in parts of gamma.

With 0 a Relu cuts half of the values, what is left has a third of the variance, and
noise gains 1.7 dB a layer; with 0.7 it gains 0.8 dB, and after 50 layers of int8 the
result can still be told from noise.
"""

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight that is not drawn yet.  published: counts as a parameter."""

    shape: tuple[int, ...]
    draw: Draw
    published: bool = True


def normal(spread: float, around: float = 0.0) -> Draw:
    return lambda rng, shape: (
        rng.standard_normal(shape, np.float32) * np.float32(spread) + np.float32(around)
    )


def uniform(lo: float, hi: float) -> Draw:
    return lambda rng, shape: rng.uniform(lo, hi, shape)


def constant(value: float) -> Draw:
    return lambda _rng, shape: np.full(shape, value)


@dataclass(slots=True)
class Net:
    """A network in the making.

    opset; seed of the weights; batch, and `symbolic` if the file shall call it "batch";
    width: factor of all channel counts; fold: BatchNormalization goes into the
    convolution before it; numbered: tensors have numbers for names, as old exporters
    gave them; listed: initializers are inputs as well, as up to IR version 3;
    resizable: positions are computed by nodes from the shape, as where it is open.
    hidden: names of BatchNormalization nodes that the published network does not have.
    words: of inputs of integers, how many there are to choose from.
    """

    name: str
    opset: int
    seed: int = 0
    batch: int = 1
    symbolic: bool = False
    width: float = 1.0
    fold: bool = False
    numbered: bool = False
    listed: bool = False
    resizable: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    weights: dict[str, Weight] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    macs: int = 0
    counter: int = 0

    def channels(self, published: float, divisor: int = 4) -> int:
        """So many of the published channels: at least `divisor`, a multiple of it."""
        if self.width == 1:
            return int(published)
        return max(divisor, round(published * self.width / divisor) * divisor)

    def blocks(self, published: int) -> int:
        """So many of the blocks in a row: fewer in a network of fewer channels."""
        return min(published, max(2, round(published * self.width)))

    def input(self, name: str, *shape: int, words: int = 0) -> str:
        """An input; shape without the batch.  words: it has int64 below that."""
        kind = TensorProto.INT64 if words else TensorProto.FLOAT
        self.types[name] = helper.make_tensor_type_proto(kind, [self.batch, *shape])
        self.inputs.append(name)
        if words:
            self.words[name] = words
        return name

    def output(self, x: str, name: str) -> None:
        """Make `x`, the result of the last node, an output of this name."""
        assert all(x not in other.input for other in self.nodes)
        for node in self.nodes:
            if x in node.output:
                node.output[list(node.output).index(x)] = name
        self.types[name] = self.types.pop(x)
        self.outputs.append(name)

    def shape(self, x: str) -> tuple[int, ...]:
        """The shape of a tensor, the batch as a number; 0: only a run shows it."""
        return tuple(d.dim_value for d in self.types[x].tensor_type.shape.dim)

    def pixels(self, x: str) -> int:
        """How many values of one sample a tensor has."""
        return int(np.prod(self.shape(x)[1:]))

    @property
    def parameters(self) -> int:
        """How many the published network has; running statistics do not count."""
        return sum(int(np.prod(w.shape)) for w in self.weights.values() if w.published)

    def weight(
        self, name: str, shape: Sequence[int], draw: Draw, *, published: bool = True
    ) -> str:
        """A weight; published: that is a parameter of the network."""
        assert name not in self.weights, name
        self.weights[name] = Weight(tuple(shape), draw, published)
        self.types[name] = helper.make_tensor_type_proto(TensorProto.FLOAT, shape)
        return name

    def constant(self, value: object, *, node: bool = False) -> str:
        """A constant, as an initializer or as a node."""
        array = np.asarray(value)
        self.counter += 1
        if node:
            name = f"{self.counter}" if self.numbered else f"/Constant_{self.counter}"
            tensor = numpy_helper.from_array(array, name)
            made = helper.make_node("Constant", [], [name], f"n{name}", value=tensor)
            self.nodes.append(made)
        else:
            name = f"onnx::Constant_{self.counter}"
        self.constants[name] = array
        self.types[name] = helper.make_tensor_type_proto(
            helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        return name

    def op(
        self,
        operator: str,
        inputs: Sequence[str],
        name: str = "",
        *,
        outputs: int = 1,
        shape: Sequence[int] | None = None,
        **attributes: object,
    ) -> str:
        """Append a node and return its first output; name: like "layer1/0/conv1".

        Shapes follow from onnx; shape: of the only output, where it does not know.
        """
        self.counter += 1
        label = f"/{name or self.counter}/{operator}"
        if self.numbered:
            names = [f"{self.counter}_{i}" if i else f"{self.counter}"
                     for i in range(outputs)]  # fmt: skip
            label = f"{operator}_{len(self.nodes)}"
        else:
            names = [f"{label}_output_{i}" for i in range(outputs)]
        node = helper.make_node(operator, inputs, names, label, **attributes)
        self.nodes.append(node)
        if shape is not None:
            kind = self.types[inputs[0]].tensor_type.elem_type
            if operator == "Shape":
                kind = TensorProto.INT64
            self.types[names[0]] = helper.make_tensor_type_proto(kind, shape)
            return names[0]
        given = {i for i in inputs if i}
        found = shape_inference.infer_node_outputs(
            onnx.defs.get_schema(operator, self.opset, ""),
            node,
            {i: self.types[i] for i in given},
            {i: numpy_helper.from_array(self.constants[i], i)
             for i in given if i in self.constants},
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=8,
        )  # fmt: skip
        self.types |= found
        return names[0]

    def split_outputs(self, first: str) -> list[str]:
        """All outputs of the node that gave `first`."""
        (node,) = (node for node in self.nodes if first in node.output)
        return list(node.output)

    def conv(
        self,
        x: str,
        name: str,
        out: int,
        kernel: int | tuple[int, ...] = 1,
        *,
        stride: int | tuple[int, ...] = 1,
        pads: Sequence[int] | None = None,
        groups: int = 1,
        bias: bool = True,
        gain: float = 2.0,
        plain: bool = False,
        transposed: bool = False,
    ) -> str:
        """A convolution, padded so that stride 1 keeps the size unless pads are given.

        bias: none where a BatchNormalization follows.  gain: fan_in times the variance
        of the weights.  plain: initialised by He's rule alone; else with a bias, its
        output is normalised (see weights.py).
        """
        inside, *space = self.shape(x)[1:]
        rank = len(space)
        kernel = [kernel] * rank if isinstance(kernel, int) else list(kernel)
        stride = [stride] * rank if isinstance(stride, int) else list(stride)
        if pads is None:
            pads = [*(k // 2 for k in kernel), *((k - 1) // 2 for k in kernel)]
        dims = (inside, out // groups) if transposed else (out, inside // groups)
        taps = np.prod(kernel) / (np.prod(stride) if transposed else 1)
        fan_in = inside // groups * taps
        spread = np.sqrt(gain / fan_in)
        weight = self.weight(f"{name}.weight", (*dims, *kernel), normal(spread))
        inputs = [x, weight]
        if bias:
            shift = constant(0) if not plain else normal(0.1)
            inputs.append(self.weight(f"{name}.bias", (out,), shift))
        y = self.op(
            "ConvTranspose" if transposed else "Conv",
            inputs,
            name,
            dilations=[1] * rank,
            group=groups,
            kernel_shape=kernel,
            pads=list(pads),
            strides=stride,
        )
        pixels = np.prod(self.shape(x if transposed else y)[2:])
        self.macs += int(self.batch * pixels * np.prod([*dims, *kernel]))
        if not bias or plain:
            return y
        y = self.norm(y, f"{name}.init", published=False)
        self.hidden.add(self.nodes[-1].name)
        return y

    def norm(
        self, x: str, name: str, *, gain: float = 1.0, published: bool = True
    ) -> str:
        """BatchNormalization; gamma around `gain`, residual branches ending in less."""
        parts = {
            "weight": (uniform(0.6 * gain, 1.4 * gain), published),
            "bias": (normal(0.2 * gain, BETA * gain), published),
            "running_mean": (constant(0), False),
            "running_var": (constant(1), False),
        }
        channels = self.shape(x)[1:2]
        inputs = [
            self.weight(f"{name}.{part}", channels, values, published=counts)
            for part, (values, counts) in parts.items()
        ]
        return self.op("BatchNormalization", [x, *inputs], name, epsilon=EPSILON)

    def conv_norm(self, x: str, name: str, out: int, kernel=1, **options) -> str:
        gain = options.pop("gamma", 1.0)
        y = self.conv(x, name, out, kernel, bias=False, **options)
        return self.norm(y, f"{name}.bn", gain=gain)

    def depthwise(self, x: str, name: str, kernel=3, **options) -> str:
        """conv_norm() of each channel by itself."""
        channels = self.shape(x)[1]
        return self.conv_norm(x, name, channels, kernel, groups=channels, **options)

    def patch(self, x: str, name: str, out: int, size: int) -> str:
        """A convolution of windows that lie side by side."""
        shape = {"stride": size, "pads": [0] * 4, "plain": True, "gain": 1}
        return self.conv(x, name, out, size, **shape)

    def linear(self, x: str, name: str, out: int, *, gain: float = 1.0) -> str:
        """Gemm, as exporters write a fully connected layer."""
        inside = self.shape(x)[1]
        spread = np.sqrt(gain / inside)
        inputs = [
            x,
            self.weight(f"{name}.weight", (out, inside), normal(spread)),
            self.weight(f"{name}.bias", (out,), normal(0.1)),
        ]
        self.macs += self.batch * inside * out
        return self.op("Gemm", inputs, name, alpha=1.0, beta=1.0, transB=1)

    def project(
        self, x: str, name: str, out: int, *, gain: float = 1.0, bias: bool = True
    ) -> str:
        """MatMul and Add, as exporters write a fully connected layer of tokens."""
        inside = self.shape(x)[-1]
        spread = np.sqrt(gain / inside)
        weight = self.weight(f"{name}.weight", (inside, out), normal(spread))
        y = self.op("MatMul", [x, weight], name)
        self.macs += int(np.prod(self.shape(x))) * out
        if bias:
            shift = self.weight(f"{name}.bias", (out,), normal(0.1))
            y = self.op("Add", [shift, y], name)
        return y

    def matmul(self, a: str, b: str) -> str:
        y = self.op("MatMul", [a, b])
        self.macs += int(np.prod(self.shape(y))) * self.shape(a)[-1]
        return y

    def layer_norm(
        self, x: str, name: str, epsilon: float = 1e-5, *, again: bool = False
    ) -> str:
        """LayerNormalization of the last axis, or what it was before opset 17.

        again: with the weights that the name has already.
        """
        channels = self.shape(x)[-1:]
        gamma, beta = f"{name}.weight", f"{name}.bias"
        if not again:
            self.weight(gamma, channels, uniform(0.6, 1.4))
            self.weight(beta, channels, normal(0.2))
        else:
            name = ""
        if self.opset >= 17:
            inputs = [x, gamma, beta]
            return self.op("LayerNormalization", inputs, name, axis=-1, epsilon=epsilon)
        off = self.op("Sub", [x, self.op("ReduceMean", [x], axes=[-1])])
        square = self.op("Pow", [off, self.constant(np.float32(2), node=True)])
        variance = self.op("ReduceMean", [square], axes=[-1])
        safe = self.op("Add", [variance, self.constant(np.float32(epsilon), node=True)])
        y = self.op("Div", [off, self.op("Sqrt", [safe])])
        return self.op("Add", [self.op("Mul", [y, gamma]), beta], name)

    def gelu(self, x: str) -> str:
        """Gelu where the opset has it, else by Erf."""
        if self.opset >= 20:
            return self.op("Gelu", [x], approximate="none")
        root, one, half = (
            self.constant(np.float32(v), node=True) for v in (np.sqrt(2), 1, 0.5)
        )
        y = self.op("Erf", [self.op("Div", [x, root])])
        return self.op("Mul", [self.op("Mul", [x, self.op("Add", [y, one])]), half])

    def softmax(self, x: str, axis: int = -1) -> str:
        return self.op("Softmax", [x], axis=axis)

    def times(self, x: str, factor: float) -> str:
        return self.op("Mul", [x, self.constant(np.float32(factor), node=True)])

    def gain(self, x: str, name: str, lo: float, hi: float) -> str:
        """x times a weight for each channel, the last axis or the second of an image,
        as layer scale is."""
        dims = self.shape(x)
        shape = (dims[1], 1, 1) if len(dims) == 4 else dims[-1:]
        return self.op("Mul", [x, self.weight(name, shape, uniform(lo, hi))])

    def relu(self, x: str) -> str:
        return self.op("Relu", [x])

    def clip(self, x: str, lo: float, hi: float, *, node: bool = False) -> str:
        """Its bounds are initializers or Constant nodes."""
        bounds = [self.constant(np.float32(v), node=node) for v in (lo, hi)]
        return self.op("Clip", [x, *bounds])

    def silu(self, x: str) -> str:
        """x * sigmoid(x), as exporters write it."""
        return self.op("Mul", [x, self.op("Sigmoid", [x])])

    def hard_swish(self, x: str) -> str:
        """HardSwish where the opset has it, else x * clip(x + 3, 0, 6) / 6."""
        if self.opset >= 14:
            return self.op("HardSwish", [x])
        gate, six = self._gate(x)
        return self.op("Div", [self.op("Mul", [x, gate]), six])

    def hard_sigmoid(self, x: str) -> str:
        """HardSigmoid of slope 1/6, or clip(x + 3, 0, 6) / 6, as for older opsets."""
        if self.opset >= 14:
            return self.op("HardSigmoid", [x], alpha=1 / 6)
        return self.op("Div", self._gate(x))

    def _gate(self, x: str) -> list[str]:
        three, six = (self.constant(np.float32(v), node=True) for v in (3, 6))
        return [self.clip(self.op("Add", [x, three]), 0, 6, node=True), six]

    def add(self, a: str, b: str) -> str:
        return self.op("Add", [a, b])

    def concat(self, parts: Sequence[str], axis: int = 1) -> str:
        return self.op("Concat", parts, axis=axis)

    def max_pool(
        self,
        x: str,
        kernel: int,
        stride: int,
        *,
        pads: Sequence[int] | None = None,
        ceil: bool = False,
    ) -> str:
        return self.op(
            "MaxPool",
            [x],
            kernel_shape=[kernel] * 2,
            pads=list(pads or [0] * 4),
            strides=[stride] * 2,
            **({"ceil_mode": int(ceil)} if self.opset >= 10 else {}),
        )

    def average_pool(
        self, x: str, kernel: int, stride: int, *, pad: int = 0, count: bool = True
    ) -> str:
        """AveragePool; torch counts the padding."""
        return self.op(
            "AveragePool",
            [x],
            count_include_pad=int(count),
            kernel_shape=[kernel] * 2,
            pads=[pad] * 4,
            strides=[stride] * 2,
        )

    def mean(self, x: str, *, keep: bool) -> str:
        """ReduceMean over the pixels, as x.mean([2, 3]) is exported."""
        if self.opset >= 18:
            axes = self.constant(np.array([2, 3]))
            return self.op("ReduceMean", [x, axes], keepdims=int(keep))
        return self.op("ReduceMean", [x], axes=[2, 3], keepdims=int(keep))

    def global_pool(self, x: str) -> str:
        return self.op("GlobalAveragePool", [x])

    def take(self, x: str, index: int, axis: int) -> str:
        """x[..., index, ...], by Gather."""
        return self.op("Gather", [x, self.constant(np.array(index))], axis=axis)

    def flatten(self, x: str) -> str:
        return self.op("Flatten", [x], axis=1)

    def reshape(self, x: str, *shape: int) -> str:
        """Reshape to constant dimensions; the first, -1, is the batch."""
        return self.op("Reshape", [x, self.constant(np.array(shape))])

    def view(self, x: str) -> str:
        """x.view(x.size(0), -1) as it is traced: the shape is computed by nodes."""
        batch = self.size(x, 0)
        rest = self.constant(np.array([-1]), node=True)
        shape = self.op("Concat", [batch, rest], axis=0)
        batch, *sizes = self.shape(x)
        return self.op("Reshape", [x, shape], shape=(batch, int(np.prod(sizes))))

    def size(self, x: str, axis: int) -> str:
        """x.size(axis) as a vector of one."""
        shape = self.op("Shape", [x], shape=(len(self.shape(x)),))
        index = self.constant(np.array(axis), node=True)
        size = self.op("Gather", [shape, index], axis=0)
        if self.opset < 13:
            return self.op("Unsqueeze", [size], axes=[0])
        return self.op("Unsqueeze", [size, self.constant(np.array([0]), node=True)])

    def transpose(self, x: str, *order: int) -> str:
        return self.op("Transpose", [x], perm=order)

    def split(self, x: str, *sizes: int, axis: int = 1) -> list[str]:
        """Split the channels, or another axis."""
        inputs = [x, self.constant(np.array(sizes))]
        first = self.op("Split", inputs, axis=axis, outputs=len(sizes))
        return self.split_outputs(first)

    def slice(self, x: str, start: int, end: int, axis: int = 1) -> str:
        """Channels start .. end - 1, by Slice; or of another axis."""
        values = (start, end, axis, 1)
        bounds = [self.constant(np.array([v]), node=True) for v in values]
        return self.op("Slice", [x, *bounds])

    def shuffle(self, x: str, groups: int = 2, *, traced: bool = False) -> str:
        """Channel shuffle: Reshape, Transpose, Reshape.

        traced: the shapes are computed from x's, as for a symbolic batch.
        """
        batch, channels, height, width = self.shape(x)
        apart = (batch, groups, channels // groups, height, width)
        if not traced:
            y = self.reshape(x, -1, *apart[1:])
            return self.reshape(
                self.transpose(y, 0, 2, 1, 3, 4), -1, channels, height, width
            )
        n, h, w = (self.size(x, axis) for axis in (0, 2, 3))
        g, c = (self.constant(np.array([v]), node=True) for v in (groups, apart[2]))
        y = self.op(
            "Reshape", [x, self.op("Concat", [n, g, c, h, w], axis=0)], shape=apart
        )
        y = self.transpose(y, 0, 2, 1, 3, 4)
        rest = self.constant(np.array([-1]), node=True)
        shape = self.op("Concat", [n, rest, h, w], axis=0)
        return self.op("Reshape", [y, shape], shape=(batch, channels, height, width))

    def resize(
        self,
        x: str,
        mode: str,
        coordinates: str,
        scale: int = 2,
        *,
        to: Sequence[int] = (),
    ) -> str:
        """`scale` times the size, or a size; mode: "nearest" or "linear"."""
        roi = ""
        if self.opset < 13:  # it was not optional
            roi = self.constant(np.zeros(0, np.float32), node=True)
        if to:
            sizes = self.constant(np.array([*self.shape(x)[:2], *to]))
            inputs = [x, roi, "", sizes]
        else:
            factors = np.array([1, 1, scale, scale], np.float32)
            inputs = [x, roi, self.constant(factors, node=True)]
        return self.op(
            "Resize",
            inputs,
            mode=mode,
            coordinate_transformation_mode=coordinates,
            nearest_mode="floor",
            cubic_coeff_a=-0.75,
        )

    def up(self, x: str, scale: int = 2) -> str:
        """So many times the size, as nn.Upsample is exported."""
        return self.resize(x, "nearest", "asymmetric", scale)

    def gru(self, x: str, name: str, hidden: int) -> str:
        """A bidirectional GRU as torch exports it: (T, N, F) to (T, N, 2 * hidden)."""
        first = np.zeros((2, self.shape(x)[1], hidden), np.float32)
        more = ("", self.constant(first, node=True))
        options = {"direction": "bidirectional", "linear_before_reset": 1, "outputs": 2}
        y = self._recurrent("GRU", x, name, hidden, 2, more, **options)
        y = self.transpose(y, 0, 2, 1, 3)
        return self.reshape(y, 0, 0, -1)

    def lstm(self, x: str, name: str, hidden: int) -> str:
        """An LSTM that starts with zeros: (T, N, F) to (T, N, hidden)."""
        y = self._recurrent("LSTM", x, name, hidden)
        return self.op("Squeeze", [y, self.constant(np.array([1]))])

    def _recurrent(
        self,
        operator: str,
        x: str,
        name: str,
        hidden: int,
        directions: int = 1,
        more: Sequence[str] = (),
        **options,
    ) -> str:
        steps, batch, features = self.shape(x)
        rows = {"GRU": 3, "LSTM": 4}[operator] * hidden
        bound = uniform(-1 / np.sqrt(hidden), 1 / np.sqrt(hidden))
        inputs = [
            x,
            self.weight(f"{name}.W", (directions, rows, features), bound),
            self.weight(f"{name}.R", (directions, rows, hidden), bound),
            self.weight(f"{name}.B", (directions, 2 * rows), bound),
            *more,
        ]
        self.macs += directions * steps * batch * rows * (features + hidden)
        return self.op(operator, inputs, name, hidden_size=hidden, **options)
