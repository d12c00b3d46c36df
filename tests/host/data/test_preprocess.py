# SPDX-License-Identifier: Apache-2.0
"""Preprocessing: the TOML file and what it does to an image."""

import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

from neon8.data.preprocess import Preprocess, open_image
from neon8.errors import DataError
from refusals import refused

F = np.float32
RNG = np.random.default_rng(2)
IMAGE = RNG.integers(0, 256, (9, 12, 3), dtype=np.uint8)


def load(folder, text):
    path = folder / "p.toml"
    path.write_text(text)
    return Preprocess.load(path)


def test_a_file_with_every_key(tmp_path):
    text = """
        size = [224, 192]
        resize = "short"
        short = 256
        color = "bgr"
        scale = 0.00392156862745098
        mean = [0.485, 0.456, 0.406]
        std = [0.229, 0.224, 0.225]
    """
    assert load(tmp_path, text) == Preprocess(
        size=(224, 192),
        resize="short",
        short=256,
        color="bgr",
        scale=1 / 255,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
    )
    assert load(tmp_path, "") == Preprocess()


BAD = {
    "sise = [1, 1]": "key 'sise' is unknown; there are size, resize, short, color",
    "size = 224": "size: expected a list",
    "size = [224]": "[224] is not [height, width]",
    "size = [0, 3]": "is not [height, width]",
    "size = [1.5, 3]": "size: expected a list",
    'resize = "long"': "none, stretch, short",
    "resize = 1": "resize: 1 is of the wrong type",
    'resize = "short"': "short: goes with",
    "short = 256": "short: goes with",
    'size = [300, 300]\nresize = "short"\nshort = 256': "fewer than the size",
    'color = "cmyk"': "rgb, bgr, gray",
    "scale = true": "scale: True",
    "scale = 0.0": "must not be zero",
    "scale = nan": "must be finite",
    "mean = [1, 2]": "2 values for 3 channels",
    'mean = [1, 2, 3]\ncolor = "gray"': "3 values for 1 channels",
    "std = [1, 0, 1]": "must not be zero",
    'std = ["a"]': "std: expected a list of numbers",
    "mean = [inf]": "must be finite",
    "size = [": "is not TOML",
}


@pytest.mark.parametrize(("text", "word"), BAD.items())
def test_bad_files(tmp_path, text, word):
    with refused(DataError, f"{tmp_path / 'p.toml'}: ", word):
        load(tmp_path, text)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        Preprocess.load(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\0")
    with pytest.raises(DataError, match="not TOML"):
        Preprocess.load(tmp_path / "b.toml")


@pytest.mark.parametrize("text", ["mean = " + "[" * 100_000, "a = " + "{a=" * 100_000])
def test_nested_without_end(tmp_path, text):
    with pytest.raises(DataError, match=r"p\.toml: [^\n]*(nested|not TOML)[^\n]*$"):
        load(tmp_path, text)


def test_centre_crop():
    out = Preprocess(size=(4, 5)).apply(IMAGE, (1, 1))
    assert out.dtype == F
    assert np.array_equal(out, IMAGE[2:6, 3:8].transpose(2, 0, 1))


def test_the_size_of_the_network_is_the_default():
    out = Preprocess().apply(IMAGE, (9, 2))
    assert np.array_equal(out, IMAGE[:, 5:7].transpose(2, 0, 1))


@pytest.mark.parametrize("color", ["rgb", "bgr", "gray"])
@pytest.mark.parametrize("scale", [1.0, 1 / 255, -3e38])
def test_every_byte_is_rounded_once(color, scale):
    """As the formula says in float64, bit for bit, whichever way it is computed."""
    channels = 1 if color == "gray" else 3
    every = np.arange(256, dtype=np.uint8).reshape(16, 16)
    raw = every if channels == 1 else np.stack([every, every.T, every[::-1]], axis=2)
    mean, std = (0.1, 103.94, 0.2)[:channels], (0.229, 58.4, 1.0)[:channels]
    made = Preprocess(color=color, scale=scale, mean=mean, std=std)
    pixels = raw.reshape(16, 16, -1)[:, :, :: -1 if color == "bgr" else 1]
    with np.errstate(over="ignore"):
        want = (pixels * np.float64(scale) - np.array(mean)) / np.array(std)
        want = want.transpose(2, 0, 1).astype(F)
    assert made.apply(raw, (16, 16)).tobytes() == want.tobytes()
    if scale != -3e38:  # floats of the same values
        assert made.apply(raw.astype(F), (16, 16)).tobytes() == want.tobytes()


def test_gray():
    out = Preprocess(color="gray").apply(IMAGE, (9, 12))
    want = np.asarray(Image.fromarray(IMAGE).convert("L"))
    assert np.array_equal(out, want[np.newaxis])
    assert np.array_equal(Preprocess(color="gray").apply(want, (9, 12))[0], want)
    wide = Preprocess().apply(want[:, :, np.newaxis], (9, 12))
    assert wide.shape == (3, 9, 12)


@pytest.mark.parametrize(
    ("settings", "resized", "size"),
    [
        ({"resize": "stretch", "size": (6, 7)}, (7, 6), (6, 7)),
        ({"resize": "short", "short": 18, "size": (16, 20)}, (24, 18), (16, 20)),
        ({"resize": "short", "short": 6, "size": (6, 6)}, (8, 6), (6, 6)),
    ],
)
def test_resize(settings, resized, size):
    out = Preprocess(**settings).apply(IMAGE, (1, 1))
    whole = Image.fromarray(IMAGE).resize(resized, Image.Resampling.BILINEAR)
    top, left = (resized[1] - size[0]) // 2, (resized[0] - size[1]) // 2
    want = np.asarray(whole)[top : top + size[0], left : left + size[1]]
    assert np.array_equal(out, want.transpose(2, 0, 1))


def test_float_images():
    value = RNG.normal(size=(9, 12, 3))
    out = Preprocess(mean=(1.0,)).apply(value, (9, 12))
    assert np.array_equal(out, (value - 1).transpose(2, 0, 1).astype(F))


@pytest.mark.parametrize(
    ("settings", "raw", "word"),
    [
        ({}, IMAGE[:3], "smaller than the size 9 x 12"),
        ({}, IMAGE[0], "is smaller"),
        ({}, np.zeros((9, 12, 4), np.uint8), "is no image"),
        ({}, np.zeros((1, 9, 12, 3), np.uint8), "is no image"),
        ({"resize": "stretch"}, np.zeros((9, 12, 3)), "resize needs uint8"),
        ({"color": "gray"}, np.zeros((9, 12, 3)), "does not match color"),
    ],
)
def test_bad_images(settings, raw, word):
    with pytest.raises(DataError, match=word):
        Preprocess(**settings).apply(raw, (9, 12))


def test_open_image(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(IMAGE).save(path)
    assert np.array_equal(open_image(path), IMAGE)
    assert open_image(path, gray=True).shape == (9, 12)
    Image.fromarray(np.dstack([IMAGE, IMAGE[..., :1]])).save(path)
    assert open_image(path).shape == (9, 12, 3)
    for content in (b"", b"hello", path.read_bytes()[:60]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.png: cannot be read as an image"):
            open_image(path)


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_a_photograph_is_turned_as_its_camera_was(tmp_path, suffix):
    wide = np.zeros((16, 24, 3), np.uint8)
    wide[:, 12:] = 255
    exif = Image.Exif()
    plain, turned = (tmp_path / f"{name}.{suffix}" for name in ("plain", "turned"))
    Image.fromarray(wide).save(plain)
    exif[0x0112] = 6  # to be turned by 90 degrees, clockwise
    Image.fromarray(wide).save(turned, exif=exif)
    assert np.array_equal(open_image(turned), np.rot90(open_image(plain), -1))
    for gray in (True, False):
        assert open_image(turned, gray=gray).shape[:2] == (24, 16)


def test_damaged_exif_data_are_ignored(tmp_path):
    path = tmp_path / "a.jpg"
    Image.fromarray(np.full((8, 8, 3), 9, np.uint8)).save(path, exif=b"Exif\0\0rubbish")
    assert open_image(path).shape == (8, 8, 3)


def test_sixteen_bits_of_grey_are_scaled_and_not_clipped(tmp_path):
    levels = np.arange(0, 65536, 4096, dtype=np.uint16).reshape(4, 4)
    Image.fromarray(levels).save(tmp_path / "a.png")
    grey = open_image(tmp_path / "a.png", gray=True)
    assert np.array_equal(grey, levels >> 8)
    assert np.array_equal(open_image(tmp_path / "a.png"), np.dstack([grey] * 3))


@pytest.mark.parametrize(
    "settings",
    [
        Preprocess(resize="stretch", size=(100_000, 100_000)),
        Preprocess(resize="short", short=1_000_000, size=(8, 8)),
    ],
)
def test_an_image_beyond_all_memory_is_not_made(settings):
    with pytest.raises(DataError, match="too many pixels"):
        settings.apply(IMAGE, (8, 8))


@pytest.mark.parametrize("settings", [{"scale": 1e308}, {"std": (1e-310,)}])
def test_overflow_is_infinite_and_silent(settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = Preprocess(**settings).apply(IMAGE, IMAGE.shape[:2])
    assert np.isinf(values).any()


def png(width, height):
    """The first bytes of an image of any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(99))), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        data += struct.pack(">I", len(body)) + kind + body
        data += struct.pack(">I", zlib.crc32(kind + body))
    return data


@pytest.mark.parametrize("size", [(12_000, 12_000), (40_000, 40_000), (2**31 - 1, 9)])
def test_decompression_bombs(tmp_path, size):
    """Below and above the limits of Pillow, none of whose warnings gets out."""
    path = tmp_path / "bomb.png"
    path.write_bytes(png(*size))
    with refused(DataError, f"{path}: has too many pixels"):
        open_image(path)
