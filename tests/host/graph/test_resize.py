# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample in all their modes, against onnxruntime."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.graph.importer import load
from neon8.operators.resize import Resize
from neon8.operators.selection import Gather
from onnx_nets import assert_same, chain, save, why_opaque

F = np.float32
IMAGE = (1, 3, 5, 7)
NONE = np.zeros(0, F)
COORDINATES = (
    *("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"),
    *("half_pixel_symmetric", "tf_half_pixel_for_nn"),
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def opset_of(coordinates):
    """One that has these coordinates."""
    return {"half_pixel_symmetric": 19, "tf_half_pixel_for_nn": 11}.get(coordinates, 13)


def by_scales(*scales, **attributes):
    return ("Resize", [NONE, np.array(scales, F)], attributes)


def by_sizes(*sizes, **attributes):
    return ("Resize", [NONE, NONE, np.array(sizes, np.int64)], attributes)


def certain(scales):
    """True if float32 and double round to the same size."""
    pairs = zip(IMAGE[2:], scales, strict=True)
    return all(int(F(size) * F(s)) == int(size * float(F(s))) for size, s in pairs)


@st.composite
def steps(draw, mode):
    """A Resize that says all that there is to say."""
    mode, *rest = mode.split()
    coordinates = draw(st.sampled_from(COORDINATES))
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = draw(st.sampled_from(ROUNDINGS))
    attributes |= dict.fromkeys(rest, 1)
    if mode == "cubic":
        attributes["cubic_coeff_a"] = draw(st.sampled_from([-0.75, -0.5, -1.0, 0.0]))
    if draw(st.booleans()):
        sizes = draw(st.tuples(st.integers(1, 16), st.integers(1, 16)))
        step = by_sizes(1, 3, *sizes, **attributes)
    else:
        each = st.sampled_from([0.34, 0.5, 0.6, 1.0, 1.3, 1.5, 2.0, 2.6, 3.0])
        scales = draw(st.tuples(each, each).filter(certain))
        step = by_scales(1, 1, *scales, **attributes)
    opset = max(opset_of(coordinates), 18 if "antialias" in rest else 0)
    return opset, step


MODES = (
    *("nearest", "linear", "linear antialias", "cubic", "cubic exclude_outside"),
    *("cubic antialias", "cubic antialias exclude_outside"),
)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode(tmp_path_factory, mode):
    @settings(max_examples=100)
    @given(case=steps(mode))
    def check(case):
        opset, step = case
        model = chain([step], IMAGE, opset=opset)
        assert_same(tmp_path_factory.mktemp("resize"), model)

    check()


@pytest.mark.parametrize(
    ("coordinates", "rounding"), list(itertools.product(COORDINATES, ROUNDINGS))
)
def test_ties(tmp_path, coordinates, rounding):
    """Half-way coordinates: to 2, 3/2 and 1/2 of the size."""
    mode = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    for scales in ((2, 2), (1.5, 0.5), (3, 0.25)):
        step = by_scales(1, 1, *scales, mode="nearest", **mode)
        model = chain([step], (1, 2, 8, 12), opset=opset_of(coordinates))
        assert_same(tmp_path, model)


UP = np.array([1, 1, 2, 3], F)
OTHERS = {
    "upsample 7": (7, ("Upsample", [], {"scales": [1.0, 1.0, 2.0, 1.5]})),
    "upsample 9": (9, ("Upsample", [UP], {"mode": "nearest"})),
    "upsample linear": (9, ("Upsample", [UP], {"mode": "linear"})),
    "resize 10": (10, ("Resize", [UP], {"mode": "nearest"})),
    "resize 10 down": (10, ("Resize", [np.array([1, 1, 0.6, 0.4], F)], {})),
    "resize 10 linear": (10, ("Resize", [UP], {"mode": "linear"})),
    "not larger": (18, by_sizes(3, 9, axes=[2, 3], mode="linear",
                                keep_aspect_ratio_policy="not_larger")),
    "not smaller": (18, by_sizes(9, 10, axes=[2, 3],
                                 keep_aspect_ratio_policy="not_smaller")),
    "axes": (18, by_scales(2, 1.5, axes=[-1, 2])),
    "one axis": (18, by_scales(3, axes=[3], mode="linear")),
    "channels": (13, by_scales(1, 2, 1, 1, mode="nearest")),
    "first axes": (13, by_scales(2, 1.5, 1, 1, mode="linear")),
    "apart": (13, by_sizes(1, 5, 5, 3, mode="linear")),
    "cubic axes": (18, by_scales(1.5, 2, axes=[1, 3], mode="cubic")),
    "nothing": (13, by_scales(1, 1, 1, 1, mode="linear")),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "step"), OTHERS.values(), ids=OTHERS)
def test_resize(tmp_path, opset, step):
    assert_same(tmp_path, chain([step], IMAGE, opset=opset))


def test_nodes(tmp_path):
    """Nearest only moves values."""
    for mode, kind in (("nearest", Gather), ("linear", Resize)):
        path = save(tmp_path, chain([by_scales(1, 1, 2, 2, mode=mode)], IMAGE))
        (node,) = load(path).nodes
        assert isinstance(node, kind)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("value", [0.0, 1.5])
@pytest.mark.parametrize("sizes", [(1, 3, 4, 9), (1, 3, 1, 20)])
@pytest.mark.parametrize(
    "roi", [(0.2, 0.6, 0.9, 1), (-0.3, 0, 0.6, 1.4), (0.9, 0.8, 0.2, 0.1)]
)
def test_crop(tmp_path, roi, sizes, value, mode):
    """A part of the image, also one that reaches beyond it or is mirrored."""
    first, last = np.array([0, 0, *roi[:2]], F), np.array([1, 1, *roi[2:]], F)
    inputs = [np.concatenate([first, last]), NONE, np.array(sizes, np.int64)]
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    step = ("Resize", inputs, {**crop, "mode": mode, "extrapolation_value": value})
    assert_same(tmp_path, chain([step], IMAGE))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 5, 7), (1, 2, 5, 7, 3)])
def test_other_ranks(tmp_path, shape, mode):
    """One axis, or the last two or three."""
    sizes = np.array([*shape[:-3], *(size + 4 for size in shape[-3:])], np.int64)
    step = ("Resize", [NONE, NONE, sizes], {"mode": mode})
    graph = load(save(tmp_path, chain([step], shape)))
    steps = sum(isinstance(node, Resize) for node in graph.nodes)
    assert steps == (1 if len(shape) < 3 else 2)
    if mode == "linear" and len(shape) > 1:  # what onnxruntime has
        assert_same(tmp_path, chain([step], shape))


REFUSED = {
    "to the size that it had": (
        "Resize",
        [np.array([0, 0, 0, 0, 1, 1, 0.5, 1], F), np.array([1, 1, 1, 2], F)],
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    "roi has no two values": (
        "Resize",
        [np.array([0, 0, 0, 1, 1, 1], F), UP],
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    "more than 256": by_sizes(1, 3, 5, 1, mode="linear", antialias=1),
    "mode 'cubist'": by_scales(1, 1, 2, 2, mode="cubist"),
    "NaN or infinity": by_scales(1, 1, np.inf, 2),
    "12 or 13; export it with sizes": by_scales(1, 1, 2.6, 1),
}


@pytest.mark.parametrize(("text", "step"), REFUSED.items(), ids=REFUSED)
def test_refused(tmp_path, text, step):
    opset = 18 if "antialias" in step[2] else 13
    shape = (*IMAGE[:3], 300) if "antialias" in step[2] else IMAGE
    assert text in why_opaque(tmp_path, chain([step], shape, opset=opset))
