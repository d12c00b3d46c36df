# SPDX-License-Identifier: Apache-2.0
"""Trains the network of the demo and writes digits.onnx beside this file.

    python tests/demo/train_digits.py

Needs torch, which nothing else here does: 2.13.0 on a CPU made the committed file, in
ten seconds. BatchNormalization stays in it, as in most networks that one meets.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from digits import Part, split

EPOCHS = 80
BATCH = 32


class Digits(nn.Module):
    """image (N, 1, 8, 8) -> logits (N, 10); each kind of layer that has a kernel."""

    def __init__(self):
        super().__init__()
        self.stem = convolution(1, 16, 3)
        self.down = convolution(16, 32, 3, stride=2)
        self.depthwise = convolution(32, 32, 3, groups=32)
        self.project = convolution(32, 32, 1)
        self.expand = convolution(32, 64, 1)
        self.classify = nn.Linear(64, 10)

    def forward(self, image):
        x = self.down(self.stem(image).relu()).relu()
        y = self.project(nn.functional.relu6(self.depthwise(x)))
        x = self.expand((x + y).relu())
        return self.classify(nn.functional.relu6(x).mean((2, 3)))


def convolution(inputs, outputs, size, *, stride=1, groups=1):
    conv = nn.Conv2d(
        inputs, outputs, size, stride, size // 2, groups=groups, bias=False
    )
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


def floats(part: Part) -> torch.Tensor:
    """What digits.toml makes of the grey levels: (N, 1, 8, 8)."""
    return torch.from_numpy(part.x).permute(0, 3, 1, 2).float() / 8 - 1


def shifted(images: torch.Tensor) -> torch.Tensor:
    """The same images, each moved by up to one pixel."""
    padded = nn.functional.pad(images, (1, 1, 1, 1), value=-1.0)
    offsets = torch.randint(3, (len(images), 2)).tolist()
    moved = [
        image[:, y : y + 8, x : x + 8]
        for image, (y, x) in zip(padded, offsets, strict=True)
    ]
    return torch.stack(moved)


def train(part: Part) -> Digits:
    torch.manual_seed(8)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    model = Digits()
    images, labels = floats(part), torch.from_numpy(part.y)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    steps = EPOCHS * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(images))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[first : first + BATCH]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(
                model(shifted(images[batch])), labels[batch], label_smoothing=0.05
            )
            loss.backward()
            optimizer.step()
            schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}")
    return model.eval()


class Writer:
    """Collects nodes and initializers; each method returns the name of its output."""

    def __init__(self):
        self.nodes = []
        self.initializers = []

    def constant(self, name, values):
        array = values.detach().numpy().astype(np.float32)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, name, *inputs, **attributes):
        output = f"{name}_out"
        self.nodes.append(helper.make_node(kind, inputs, [output], name, **attributes))
        return output

    def convolution(self, name, layer, x):
        conv, norm = layer
        weight = self.constant(f"{name}_weight", conv.weight)
        x = self.node(
            "Conv",
            name,
            x,
            weight,
            group=conv.groups,
            kernel_shape=conv.kernel_size,
            pads=conv.padding * 2,
            strides=conv.stride,
        )
        values = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
        parts = ("scale", "bias", "mean", "variance")
        names = [
            self.constant(f"{name}_norm_{part}", value)
            for part, value in zip(parts, values, strict=True)
        ]
        kind = "BatchNormalization"
        return self.node(kind, f"{name}_norm", x, *names, epsilon=norm.eps)


def export(model: Digits) -> onnx.ModelProto:
    w = Writer()
    x = w.node("Relu", "stem_relu", w.convolution("stem", model.stem, "image"))
    x = w.node("Relu", "down_relu", w.convolution("down", model.down, x))
    six = (w.constant("zero", torch.tensor(0.0)), w.constant("six", torch.tensor(6.0)))
    y = w.convolution("depthwise", model.depthwise, x)
    y = w.node("Clip", "depthwise_relu6", y, *six)
    y = w.convolution("project", model.project, y)
    x = w.node("Relu", "residual_relu", w.node("Add", "residual", x, y))
    x = w.convolution("expand", model.expand, x)
    x = w.node("Clip", "expand_relu6", x, *six)
    x = w.node("Flatten", "flatten", w.node("GlobalAveragePool", "pool", x))
    weight = w.constant("classify_weight", model.classify.weight)
    bias = w.constant("classify_bias", model.classify.bias)
    w.nodes.append(
        helper.make_node("Gemm", [x, weight, bias], ["logits"], "classify", transB=1)
    )
    graph = helper.make_graph(
        w.nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        w.initializers,
    )
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    onnx.checker.check_model(proto, full_check=True)
    return proto


def main() -> None:
    learned, unseen = split()
    model = train(learned)
    with torch.no_grad():
        hits = (model(floats(unseen)).argmax(1).numpy() == unseen.y).mean()
    print(f"{hits:.2%} of {len(unseen.y)} digits that it never saw")
    path = Path(__file__).with_name("digits.onnx")
    onnx.save(export(model), path)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
