# SPDX-License-Identifier: Apache-2.0
"""The networks that must run whole: how each is exported, and what was published."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from bench.networks import (
    audio,
    classic,
    detectors,
    hybrids,
    inception,
    mobilenet,
    ocr,
    resnet,
    rtdetr,
    samples,
    shufflenet,
    transformers,
    unet,
    weights,
    yolo,
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
    width: float
    dtype: type
    options: dict[str, bool]


MODULES = (
    *(audio, classic, detectors, hybrids, inception, mobilenet, ocr, resnet, rtdetr),
    *(shufflenet, transformers, unet, yolo),
)
DEFINITIONS = {name: each for module in MODULES for name, each in vars(module).items()}
DEFINITIONS |= {
    **{f"resnet{n}": partial(resnet.resnet, depth=n) for n in resnet.BLOCKS},
    "squeezenet1_1": classic.squeezenet,
    "squeezenet1_1_float16": classic.squeezenet,
    "mobilenet_v3_large": partial(mobilenet.mobilenet_v3, large=True),
    "mobilenet_v3_small": partial(mobilenet.mobilenet_v3, large=False),
    "unet": partial(unet.unet, bilinear=False),
    "unet_bilinear": partial(unet.unet, bilinear=True),
}
"""Functions have the names of their networks, but for these."""
# Opset, width and size, those of the small version, parameters, MMACs, options of Net
# or float16.
TABLE = """\
alexnet                9  1     227  0.125   67  60965224   724  listed
vgg19                 11  1     224  0.125   64 143667240 19632  numbered symbolic
googlenet             12  1     224  0.25    64   6998552  1583  listed
resnet18              11  1     224  0.125   64  11689512  1814  numbered symbolic
resnet50              13  1     224  0.125   64  25557032  4089  fold
resnet101             17  1     224  0.125   32  44549160  7801
resnet152             21  1     224  0.0625  32  60192808 11514  fold symbolic
squeezenet1_1         13  1     224  0.25    63   1235496   349
squeezenet1_1_float16 13  1     224  0.25    63   1235496   349  float16
mobilenet_v1          12  1     224  0.25    64   4231976   569
mobilenet_v2          11  1     224  0.25    64   3504872   301  fold numbered symbolic
mobilenet_v3_large    17  1     224  0.25    64   5483032   217  fold
mobilenet_v3_small    12  1     224  0.25    64   2542856    57
shufflenet_v2         11  1     224  0.25    64   2278604   145  fold symbolic
efficientnet_b0       18  1     224  0.25    64   5288548   386
densenet121           14  1     224  0.125   64   7978856  2834  fold
inception_v3          16  1     299  0.125   75  23834568  5713  fold
ssd_mobilenet         13  1     300  0.25    96   5783417  1158
yolov5n               12  1     640  0.25    64   1872157  2250  fold
yolo_shuffle          15  1     320  0.25    64         -     -
unet                  17  0.25  256  0.125   32  31037633     -
unet_bilinear         14  0.25  256  0.125   32  17262977     -  fold
keyword_spotter       15  1     151  1       47    229474     -  symbolic
yolov8n               17  1     640  0.25    64   3157200  4350  fold
yolov8n_nms           17  1     640  0.25    64   3157200  4350  fold
yolo11n               20  1     640  0.25    64   2624080  3250  fold
rtdetr_r18            17  1     320  0.25    64         -     -  fold
mobilevit_s           17  1     256  0.25    64   5578632     -
efficientformer_l1    14  1     224  0.25    64  12289928  1300
deit_tiny             17  1     224  0.25    64   5717416  1260
swin_tiny             17  1     224  0.25    64  28288354  4510
segformer_b0          17  1     512  0.25    64   3752694  8400
depth_anything        17  1     252  0.125   56         -     -
tinybert              14  1     128  0.25    16  14350248     -
whisper_tiny          17  1    3000  0.25    64   8208384     -
silero_vad            16  1    8192  0.25  1024    309633     -
ppocr_detector        14  1     320  0.25    64         -     -
ppocr_recogniser      14  1     320  0.25    64         -     -
mobilefacenet         13  1     112  0.25    64         -     -
"""


def _network(name: str, words: list[str]) -> Network:
    opset, width, size, small_width, small_size, parameters, macs, *options = words
    return Network(
        define=DEFINITIONS[name],
        opset=int(opset),
        size=int(size),
        small=(float(small_width), int(small_size)),
        parameters=None if parameters == "-" else int(parameters),
        macs=None if macs == "-" else int(macs),
        width=float(width),
        dtype=np.float16 if "float16" in options else np.float32,
        options=dict.fromkeys(set(options) - {"float16"}, True),
    )


ROWS = map(str.split, TABLE.splitlines())
NETWORKS = {name: _network(name, words) for name, *words in ROWS}

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
    return settled(draw(name, width=width, size=size, batch=STATISTICS_SAMPLES))


def settled(whole: Net) -> weights.Arrays:
    """Weights of a network, drawn for STATISTICS_SAMPLES, with their statistics."""
    data = samples.inputs(whole, STATISTICS_SAMPLES, seed=STATISTICS_SEED)
    batch = {i: np.concatenate([one[i] for one in data]) for i in whole.inputs}
    return weights.calibrated(whole, weights.draw(whole), batch)


def build(name: str, *, small: bool = False) -> tuple[Net, onnx.ModelProto]:
    """The network with its weights."""
    width, size = sizes(name, small=small)
    net = draw(name, width=width, size=size)
    proto = weights.model(net, drawn(name, small=small), dtype=NETWORKS[name].dtype)
    return net, proto
