# SPDX-License-Identifier: Apache-2.0
"""Random networks: import, with all its folding and fusing, changes no value."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_nets import assert_same, net, node

F = np.float32
SIDE = 6


class Builder:
    """Grows a network over tensors of one image size, each with its channels."""

    def __init__(self, data):
        self.data = data
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        self.nodes, self.weights = [], {}
        self.tensors = {"x": 4}

    def pick(self, choices):
        return self.data.draw(st.sampled_from(choices))

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        size = np.prod(shape[1:], dtype=int) if len(shape) > 1 else 1
        value = self.rng.normal(0, 1 / np.sqrt(size), shape)
        self.weights[name] = value.astype(F)
        return name

    def emit(self, operator, inputs, channels, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(node(operator, inputs, output, **attributes))
        self.tensors[output] = channels

    def conv(self, x, c):
        size = self.pick([1, 3, 5])
        groups = self.pick([1, c, 2 if c % 2 == 0 else 1])
        out = groups * self.pick([1, 2, 3])
        names = [x, self.weight(out, c // groups, size, size)]
        if self.pick([True, False]):
            names.append(self.weight(out))
        self.emit("Conv", " ".join(names), out, pads=[size // 2] * 4, group=groups)

    def norm(self, x, c):
        names = [x, *(self.weight(c) for _ in range(3)), self.weight(c)]
        self.weights[names[-1]] = np.abs(self.weights[names[-1]]) + F(0.5)
        self.emit("BatchNormalization", " ".join(names), c)

    def arithmetic(self, x, c):
        operator = self.pick(["Add", "Sub", "Mul"])
        constant = self.weight(*self.pick([(c, 1, 1), (1, c, 1, 1), (1,)]))
        names = [x, constant] if self.pick([True, False]) else [constant, x]
        self.emit(operator, " ".join(names), c)

    def activation(self, x, c):
        operator = self.pick(["Relu", "LeakyRelu", "Clip", "Identity", "Dropout"])
        if operator == "Clip":
            lo, hi = self.weight(), self.weight()
            self.weights[lo], self.weights[hi] = F(-0.5), F(1.5)
            self.emit("Clip", f"{x} {lo} {hi}", c)
        else:
            self.emit(operator, x, c)

    def pool(self, x, c):
        operator = self.pick(["MaxPool", "AveragePool"])
        self.emit(operator, x, c, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def join(self, x, c):
        others = [name for name, channels in self.tensors.items() if channels == c]
        if self.pick([True, False]):
            self.emit("Add", f"{x} {self.pick(others)}", c)
        else:
            other = self.pick(list(self.tensors))
            self.emit("Concat", f"{x} {other}", c + self.tensors[other], axis=1)

    def grow(self):
        latest = list(self.tensors)[-3:]
        x = self.pick(latest)
        kinds = [self.conv, self.norm, self.arithmetic, self.activation, self.pool]
        self.pick([*kinds, self.activation, self.join])(x, self.tensors[x])

    def finish(self):
        x = list(self.tensors)[-1]
        tail = self.pick(["none", "flatten", "pool"])
        if tail == "none":
            return
        features = self.tensors[x] * SIDE * SIDE
        if tail == "pool":
            self.emit("GlobalAveragePool", x, 0)
            features = self.tensors[x]
            x = list(self.tensors)[-1]
        self.emit("Flatten", x, 0)
        x = list(self.tensors)[-1]
        self.emit("Gemm", f"{x} {self.weight(features, 3)}", 0)


@settings(max_examples=80)
@given(st.data())
def test_random_network(tmp_path_factory, data):
    builder = Builder(data)
    for _ in range(data.draw(st.integers(1, 10))):
        builder.grow()
    builder.finish()
    outputs = [list(builder.tensors)[-1]]
    outputs += data.draw(
        st.sets(st.sampled_from(list(builder.tensors)[1:]), max_size=1)
    )
    model = net(
        builder.nodes,
        {"x": (1, 4, SIDE, SIDE)},
        " ".join(dict.fromkeys(outputs)),
        builder.weights,
    )
    assert_same(tmp_path_factory.mktemp("random"), model)
