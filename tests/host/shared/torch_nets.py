# SPDX-License-Identifier: Apache-2.0
"""PyTorch networks of every kind of layer that can be trained with rounding."""

import torch
from torch import nn
from torch.nn import functional

SHAPE = (3, 8, 8)


def block(inputs, outputs, size=3, *, norm=True, **options):
    """Convolution and normalization, whose statistics are not those of a new layer."""
    conv = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=not norm, **options)
    if not norm:
        return conv
    bn = nn.BatchNorm2d(outputs)
    with torch.no_grad():
        bn.weight.uniform_(0.5, 1.5)
        bn.bias.normal_(0, 0.2)
        bn.running_mean.normal_(0, 0.1)
        bn.running_var.uniform_(0.5, 1.5)
    return nn.Sequential(conv, bn)


class Residual(nn.Module):
    """Sums in both orders, of two convolutions, and after a depthwise one."""

    def __init__(self):
        super().__init__()
        self.stem = block(3, 8)
        self.left, self.right = block(8, 8), block(8, 8, 1, norm=False)
        self.depthwise = block(8, 8, groups=8)
        self.last = block(8, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, image):
        x = self.stem(image).relu()
        x = (self.right(x) + self.left(x)).relu()
        x = functional.relu6(x + self.depthwise(x))
        x = torch.add(self.last(x), x)
        return self.head(x.mean((2, 3)))


class Joined(nn.Module):
    """Concat of tensors of different ranges, and what shares their scale."""

    def __init__(self):
        super().__init__()
        self.a, self.b = block(3, 4), block(3, 4)
        self.pool = nn.MaxPool2d(2)
        self.after = block(8, 6, stride=1)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(6 * 4, 4, bias=False)
        self.leaky = nn.LeakyReLU(0.125)

    def forward(self, image):
        a, b = self.leaky(self.a(image)), self.b(image).clamp(-0.5, 2.0)
        x = self.after(self.pool(torch.cat([a, b], dim=1)))
        x = nn.functional.avg_pool2d(functional.hardtanh(x), 2, 2)
        return self.head(self.drop(x.view(x.size(0), -1)))


class Functional(nn.Module):
    """The same things as functions and methods; two inputs and two outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = block(3, 6, norm=False), block(3, 6)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.flat = nn.Flatten()
        self.head = nn.Sequential(nn.Linear(6, 7), nn.BatchNorm1d(7), nn.ReLU())

    def forward(self, first, second):
        x = torch.relu(self.a(first)) + functional.leaky_relu(self.b(second), 0.25)
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        return self.head(self.flat(self.pool(x))), functional.relu(x)


NETWORKS = {"residual": Residual, "joined": Joined, "functional": Functional}


def network(name, seed=1):
    """The network and a batch for each of its inputs."""
    torch.manual_seed(seed)
    model = NETWORKS[name]()
    count = 2 if name == "functional" else 1
    return model, [torch.randn(16, *SHAPE) for _ in range(count)]
