# SPDX-License-Identifier: Apache-2.0
"""Samples of several sizes: calibrated, evaluated and run, each at its own."""

import json

import numpy as np
import pytest
from PIL import Image

import neon8
import open_nets
from neon8.calibrate.run.reference import Reference
from neon8.cli.main import main
from neon8.graph.onnx_file import open_onnx
from neon8.runtime import Model
from onnx_nets import save

BOUNDS = {"x": (1, 3, "16..64:4", "16..64:4")}
SHAPE = "x=1,3,16..64:4,16..64:4"
SIZES = [(16, 16), (32, 20), (64, 48), (32, 20), (20, 64), (32, 20)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A network, its table and file, and samples."""
    folder = tmp_path_factory.mktemp("open")
    path = save(folder, open_nets.unet())
    chance = np.random.default_rng(7)
    samples = [chance.normal(0, 1, (1, 3, *size)).astype("f4") for size in SIZES]
    table = neon8.calibrate_model(path, samples, shapes=BOUNDS)
    neon8.save_table(table, folder / "net.scales.json")
    neon8.compile_model(path, table, shapes=BOUNDS, output=folder / "net.n8")
    (folder / "data").mkdir()
    for number, sample in enumerate(samples):
        np.save(folder / "data" / f"{number}.npy", sample)
    return folder, path, samples


def test_evaluated_at_each_size(made):
    folder, path, samples = made
    noise, signal = 0.0, 0.0
    whole = neon8.evaluate_model(folder / "net.n8", samples, reference=path)
    with Model.open(folder / "net.n8") as model, model.session() as session:
        for sample in samples:
            alone = neon8.evaluate_model(
                path, [sample], shapes={"x": sample.shape}, reference=path
            )
            assert alone.sqnr_db == np.inf
            got = session.run({"x": sample})["y"].astype(np.float64)
            want = in_float(path, sample)
            noise += np.square(got - want).sum()
            signal += np.square(want).sum()
    assert whole.n == len(samples)
    assert whole.sqnr_db == pytest.approx(10 * np.log10(signal / noise), abs=1e-3)
    same = neon8.evaluate_model(
        folder / "net.n8", folder / "data", reference=path, shapes=BOUNDS, workers=2
    )
    assert same == whole


def in_float(path, sample):
    file = open_onnx(path, shapes={"x": sample.shape})
    return Reference(file).run({"x": sample})["y"]


@pytest.mark.parametrize("target", ["aarch64", "armv7"])
def test_evaluated_on_arm(made, target):
    folder, path, samples = made
    here, there = (
        neon8.evaluate_model(folder / "net.n8", samples, reference=path, **where)
        for where in ({}, {"target": target})
    )
    assert here == there


def test_evaluate_by_the_command_line(made, capsys):
    folder, path, samples = made
    words = ["--data", str(folder / "data"), "--json", "--quiet"]
    assert main(["evaluate", str(path), "--shape", SHAPE, *words]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == len(samples)
    words += ["--reference", str(path)]
    assert main(["evaluate", str(folder / "net.n8"), *words]) == 0
    assert json.loads(capsys.readouterr().out)["sqnr_db"] > 25


def test_run_at_each_size(made, capsys):
    folder, _, samples = made
    given = ["run", str(folder / "net.n8"), "--quiet", "--input"]
    assert main([*given, str(folder / "data")]) == 0
    said = capsys.readouterr().out
    assert all(f"1x4x{sample.shape[2]}x{sample.shape[3]}" in said for sample in samples)
    assert main([*given, str(folder / "data"), "-o", str(folder / "y.npy")]) == 2
    assert "outputs differ from run to run; give samples" in capsys.readouterr().err


def test_run_an_image_of_any_size(made, capsys):
    folder, _, _ = made
    pixels = np.random.default_rng(0).integers(0, 256, (36, 52, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "exact.png")
    Image.fromarray(pixels[:35, :]).save(folder / "near.png")
    out = folder / "y.npy"
    given = ["run", str(folder / "net.n8"), "-o", str(out), "--quiet", "--input"]
    assert main([*given, str(folder / "exact.png")]) == 0
    assert capsys.readouterr().err == ""
    with Model.open(folder / "net.n8") as model, model.session() as session:
        x = pixels.transpose(2, 0, 1)[np.newaxis].astype(np.float32)
        want = session.run({"x": x})["y"]
    np.testing.assert_array_equal(np.load(out), want)
    given.remove("--quiet")
    assert main([*given, str(folder / "near.png")]) == 0
    assert "the first from 35 x 52 to 36 x 52" in capsys.readouterr().err
    assert np.load(out).shape == want.shape


def test_the_usual_shape_is_that_of_most_samples(made):
    folder, path, _ = made
    with Model.open(folder / "net.n8") as model:
        assert model.inputs["x"].shape == (1, 3, 32, 20)
    narrow = {"x": (1, 3, "16..28:4", "16..64:4")}
    blob = neon8.compile_model(path, folder / "net.scales.json", shapes=narrow)
    with Model.from_bytes(blob) as model:
        assert model.inputs["x"].shape == (1, 3, 16, 20)


def test_inspect_tells_the_shapes_of_samples(made, capsys):
    folder, path, samples = made
    observed = neon8.observe_model(path, samples, shapes=BOUNDS)
    neon8.save_observation(observed, folder / "net.calib")
    assert main(["inspect", str(folder / "net.calib")]) == 0
    assert "shapes            4, most often x 1x3x32x20\n" in capsys.readouterr().out
    assert main(["inspect", str(folder / "net.scales.json")]) == 0
    assert "shape        x 1x3x32x20\n" in capsys.readouterr().out


def test_a_report_of_a_network_with_open_dimensions(made):
    folder, path, _ = made
    files = (path, folder / "net.scales.json", folder / "net.n8", folder / "data")
    found = neon8.report_model(*files, shapes=BOUNDS)
    assert found.model == str(path)
