# SPDX-License-Identifier: Apache-2.0
"""Samples of different sizes in one set: the same bytes however they are divided."""

from functools import reduce

import numpy as np
import pytest
from PIL import Image

import neon8
import open_nets
from neon8.calibrate import calib_file
from neon8.calibrate.run import collector, executors
from neon8.data.preprocess import Preprocess
from neon8.errors import CalibrationError, DataError, GraphError
from neon8.quant import table_json
from onnx_nets import save

NETS = {
    "unet": ((1, 3, "16..64:4", "16..64:4"), [(16, 16), (32, 20), (64, 48)]),
    "recogniser": ((1, 3, 16, "8..96"), [(16, 8), (16, 33), (16, 96), (16, 50)]),
    "speech": ((1, "2..64", 6), [(5, 6), (20, 6), (64, 6)]),
    "attention": (("2..8", 10, 8), [(10, 8)]),
}


def shape_of(bounds, size):
    least = [int(str(b).split("..")[0]) for b in bounds]
    return (*least[: len(least) - len(size)], *size)


def samples_of(name, count=14):
    """Samples of a network, and the bounds of its input."""
    bounds, sizes = NETS[name]
    chance = np.random.default_rng(3)
    made = [
        chance.normal(0, 1, shape_of(bounds, sizes[at % len(sizes)])).astype("f4")
        for at in range(count)
    ]
    return made, {"x": bounds}


@pytest.fixture(scope="module", params=NETS)
def case(request, tmp_path_factory):
    """A network, its samples and bounds, and what one process observes in order."""
    folder = tmp_path_factory.mktemp(request.param)
    path = save(folder, getattr(open_nets, request.param)())
    arrays, bounds = samples_of(request.param)
    want = neon8.observe_model(path, arrays, shapes=bounds)
    return path, arrays, bounds, calib_file.dumps(want)


def test_any_order_gives_the_same_bytes(case, monkeypatch):
    path, arrays, bounds, want = case
    monkeypatch.setattr(collector, "SHAPES", 1)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(arrays))
        got = neon8.observe_model(path, (arrays[i] for i in order), shapes=bounds)
        assert calib_file.dumps(got) == want
    assert calib_file.dumps(calib_file.loads(want, source="again")) == want


def test_any_split_gives_the_same_bytes(case):
    path, arrays, bounds, want = case
    pieces = [arrays[at::3] for at in range(3)]
    found = [neon8.observe_model(path, piece, shapes=bounds) for piece in pieces]
    for order in (found, found[::-1]):
        assert calib_file.dumps(reduce(neon8.merge_observations, order)) == want
    shards = [
        neon8.observe_model(path, arrays, shapes=bounds, shard=(at, 4))
        for at in (1, 2, 3, 4)
    ]
    assert calib_file.dumps(reduce(neon8.merge_observations, shards)) == want


def test_a_set_is_the_merger_of_its_shapes(case):
    path, arrays, _, want = case
    by_shape = {}
    for array in arrays:
        by_shape.setdefault(array.shape, []).append(array)
    alone = [
        neon8.observe_model(path, group, shapes={"x": shape})
        for shape, group in by_shape.items()
    ]
    assert calib_file.dumps(reduce(neon8.merge_observations, alone)) == want


def test_one_shape_gives_the_table_of_that_shape(case):
    path, arrays, bounds, _ = case
    same = [a for a in arrays if a.shape == arrays[0].shape]
    tables = [
        neon8.calibrate_model(path, same, shapes=shapes)
        for shapes in (bounds, {"x": arrays[0].shape})
    ]
    first, second = map(table_json.dumps, tables)
    assert first == second


def test_the_table_compiles_for_all_sizes(case):
    path, arrays, bounds, want = case
    table = neon8.calibrate_model(path, arrays, shapes=bounds)
    observation = calib_file.loads(want, source="x")
    again = neon8.solve_observation(observation, path, shapes=bounds)
    assert table_json.dumps(again) == table_json.dumps(table)
    assert table_json.dumps(
        neon8.solve_observation(observation, path)
    ) == table_json.dumps(table)
    most = max(observation.shapes.values())
    shape = min(dict(s)["x"] for s, n in observation.shapes.items() if n == most)
    assert table.shapes == observation.usual_shapes == {"x": shape}


def test_workers_and_files(tmp_path):
    path = save(tmp_path, open_nets.unet())
    arrays, bounds = samples_of("unet", 30)
    (tmp_path / "data").mkdir()
    for number, array in enumerate(arrays):
        np.save(tmp_path / "data" / f"{number:02}.npy", array[0])
    want = calib_file.dumps(neon8.observe_model(path, arrays, shapes=bounds))
    for data, workers in ((tmp_path / "data", 1), (tmp_path / "data", 2), (arrays, 2)):
        got = neon8.observe_model(path, data, shapes=bounds, workers=workers)
        assert calib_file.dumps(got) == want


def test_a_sample_outside_the_bounds(tmp_path):
    path = save(tmp_path, open_nets.unet())
    shapes = {"x": (1, 3, "16..64:2", "16..64:2")}
    arrays = [np.ones((3, 16, 16), np.float32), np.ones((3, 17, 32), np.float32)]
    with pytest.raises(DataError, match=r"sample 1: .* 17 as dimension 2"):
        neon8.observe_model(path, arrays, shapes=shapes)


def test_a_size_that_the_network_cannot_take(tmp_path):
    b = open_nets.Block()
    b.conv("x", "a", 3, 8, strides=[2, 2])
    b("ConvTranspose", "a", "u", b.random(8, 3, 2, 2), strides=[2, 2])
    b("Add", "x u", "y")
    path = save(tmp_path, b.model((1, 3, "h", "w")))
    arrays = [np.ones((3, 16, 16), np.float32), np.ones((3, 17, 16), np.float32)]
    text = (
        "sample 1, with x=1x3x17x16: .*Op \\(Add\\).*; leave such samples out, or allow"
    )
    with pytest.raises(GraphError, match=text):
        neon8.observe_model(path, arrays, shapes={"x": (1, 3, "?", "?")})


def test_a_size_at_which_the_network_is_another_one(tmp_path):
    """A Resize to the size that the tensor has is no step."""
    b = open_nets.Block()
    b.conv("x", "a", 3, 8)
    b.weights |= {"none": open_nets.NONE, "to": np.array([1, 8, 32, 32])}
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    b("Resize", "a none none to", "r", mode="nearest", **how)
    b.conv("r", "y", 8, 4)
    path = save(tmp_path, b.model((1, 3, "h", "w")))
    arrays = [np.ones((3, size, size), np.float32) for size in (16, 32)]
    text = "sample 1, with x=1x3x32x32: the network has other tensors or layers than"
    with pytest.raises(CalibrationError, match=text):
        neon8.observe_model(path, arrays, shapes={"x": (1, 3, "?", "?")})


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            {"x": (1, 3, 8, 8), "z": (1, "2..3")},
            "has no input 'z' to give a shape; its inputs are 'x'",
        ),
        ({"x": (1, "2..3", 8, 8)}, "which cannot become 1x2..3x8x8"),
        ({"x": ("2..3", 8)}, "input 'x' has dimensions"),
    ],
)
def test_bounds_that_the_file_contradicts(tmp_path, shapes, text):
    path = save(tmp_path, open_nets.unet())
    with pytest.raises(GraphError, match=text):
        neon8.observe_model(path, [], shapes=shapes)


def test_images_of_all_sizes(tmp_path):
    path = save(tmp_path, open_nets.unet())
    chance = np.random.default_rng(1)
    (tmp_path / "photos").mkdir()
    for number, size in enumerate([(20, 30), (64, 64), (90, 17), (32, 200)]):
        pixels = chance.integers(0, 256, (*size, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
    shapes = {"x": (1, 3, "16..64:4", "16..64:4")}
    sizes = {
        "none": [(20, 28), (32, 64), (64, 16), (64, 64)],
        "stretch": [(20, 28), (32, 64), (64, 16), (64, 64)],
        "short": [(24, 36), (24, 64), (24, 24), (64, 24)],
    }
    for resize, wanted in sizes.items():
        how = Preprocess(resize=resize, short=24 if resize == "short" else None)
        found = neon8.observe_model(
            path, tmp_path / "photos", shapes=shapes, preprocess=how
        )
        assert sorted(dict(s)["x"][2:] for s in found.shapes) == sorted(wanted)


def test_a_run_that_died_goes_on(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(executors, "SECONDS", 0.0)  # a part, and the journal, each time
    path = save(tmp_path, open_nets.unet())
    arrays, bounds = samples_of("unet", 12)
    want = neon8.observe_model(path, arrays, shapes=bounds)
    output = tmp_path / "net.calib"

    def dying():
        yield from arrays[:8]
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - the one above
        neon8.observe_model(path, dying(), shapes=bounds, output=output)
    narrow = {"x": (1, 3, "16..64:8", "16..64:4")}
    said = r"--shape was x=1,3,\d\S+, and now it is x=1,3,16\.\.64:8,16\.\.64:4;"
    with pytest.raises(CalibrationError, match=said):
        neon8.observe_model(path, arrays, shapes=narrow, output=output)
    got = neon8.observe_model(path, arrays, shapes=bounds, output=output)
    assert "continuing" in caplog.text
    assert output.read_bytes() == calib_file.dumps(got) == calib_file.dumps(want)
