# SPDX-License-Identifier: Apache-2.0
"""The networks that must run whole: how each is exported, and what was published."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx

from bench.networks import (
    classic,
    detectors,
    inception,
    keyword_spotter,
    mobilenet,
    resnet,
    samples,
    shufflenet,
    unet,
    weights,
)
from bench.networks.builder import Net


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """define: draws it on a Net for inputs of a size; options: of the Net.

    parameters: of the publication or of the implementation that the definition names,
    to the last one; macs: millions of multiply-accumulates of convolutions and fully
    connected layers; both of width 1.  width: of the version in docs/networks.md;
    small: width and size of the version for tests.
    """

    define: Callable[[Net, int], None]
    opset: int
    size: int
    small: tuple[float, int]
    parameters: int | None
    macs: float | None
    width: float = 1.0
    dtype: type = np.float32
    options: dict = field(default_factory=dict)


NETWORKS = {
    "alexnet": Network(
        define=classic.alexnet,
        opset=9,
        size=227,
        small=(0.125, 67),
        parameters=60_965_224,
        macs=724,
        options={"listed": True},
    ),
    "vgg19": Network(
        define=classic.vgg19,
        opset=11,
        size=224,
        small=(0.125, 64),
        parameters=143_667_240,
        macs=19_632,
        options={"numbered": True, "symbolic": True},
    ),
    "googlenet": Network(
        define=classic.googlenet,
        opset=12,
        size=224,
        small=(0.25, 64),
        parameters=6_998_552,
        macs=1_583,
        options={"listed": True},
    ),
    "resnet18": Network(
        define=partial(resnet.resnet, depth=18),
        opset=11,
        size=224,
        small=(0.125, 64),
        parameters=11_689_512,
        macs=1_814,
        options={"numbered": True, "symbolic": True},
    ),
    "resnet50": Network(
        define=partial(resnet.resnet, depth=50),
        opset=13,
        size=224,
        small=(0.125, 64),
        parameters=25_557_032,
        macs=4_089,
        options={"fold": True},
    ),
    "resnet101": Network(
        define=partial(resnet.resnet, depth=101),
        opset=17,
        size=224,
        small=(0.125, 32),
        parameters=44_549_160,
        macs=7_801,
    ),
    "resnet152": Network(
        define=partial(resnet.resnet, depth=152),
        opset=21,
        size=224,
        small=(0.0625, 32),
        parameters=60_192_808,
        macs=11_514,
        options={"fold": True, "symbolic": True},
    ),
    "squeezenet1_1": Network(
        define=classic.squeezenet,
        opset=13,
        size=224,
        small=(0.25, 63),
        parameters=1_235_496,
        macs=349,
    ),
    "squeezenet1_1_float16": Network(
        define=classic.squeezenet,
        opset=13,
        size=224,
        small=(0.25, 63),
        parameters=1_235_496,
        macs=349,
        dtype=np.float16,
    ),
    "mobilenet_v1": Network(
        define=mobilenet.mobilenet_v1,
        opset=12,
        size=224,
        small=(0.25, 64),
        parameters=4_231_976,
        macs=569,
    ),
    "mobilenet_v2": Network(
        define=mobilenet.mobilenet_v2,
        opset=11,
        size=224,
        small=(0.25, 64),
        parameters=3_504_872,
        macs=301,
        options={"fold": True, "numbered": True, "symbolic": True},
    ),
    "mobilenet_v3_large": Network(
        define=partial(mobilenet.mobilenet_v3, large=True),
        opset=17,
        size=224,
        small=(0.25, 64),
        parameters=5_483_032,
        macs=217,
        options={"fold": True},
    ),
    "mobilenet_v3_small": Network(
        define=partial(mobilenet.mobilenet_v3, large=False),
        opset=12,
        size=224,
        small=(0.25, 64),
        parameters=2_542_856,
        macs=57,
    ),
    "shufflenet_v2": Network(
        define=shufflenet.shufflenet_v2,
        opset=11,
        size=224,
        small=(0.25, 64),
        parameters=2_278_604,
        macs=145,
        options={"fold": True, "symbolic": True},
    ),
    "efficientnet_b0": Network(
        define=mobilenet.efficientnet_b0,
        opset=18,
        size=224,
        small=(0.25, 64),
        parameters=5_288_548,
        macs=386,
    ),
    "densenet121": Network(
        define=resnet.densenet121,
        opset=14,
        size=224,
        small=(0.125, 64),
        parameters=7_978_856,
        macs=2_834,
        options={"fold": True},
    ),
    "inception_v3": Network(
        define=inception.inception_v3,
        opset=16,
        size=299,
        small=(0.125, 75),
        parameters=23_834_568,
        macs=5_713,
        options={"fold": True},
    ),
    "ssd_mobilenet": Network(
        define=detectors.ssd_mobilenet,
        opset=13,
        size=300,
        small=(0.25, 96),
        parameters=5_783_417,  # published: 5.783 million
        macs=1_158,
    ),
    "yolov5n": Network(
        define=detectors.yolov5n,
        opset=12,
        size=640,
        small=(0.25, 64),
        parameters=1_872_157,
        macs=2_250,
        options={"fold": True},
    ),
    "yolo_shuffle": Network(
        define=detectors.yolo_shuffle,
        opset=15,
        size=320,
        small=(0.25, 64),
        parameters=None,
        macs=None,
    ),
    "unet": Network(
        define=partial(unet.unet, bilinear=False),
        opset=17,
        size=256,
        small=(0.125, 32),
        parameters=31_037_633,
        macs=None,
        width=0.25,
    ),
    "unet_bilinear": Network(
        define=partial(unet.unet, bilinear=True),
        opset=14,
        size=256,
        small=(0.125, 32),
        parameters=17_262_977,
        macs=None,
        options={"fold": True},
        width=0.25,
    ),
    "keyword_spotter": Network(
        define=keyword_spotter.keyword_spotter,
        opset=15,
        size=keyword_spotter.FRAMES,
        small=(1.0, 47),
        parameters=229_474,
        macs=None,
        options={"symbolic": True},
    ),
}

STATISTICS_SAMPLES = 16
STATISTICS_SEED = 100


def draw(name: str, *, width: float, size: int, batch: int = 1) -> Net:
    """The network's nodes."""
    network = NETWORKS[name]
    net = Net(name, network.opset, width=width, batch=batch, **network.options)
    network.define(net, size)
    return net


def sizes(name: str, *, small: bool) -> tuple[float, int]:
    """Width and size of the small version, or of the one in docs/networks.md."""
    network = NETWORKS[name]
    return network.small if small else (network.width, network.size)


def drawn(name: str, *, small: bool = False) -> weights.Arrays:
    """Its weights, with statistics."""
    width, size = sizes(name, small=small)
    whole = draw(name, width=width, size=size, batch=STATISTICS_SAMPLES)
    shapes = {i: whole.shape(i)[1:] for i in whole.inputs}
    data = samples.images(shapes, STATISTICS_SAMPLES, seed=STATISTICS_SEED)
    batch = {i: np.concatenate([one[i] for one in data]) for i in shapes}
    return weights.calibrated(whole, weights.draw(whole), batch)


def build(name: str, *, small: bool = False) -> tuple[Net, onnx.ModelProto]:
    """The network with its weights."""
    width, size = sizes(name, small=small)
    net = draw(name, width=width, size=size)
    proto = weights.model(net, drawn(name, small=small), dtype=NETWORKS[name].dtype)
    return net, proto
