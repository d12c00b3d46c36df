# SPDX-License-Identifier: Apache-2.0
"""Layers without a network, and rows drawn from samples of their inputs."""

import numpy as np

from neon8.calibrate.statistics.sampler import Sampler
from neon8.ir.graph import Activation
from neon8.operators.convolution import Conv2d

F = np.float32
RNG = np.random.default_rng(5)


def conv(*, out=4, channels=4, kernel=(3, 3), groups=1, name="conv", **options):
    weight = RNG.normal(size=(out, channels // groups, *kernel)).astype(F)
    return Conv2d(
        name=name,
        inputs=("x",),
        output="y",
        pre_activation="y",
        weight=weight,
        bias=RNG.normal(size=out).astype(F),
        groups=groups,
        **options,
    )


def image(layer, size):
    channels = layer.weight.shape[1] * layer.groups
    return RNG.normal(size=(1, channels, *size)).astype(F)


def sampled(layer, images, names=None):
    """What is drawn of images, (1, I, ...), whose digests are `names`."""
    sampler = Sampler([layer], {"x": [("x", Activation())]})
    for name, x in zip(names or range(len(images)), images, strict=True):
        sampler.add({"x": x}, digest=f"{name}")
    return sampler.result()[layer.name]
