# SPDX-License-Identifier: Apache-2.0
"""--data in all its forms, one sample at a time."""

import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from PIL import Image

from neon8.data.preprocess import Preprocess
from neon8.data.samples import open_samples
from neon8.errors import DataError, SettingsError
from refusals import refused

F = np.float32
SHAPE = (1, 3, 4, 5)
ONE = {"image": SHAPE}
RNG = np.random.default_rng(1)
FLOATS = RNG.normal(size=(6, 3, 4, 5)).astype(F)
BYTES = RNG.integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
AS_NCHW = BYTES.transpose(0, 3, 1, 2).astype(F)


def arrays(samples):
    return np.concatenate([sample.inputs["image"] for sample in samples])


def test_npz_without_labels_and_with_other_kinds_of_numbers(tmp_path):
    path = tmp_path / "data.npz"
    for x in (FLOATS.astype(">f8"), FLOATS.astype(np.float16)):
        np.savez(path, x=x)
        samples = list(open_samples(path, ONE))
        assert samples[0].labels == ()
        assert np.array_equal(arrays(samples), x.astype(F))


def test_large_arrays_in_fortran_order(tmp_path, monkeypatch):
    """Each sample is all over the file; what is read as a whole has a limit."""
    np.save(tmp_path / "a.npy", np.asfortranarray(FLOATS))
    monkeypatch.setattr("neon8.data.npz.MAX_FORTRAN_BYTES", FLOATS.nbytes - 1)
    unusable(tmp_path / "a.npy", "ascontiguousarray")


def images(folder):
    for number, value in enumerate(BYTES):
        Image.fromarray(value).save(folder / f"{number}.PNG", format="png")


def test_labels_give_the_order_and_may_name_a_subfolder(tmp_path):
    images(tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "1.PNG").rename(tmp_path / "images" / "with space.png")
    text = "5.PNG 50\n\nwith space.png\t 11 \n0.PNG 0\n"
    (tmp_path / "labels.txt").write_text(text)
    samples = list(open_samples(tmp_path, ONE))
    assert [sample.labels for sample in samples] == [(50,), (11,), (0,)]
    assert np.array_equal(arrays(samples), AS_NCHW[[5, 1, 0]])


@pytest.mark.parametrize(
    ("limit", "skip", "want"),
    [(2, 0, [0, 1]), (None, 4, [4, 5]), (2, 3, [3, 4]), (99, 5, [5])],
)
def test_limit_and_skip(tmp_path, limit, skip, want):
    np.savez(tmp_path / "a.npz", x=FLOATS, y=np.arange(6))
    samples = open_samples(tmp_path / "a.npz", ONE, limit=limit, skip=skip)
    assert len(samples) == len(want)
    assert [sample.labels for sample in samples] == [(i,) for i in want]
    assert np.array_equal(arrays(samples), FLOATS[want])


@pytest.mark.parametrize("kind", ["npz", "npz compressed", "npy", "folder"])
def test_memory_does_not_grow_with_the_samples(tmp_path, kind):
    x = np.zeros((400, 3, 32, 32), F)
    path = tmp_path / "a.npz"
    if kind == "folder":
        path = tmp_path / "folder"
        path.mkdir()
        for number in range(40):
            np.save(path / f"{number}.npy", x[number])
    elif kind == "npy":
        path = tmp_path / "a.npy"
        np.save(path, x)
    else:
        (np.savez if kind == "npz" else np.savez_compressed)(path, x=x)
    tracemalloc.start()
    try:
        for _ in open_samples(path, {"image": (1, 3, 32, 32)}):
            pass
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 8
    finally:
        tracemalloc.stop()


def with_nan():
    x = FLOATS.copy()
    x[3, 0, 0, 1:3] = np.nan, np.inf
    return x


BAD_ARRAYS = {
    "nan": ({"x": with_nan()}, "[3]: input 'image': 2 of 60 values are NaN"),
    "too large": ({"x": np.full((1, 3, 4, 5), 1e300)}, "60 of 60 values"),
    "shape": ({"x": FLOATS[:, :2]}, "[0]: shape [2, 4, 5]"),
    "image shape": ({"x": BYTES[:, 1:]}, "crop or resize it by preprocessing"),
    "floats as NHWC": ({"x": BYTES.astype(F)}, "[0]: shape [4, 5, 3]"),
    "complex": ({"x": FLOATS.astype(complex)}, "values are complex128"),
    "strings": ({"x": np.array(["a", "b"])}, "values are <U1"),
    "objects": ({"x": np.array([{}, {}])}, "Python objects"),
    "no samples": ({"x": FLOATS[:0]}, "holds 0 samples"),
    "scalar": ({"x": F(3)}, "is a single number"),
    "keys": ({"a": FLOATS, "b": FLOATS}, "'a', 'b'; which of them is the input"),
    "no arrays": ({}, "holds no arrays"),
    "two of them": ({"x_train": FLOATS, "x_test": FLOATS}, "a.npz:ARRAY"),
    "labels": ({"x": FLOATS, "y": np.arange(5)}, "is int64 [5]; expected 6"),
    "label kind": ({"x": FLOATS, "y": np.ones(6)}, "is float64"),
    "label sign": ({"x": FLOATS, "y": np.arange(6) - 2}, "is negative at 0: -2"),
}


def unusable(path, *words, inputs=ONE, **options):
    with refused(DataError, path, *words):
        list(open_samples(path, inputs, **options))


@pytest.mark.parametrize(("content", "word"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_npz(tmp_path, content, word):
    np.savez(tmp_path / "a.npz", **content)
    unusable(tmp_path / "a.npz", word)


def test_bad_paths_and_options(tmp_path):
    unusable(tmp_path / "none", "is missing")
    unusable(tmp_path, "holds no .jpg, .jpeg, .png, .npy file")
    (tmp_path / "a.txt").write_text("hello")
    unusable(tmp_path / "a.txt", "a file of another kind")
    np.save(tmp_path / "a.npy", FLOATS)
    unusable(tmp_path / "a.npy", "6 are skipped", skip=6)
    with pytest.raises(SettingsError, match="limit: 0 is not a whole number"):
        open_samples(tmp_path / "a.npy", ONE, limit=0)
    unusable(tmp_path / "a.npy", "'image', 'b'", inputs={**ONE, "b": SHAPE})
    np.save(tmp_path / "a.npy", F(3))
    unusable(tmp_path / "a.npy", "single number")
    np.savez(tmp_path / "a.npz", a=FLOATS, b=FLOATS[:3])
    unusable(tmp_path / "a.npz", "different numbers", inputs={"a": SHAPE, "b": SHAPE})


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_damaged_arrays(tmp_path, name):
    path = tmp_path / name
    (np.savez_compressed if name == "a.npz" else np.save)(path, FLOATS)
    data = path.read_bytes()
    for end in range(0, len(data) - 1, 41):
        path.write_bytes(data[:end])
        unusable(path)
    path.write_bytes(b"hello" * 99)
    unusable(path)


def npy(shape, *, version=b"\x01\x00", data=b""):
    """An .npy file whose header says what it likes."""
    text = shape if isinstance(shape, str) else repr(tuple(shape))
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {text}, }}\n".encode()
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


HEADERS = {
    "negative": npy((-1, 3, 4, 5), data=bytes(64)),
    "two negatives": npy((-2, -1), data=bytes(8)),
    "terabytes": npy((1 << 40,)),
    "beyond 64 bits": npy((1 << 70, 3)),
    "no end": npy((1,)).replace(b", }", b", "),
    "nested": npy("(" * 3000),
    "minuses": npy("-" * 9000 + "1"),
    "not numbers": npy("('a',)"),
    "version 9": npy((1,), version=b"\x09\x00", data=bytes(4)),
}


@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS)
def test_hostile_headers(tmp_path, data):
    (tmp_path / "a.npy").write_bytes(data)
    unusable(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", data)
    unusable(tmp_path / "a.npz")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.npy").write_bytes(data)
    unusable(tmp_path / "folder")


def test_encrypted_archive(tmp_path):
    np.savez(tmp_path / "a.npz", x=FLOATS)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    for mark, flag in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + flag] |= 1
    (tmp_path / "a.npz").write_bytes(data)
    unusable(tmp_path / "a.npz", "cannot be read as an .npz file")


@pytest.mark.parametrize("settings", [None, Preprocess(resize="stretch")])
def test_shapes_are_judged_before_anything_is_read(tmp_path, settings, monkeypatch):
    """Many MB of zeros in a compressed file, a sparse file and a folder."""
    monkeypatch.setattr("neon8.data.sources.MAX_PIXELS", 1 << 22)
    shape = (4000, 4000)
    header = npy((1, *shape)).replace(b"<f4", b"|u1")
    (tmp_path / "folder").mkdir()
    for name in ("a.npy", "folder/a.npy"):
        with (tmp_path / name).open("wb") as file:
            file.write(header)
            file.truncate(len(header) + shape[0] * shape[1])
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as file,
    ):
        file.write(header)
        for _ in range(100):
            file.write(bytes(shape[0] * shape[1] // 100))
    tracemalloc.start()
    try:
        for name in ("a.npy", "a.npz", "folder"):
            unusable(tmp_path / name, "4000, 4000]", preprocess=settings)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_a_file_that_is_cut_while_it_is_read(tmp_path, name):
    """As another process may do at any time; a mapped file would kill this one."""
    path = tmp_path / name
    x = np.zeros((64, 3, 64, 64), F)
    np.savez(path, x=x) if name == "a.npz" else np.save(path, x)
    samples = iter(open_samples(path, {"image": (1, 3, 64, 64)}))
    first = next(samples)
    os.truncate(path, 4096)
    with pytest.raises(DataError, match=f"^{path}: .*(truncated|damaged)"):
        list(samples)
    assert not first.inputs["image"].any()


def test_damaged_member_is_noticed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=FLOATS)
    data = bytearray(path.read_bytes())
    data[700] ^= 1
    path.write_bytes(data)
    unusable(path, "damaged")


def test_bad_folders(tmp_path):
    images(tmp_path)
    data = (tmp_path / "0.PNG").read_bytes()
    (tmp_path / "0.PNG").write_bytes(data[: len(data) // 2])
    unusable(tmp_path, "0.PNG: cannot be read as an image")
    (tmp_path / "0.PNG").unlink()
    np.save(tmp_path / "0.npy", FLOATS[0])
    unusable(tmp_path, "both images and .npy")
    (tmp_path / "0.npy").unlink()
    labels = tmp_path / "labels.txt"
    for text, word in {
        "9.PNG 3": ":1: names '9.PNG'",
        "1.PNG 1\n2.PNG x": ":2: expected a file name and its class",
        "1.PNG": ":1: expected a file name",
        "1.PNG -1": ":1: expected",
        "labels.txt 1": "names 'labels.txt'",
        "\n": "names no files",
    }.items():
        labels.write_text(text)
        unusable(tmp_path, f"{labels}", word)
    labels.write_bytes(b"\xff\xfe")
    unusable(tmp_path, "as text")


def test_preprocessing_applies_to_every_source(tmp_path):
    images(tmp_path)
    np.savez(tmp_path / "a.npz", x=BYTES)
    settings = Preprocess(color="bgr", scale=0.5, mean=(1, 2, 3), std=(2.0,))
    want = (AS_NCHW[:, ::-1] * 0.5 - np.array([1, 2, 3]).reshape(3, 1, 1)) / 2
    for path in (tmp_path, tmp_path / "a.npz"):
        got = arrays(open_samples(path, ONE, preprocess=settings))
        assert np.array_equal(got, want.astype(F))
    unusable(tmp_path / "a.npz", "is for images", inputs={"v": (1, 60)},
            preprocess=settings)  # fmt: skip


def digests(path, settings=None):
    samples = open_samples(path, ONE, preprocess=settings)
    return [sample.digest for sample in samples]


def test_a_sample_is_known_by_what_it_is_made_of(tmp_path):
    """Whatever file it is from; beside an image's pixels nothing makes a difference."""
    images(tmp_path)
    wide = np.pad(BYTES, [(0, 0), (2, 2), (1, 1), (0, 0)], constant_values=7)
    for name, x in {"a": BYTES, "wide": wide, "floats": AS_NCHW}.items():
        np.savez(tmp_path / f"{name}.npz", x=x)
    settings = Preprocess(color="bgr", mean=(1.0,))
    want = digests(tmp_path / "a.npz", settings)
    assert len(set(want)) == len(BYTES)
    assert digests(tmp_path, settings) == want
    assert digests(tmp_path / "wide.npz", settings) == want
    assert digests(tmp_path / "a.npz", Preprocess(color="bgr", std=(2.0,))) == want
    assert not set(digests(tmp_path / "a.npz", Preprocess())) & set(want)  # RGB
    bare = digests(tmp_path / "floats.npz")
    assert digests(tmp_path / "a.npz") == bare
    assert not set(bare) & set(want)
