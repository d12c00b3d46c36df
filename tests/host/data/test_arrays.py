# SPDX-License-Identifier: Apache-2.0
"""Samples for single runs: each of its own shape where dimensions are open."""

import logging

import numpy as np
import pytest
from PIL import Image

from neon8.data.arrays import open_runs
from neon8.data.inputs import Input, with_bounds
from neon8.data.preprocess import Preprocess
from neon8.errors import DataError
from neon8.settings.shapes import Open
from neon8.settings.stages import DataSettings

LIMITS = (1, 3, Open(16, 64, 8), Open(16, 64, 8))
NAMES = ("n", "c", "h", "w")


def inputs(names=NAMES, limits=LIMITS):
    known = {"image": Input(shape=(1, 3, 16, 16))}
    return with_bounds(known, {"image": limits}, {"image": names})


def shapes(path, known=None, **given):
    samples = open_runs(path, known or inputs(), DataSettings(**given))
    return [sample.inputs["image"].shape for sample in samples]


@pytest.mark.parametrize("shape", [(1, 3, 48, 64), (5, 3, 48, 64), (3, 48, 64)])
def test_an_array(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    count = shape[0] if len(shape) == 4 else 1
    assert shapes(tmp_path / "x.npy") == [(1, 3, 48, 64)] * count


def test_one_of_any_name(tmp_path):
    np.savez(tmp_path / "x.npz", picture=np.zeros((1, 3, 48, 64), np.float32))
    assert shapes(tmp_path / "x.npz") == [(1, 3, 48, 64)]


def test_a_folder_of_arrays(tmp_path):
    for number, shape in enumerate([(3, 16, 24), (1, 3, 64, 64), (3, 40, 16)]):
        np.save(tmp_path / f"{number}.npy", np.zeros(shape, np.float32))
    found = shapes(tmp_path)
    assert found == [(1, 3, 16, 24), (1, 3, 64, 64), (1, 3, 40, 16)]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, 3, 48, 60), r"\[0\]: has 60 as dimension 3, which is 16..64:8"),
        ((2, 3, 8, 16), r"\[0\]: has 8 as dimension 2, which is 16..64:8 \(1x3x16"),
        ((7,), r"shape \[\], but the network takes 1x3x16..64:8x16..64:8"),
    ],
)
def test_outside_the_bounds(tmp_path, shape, text):
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    with pytest.raises(DataError, match=text):
        shapes(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        ((24, 40), (24, 40)),
        ((27, 28), (24, 24)),
        ((29, 500), (32, 64)),
        ((3, 61), (16, 64)),
    ],
)
def test_an_image_is_resized_no_further_than_it_must_be(tmp_path, caplog, size, wanted):
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    with caplog.at_level(logging.WARNING):
        (sample,) = open_runs(tmp_path / "x.png", inputs())
    assert sample.inputs["image"].shape == (1, 3, *wanted)
    said = [record.getMessage() for record in caplog.records]
    if size == wanted:
        np.testing.assert_array_equal(
            sample.inputs["image"][0], pixels.transpose(2, 0, 1)
        )
        assert said == []
    else:
        text = "images are resized to what the network takes, the first from"
        (line,) = said
        assert text in line
        assert line.endswith(f" {size[0]} x {size[1]} to {wanted[0]} x {wanted[1]}")


def test_the_first_of_a_folder_is_told_of(tmp_path, caplog):
    for number in range(3):
        Image.new("RGB", (20 + number, 33)).save(tmp_path / f"{number}.png")
    with caplog.at_level(logging.WARNING):
        assert shapes(tmp_path) == [(1, 3, 32, 16), (1, 3, 32, 24), (1, 3, 32, 24)]
    assert len(caplog.records) == 1


def test_an_image_for_a_network_of_one_size(tmp_path):
    Image.new("RGB", (20, 33)).save(tmp_path / "x.jpg")
    known = {"image": Input(shape=(1, 3, 16, 16))}
    assert shapes(tmp_path / "x.jpg", known) == [(1, 3, 16, 16)]


def test_sides_that_are_always_equal(tmp_path):
    Image.new("RGB", (20, 47)).save(tmp_path / "x.png")
    np.save(tmp_path / "x.npy", np.zeros((3, 16, 24), np.float32))
    square = inputs(("n", "c", "s", "s"))
    assert shapes(tmp_path / "x.png", square) == [(1, 3, 16, 16)]
    with pytest.raises(DataError, match="24 as dimension 3, which must equal dim"):
        shapes(tmp_path / "x.npy", square)


def test_a_batch_has_one_size(tmp_path):
    limits = (Open(2, 8), 3, Open(16, 64, 8), Open(16, 64, 8))
    for number, width in enumerate([16, 16, 16, 24]):
        np.save(tmp_path / f"{number}.npy", np.zeros((3, 16, width), np.float32))
    samples = iter(open_runs(tmp_path, inputs(limits=limits)))
    assert next(samples).inputs["image"].shape == (2, 3, 16, 16)
    with pytest.raises(DataError, match="in a batch; give samples of one size"):
        next(samples)


def test_preprocessing_says_otherwise(tmp_path):
    Image.new("RGB", (47, 39)).save(tmp_path / "x.png")
    crop = Preprocess(resize="none")
    assert shapes(tmp_path / "x.png", preprocess=crop) == [(1, 3, 32, 40)]
    fixed = Preprocess(resize="stretch", size=(16, 24))
    assert shapes(tmp_path / "x.png", preprocess=fixed) == [(1, 3, 16, 24)]
    none = Preprocess(resize="stretch", size=(16, 28))
    with pytest.raises(DataError, match=r"size: \[16, 28\] is none that the network"):
        shapes(tmp_path / "x.png", preprocess=none)
