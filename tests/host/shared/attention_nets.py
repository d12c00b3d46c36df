# SPDX-License-Identifier: Apache-2.0
"""Blocks of attention as exporters write them."""

import math

import numpy as np

from onnx_nets import net, node


class Block:
    """Nodes of a network while they are appended, with random weights."""

    def __init__(self, seed=0):
        self.nodes, self.weights = [], {}
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


def vit(tokens=9, heads=3, width=8, batch=1, seed=0):
    """Q, K and V of one projection, (3, B, h, T, d); the scores are divided."""
    b, channels = Block(seed), heads * width
    b.linear("x", "qkv", channels, 3 * channels)
    b("Reshape", "qkv", "parts", np.array([batch, tokens, 3, heads, width]))
    b("Transpose", "parts", "turned", perm=[2, 0, 3, 1, 4])
    for at, name in enumerate("qkv"):
        b("Gather", "turned", name if name != "k" else "keys", np.array(at), axis=0)
    b("Transpose", "keys", "k", perm=[0, 1, 3, 2])
    b("MatMul", "q k", "scores")
    b("Div", "scores", "scaled", np.float32(math.sqrt(width)))
    b("Softmax", "scaled", "p", axis=-1)
    b("MatMul", "p v", "heads")
    b("Transpose", "heads", "joined", perm=[0, 2, 1, 3])
    b("Reshape", "joined", "tokens", np.array([batch, tokens, channels]))
    b.linear("tokens", "y", channels, channels)
    return b.model((batch, tokens, channels))


def sdpa(tokens=9, heads=3, width=8, batch=1, seed=0):
    """Three projections; Q and K are scaled, and the scores are masked."""
    b, channels = Block(seed), heads * width
    for name in ("query", "key", "value"):
        b.linear("x", name, channels, channels)
        b("Reshape", name, f"{name}_parts", np.array([batch, tokens, heads, width]))
    root = np.float32(width**-0.25)
    b("Transpose", "query_parts", "q", perm=[0, 2, 1, 3])
    b("Transpose", "key_parts", "k", perm=[0, 2, 3, 1])
    b("Transpose", "value_parts", "v", perm=[0, 2, 1, 3])
    b("Mul", "q", "q_scaled", root)
    b("Mul", "k", "k_scaled", root)
    b("MatMul", "q_scaled k_scaled", "scores")
    mask = np.triu(np.full((tokens, tokens), -10, np.float32), 1)
    b("Add", "scores", "masked", mask)
    b("Softmax", "masked", "p", axis=-1)
    b("MatMul", "p v", "heads")
    b("Transpose", "heads", "joined", perm=[0, 2, 1, 3])
    b("Reshape", "joined", "tokens", np.array([batch, tokens, channels]))
    b.linear("tokens", "y", channels, channels)
    return b.model((batch, tokens, channels))


def multihead(tokens=9, heads=3, width=8, seed=0):
    """nn.MultiheadAttention: steps of time first, heads and batch are one axis."""
    b, channels = Block(seed), heads * width
    b.linear("x", "qkv", channels, 3 * channels)
    b("Reshape", "qkv", "parts", np.array([tokens, 1, 3, channels]))
    b("Transpose", "parts", "three", perm=[2, 0, 1, 3])
    for at, name in enumerate("qkv"):
        b("Gather", "three", f"{name}_all", np.array(at), axis=0)
        b("Reshape", f"{name}_all", f"{name}_heads", np.array([tokens, heads, width]))
        b("Transpose", f"{name}_heads", name, perm=[1, 0, 2])
    b("Div", "q", "q_scaled", np.float32(math.sqrt(width)))
    b("Transpose", "k", "k_turned", perm=[0, 2, 1])
    b("MatMul", "q_scaled k_turned", "scores")
    b("Softmax", "scores", "p", axis=-1)
    b("MatMul", "p v", "heads")
    b("Transpose", "heads", "joined", perm=[1, 0, 2])
    b("Reshape", "joined", "rows", np.array([tokens, channels]))
    weight = b.random(channels, channels)
    b("Gemm", "rows", "projected", weight, b.random(channels), transB=1)
    b("Reshape", "projected", "y", np.array([tokens, 1, channels]))
    return b.model((tokens, 1, channels))


def c2psa(rows=3, columns=4, heads=2, key=4, width=8, seed=0):
    """Ultralytics' attention: channels first, of pixels."""
    b, channels, pixels = Block(seed), heads * width, rows * columns
    each = 2 * key + width
    weight = b.random(channels, heads * each).T.reshape(-1, channels, 1, 1)
    b("Conv", "x", "qkv", weight, b.random(heads * each))
    b("Reshape", "qkv", "parts", np.array([1, heads, each, pixels]))
    sizes = np.array([key, key, width])
    b.weights["sizes"] = sizes
    b.nodes.append(node("Split", "parts sizes", "q k v", axis=2))
    b("Transpose", "q", "q_turned", perm=[0, 1, 3, 2])
    b("MatMul", "q_turned k", "scores")
    b("Mul", "scores", "scaled", np.float32(key**-0.5))
    b("Softmax", "scaled", "p", axis=-1)
    b("Transpose", "p", "p_turned", perm=[0, 1, 3, 2])
    b("MatMul", "v p_turned", "heads")
    b("Reshape", "heads", "image", np.array([1, channels, rows, columns]))
    b("Reshape", "v", "v_image", np.array([1, channels, rows, columns]))
    taps = b.random(channels, 1, 3, 3)
    b("Conv", "v_image", "places", taps, group=channels, pads=[1] * 4)
    b("Add", "image places", "sum")
    weight = b.random(channels, channels).reshape(channels, channels, 1, 1)
    b("Conv", "sum", "y", weight, b.random(channels))
    return b.model((1, channels, rows, columns))


def swin(windows=2, side=3, heads=2, width=8, seed=0):
    """Windows of an image, with a bias for each pair of places."""
    b, channels, tokens = Block(seed), heads * width, side * side
    size = windows * side
    split = np.array([1, windows, side, windows, side, channels])
    b("Reshape", "x", "grid", split)
    b("Transpose", "grid", "windows", perm=[0, 1, 3, 2, 4, 5])
    b("Reshape", "windows", "each", np.array([windows**2, tokens, channels]))
    b.linear("each", "qkv", channels, 3 * channels)
    b("Reshape", "qkv", "parts", np.array([windows**2, tokens, 3, heads, width]))
    b("Transpose", "parts", "turned", perm=[2, 0, 3, 1, 4])
    for at, name in enumerate("qkv"):
        b("Gather", "turned", name, np.array(at), axis=0)
    b("Mul", "q", "q_scaled", np.float32(width**-0.5))
    b("Transpose", "k", "k_turned", perm=[0, 1, 3, 2])
    b("MatMul", "q_scaled k_turned", "scores")
    b("Add", "scores", "biased", b.random(1, heads, tokens, tokens))
    b("Softmax", "biased", "p", axis=-1)
    b("MatMul", "p v", "heads")
    b("Transpose", "heads", "joined", perm=[0, 2, 1, 3])
    b("Reshape", "joined", "rows", np.array([windows**2, tokens, channels]))
    b.linear("rows", "projected", channels, channels)
    back = np.array([1, windows, windows, side, side, channels])
    b("Reshape", "projected", "back", back)
    b("Transpose", "back", "pixels", perm=[0, 1, 3, 2, 4, 5])
    b("Reshape", "pixels", "y", np.array([1, size, size, channels]))
    return b.model((1, size, size, channels))


NETS = {"vit": vit, "sdpa": sdpa, "multihead": multihead, "c2psa": c2psa, "swin": swin}
