# SPDX-License-Identifier: Apache-2.0
"""Networks of which dimensions are left open, as exporters leave them.

Each is drawn at the first and the last of its shapes.  Dimensions of the input that
differ are open, and so is the entry of a Reshape's shape that does; all else must be
the same.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from bench.networks import catalogue, samples, weights
from bench.networks.builder import Net

Arrays = dict[str, np.ndarray]


Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """bounds: of the input, as in --shape, without its name; shapes: some that are
    within them, of which the first calibrates."""

    bounds: str
    shapes: Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Resizable:
    """A network of the catalogue.

    axis: of the dimension that its definition calls the size; small: the version for
    tests, full: the one in docs/memory.md.  keep: layers in float32, as a part of a
    table in int8 would have another scale than the whole.
    """

    axis: int = 3
    keep: tuple[str, ...] = ()
    small: Case
    full: Case


def images(*sizes: tuple[int, int]) -> Shapes:
    """Shapes of one image in three colours, from height and width."""
    return tuple((1, 3, *size) for size in sizes)


UNET = Resizable(
    small=Case("1,3,32..96:16,32..96:16", images((32, 32), (48, 96), (96, 80))),
    full=Case(
        "1,3,128..512:16,128..512:16", images((256, 256), (128, 512), (512, 512))
    ),
)
NETWORKS = {
    "ppocr_detector": Resizable(
        small=Case(
            "1,3,64..160:32,64..160:32",
            images((64, 64), (96, 64), (64, 160), (128, 96), (160, 160)),
        ),
        full=Case(
            "1,3,160..1280:32,160..1280:32",
            images((320, 320), (320, 640), (640, 640), (960, 736), (1280, 1280)),
        ),
    ),
    "unet": UNET,
    "unet_bilinear": UNET,
    "ppocr_recogniser": Resizable(
        small=Case(
            "1,3,48,32..336:8", images(*((48, w) for w in (*range(32, 320, 32), 336)))
        ),
        full=Case(
            "1,3,48,32..1280:8", images(*((48, w) for w in (320, 64, 640, 1280)))
        ),
    ),
    "keyword_spotter": Resizable(
        axis=2,
        small=Case(
            "1,1,16..320:8,40", tuple((1, 1, t, 40) for t in (48, 16, 104, 320))
        ),
        full=Case("1,1,16..1600:8,40", tuple((1, 1, t, 40) for t in (152, 48, 1600))),
    ),
    "whisper_tiny": Resizable(
        axis=2,
        keep=("/positions/Add",),
        small=Case("1,80,8..160:2", tuple((1, 80, t) for t in (64, 8, 42, 160))),
        full=Case(
            "1,80,100..3000:2", tuple((1, 80, t) for t in (500, 100, 1500, 3000))
        ),
    ),
    "silero_vad": Resizable(
        axis=1,
        small=Case("1,512..4096:512", ((1, 1024), (1, 512), (1, 2560), (1, 4096))),
        full=Case("1,512..65536:512", ((1, 8192), (1, 512), (1, 65536))),
    ),
    "mobilenet_v2": Resizable(
        small=Case("1..8,3,64,64", tuple((n, 3, 64, 64) for n in (1, 2, 5, 8))),
        full=Case("1..8,3,224,224", tuple((n, 3, 224, 224) for n in (1, 2, 4, 8))),
    ),
    "squeezenet1_1": Resizable(
        small=Case("1,3,160..320,160..320", images((160, 160), (233, 320), (320, 320))),
        full=Case(
            "1,3,160..320,160..320",
            images((224, 224), (160, 160), (233, 320), (320, 320)),
        ),
    ),
    "yolov8n": Resizable(
        keep=("/low/Sub", "/high/Add", "/steps/Mul"),
        small=Case("1,3,64..160:32,64..160:32", images((64, 64), (160, 64), (96, 160))),
        full=Case(
            "1,3,320..1280:32,320..1280:32",
            images((320, 320), (384, 640), (640, 640), (1280, 1280)),
        ),
    ),
}


def case(name: str, *, small: bool) -> Case:
    """The version for tests, or the other one."""
    return NETWORKS[name].small if small else NETWORKS[name].full


def draw(name: str, shape: tuple[int, ...], *, width: float, batch: int) -> Net:
    """The network's nodes for inputs of a shape."""
    known = catalogue.NETWORKS[name]
    net = Net(
        name, known.opset, width=width, batch=batch, resizable=True, **known.options
    )
    known.define(net, shape[NETWORKS[name].axis])
    return net


def build(name: str, *, small: bool = False) -> onnx.ModelProto:
    known, shapes = catalogue.NETWORKS[name], case(name, small=small).shapes
    width = known.small[0] if small else known.width
    drawn = partial(draw, name, width=width)
    one, other = (drawn(shape, batch=shape[0]) for shape in (shapes[0], shapes[-1]))
    open_constants(one, other)
    many = drawn(shapes[0], batch=catalogue.STATISTICS_SAMPLES)
    proto = weights.model(one, catalogue.settled(many))
    (entry,) = proto.graph.input
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        if len(set(sizes)) > 1:
            entry.type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
    for output in proto.graph.output:
        for dim in output.type.tensor_type.shape.dim:
            dim.Clear()
    return proto


def open_constants(net: Net, other: Net) -> None:
    """Leave open what differs from the same network at another size."""
    assert [n.op_type for n in net.nodes] == [n.op_type for n in other.nodes]
    for node in net.nodes:
        for name in node.input:
            here, there = (each.constants.get(name) for each in (net, other))
            if here is None or np.array_equal(here, there):
                continue
            assert node.op_type == "Reshape", node.name
            ((at,),) = np.nonzero(here != there)
            shape = np.where(here == -1, 0, here)  # the first, as it is
            shape[at] = -1
            net.constants[name] = shape


def inputs(
    name: str, shape: tuple[int, ...], *, seed: int, count: int = 1
) -> list[Arrays]:
    net = draw(name, shape, width=catalogue.NETWORKS[name].small[0], batch=1)
    (entry,) = net.inputs
    found = samples.images({entry: shape[1:]}, shape[0] * count, seed=seed)
    arrays = [each[entry] for each in found]
    return [
        {entry: np.concatenate(arrays[at : at + shape[0]])}
        for at in range(0, len(arrays), shape[0])
    ]
