# SPDX-License-Identifier: Apache-2.0
"""Samples in batches: taken apart, or put together as the network takes them."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from neon8.data.inputs import Input, of_shapes
from neon8.data.preprocess import Preprocess
from neon8.data.samples import Sample, as_samples, count_samples, gather, open_samples
from neon8.errors import DataError
from quantized_nets import Reader

F = np.float32
RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 3, 4, 5)).astype(F)
BYTES = RNG.integers(0, 256, (12, 4, 5, 3), dtype=np.uint8)
LENGTHS = np.arange(12)
ONE = of_shapes({"x": (1, 3, 4, 5)})
FOUR = of_shapes({"x": (4, 3, 4, 5)})
FREE = of_shapes(
    {"x": (1, 3, 4, 5), "len": (1,), "sizes": (2,)},
    {"len": "int64", "sizes": "int32"},
    free=("x", "len"),
)
SIZES = np.array([7, 9])


def cut(sizes):
    """X and LENGTHS in batches of these sizes."""
    ends = np.cumsum([0, *sizes])
    return [
        {"x": X[a:b], "len": LENGTHS[a:b], "sizes": SIZES} for a, b in pairwise(ends)
    ]


def same(samples, want):
    samples, want = list(samples), list(want)
    assert len(samples) == len(want) > 0
    for got, expected in zip(samples, want, strict=True):
        assert got.digest == expected.digest
        assert got.labels == expected.labels
        assert got.inputs.keys() == expected.inputs.keys()
        for name, array in got.inputs.items():
            assert array.dtype == expected.inputs[name].dtype
            assert array.tobytes() == expected.inputs[name].tobytes()
            assert array.shape == expected.inputs[name].shape


SINGLE = [
    {"x": x, "len": length, "sizes": SIZES}
    for x, length in zip(X, LENGTHS, strict=True)
]


@pytest.mark.parametrize("sizes", [[12], [5, 7], [1] * 12, [4, 4, 4], [2, 0, 10]])
@pytest.mark.parametrize("form", [Reader, list, iter])
def test_the_batches_of_a_reader_do_not_matter(sizes, form):
    want = list(as_samples(SINGLE, FREE))
    assert [list(each.inputs["x"].shape) for each in want] == [[1, 3, 4, 5]] * 12
    assert [each.name for each in want] == [f"sample {i}" for i in range(12)]
    same(as_samples(form(cut(sizes)), FREE), want)
    same(as_samples(form(cut(sizes)), FREE, skip=3, limit=6), want[3:9])


@pytest.mark.parametrize("inputs", [ONE, FOUR])
@pytest.mark.parametrize("pieces", [[12], [1, 11], [4, 4, 4], [3, 2, 7]])
def test_arrays_in_batches(inputs, pieces):
    whole = np.split(X, np.cumsum(pieces)[:-1])
    want = list(as_samples(X, inputs))
    size = inputs["x"].rows
    assert len(want) == 12 // size
    assert np.array_equal(np.concatenate([s.inputs["x"] for s in want]), X)
    same(as_samples(whole, inputs), want)
    same(as_samples(iter(whole), inputs), want)
    bytes_ = [np.ascontiguousarray(BYTES[:5]), BYTES[5], BYTES[6:]]
    same(as_samples(bytes_, inputs), as_samples(BYTES, inputs))


def write(folder, kind, x, y):
    if kind.startswith("npz"):
        (np.savez if kind == "npz" else np.savez_compressed)(folder / "a.npz", x=x, y=y)
        return folder / "a.npz"
    if kind.startswith("npy"):
        np.save(folder / "a.npy", x if kind == "npy" else np.asfortranarray(x))
        return folder / "a.npy"
    if kind == "batches":
        np.savez(folder / "b.npz", images=x.reshape(6, 2, *x.shape[1:]))
        return folder / "b.npz"
    if kind == "files of batches":
        for number, each in enumerate(np.split(x, 4)):
            np.save(folder / f"{number}.npy", each)
        return folder
    for number, each in enumerate(x):
        np.save(folder / f"{number:02}.npy", each)
    return folder


@pytest.mark.parametrize(
    "kind",
    [
        *("npz", "npz compressed", "npy", "npy in the order of Fortran", "folder"),
        *("batches", "files of batches"),
    ],
)
@pytest.mark.parametrize("inputs", [ONE, FOUR])
def test_files_in_batches(tmp_path, kind, inputs):
    size = inputs["x"].rows
    samples = open_samples(write(tmp_path, kind, X, np.arange(12)), inputs)
    want = list(as_samples(X, inputs))
    if kind.startswith("npz"):
        labels = np.arange(12).reshape(-1, size).tolist()
        want = [
            Sample(name="", inputs=each.inputs, labels=tuple(label))
            for each, label in zip(want, labels, strict=True)
        ]
    assert len(samples) == len(want)
    same(samples, want)
    same(samples, want)  # once more
    half = len(want) // 2
    same(samples.part(half, len(want)), want[half:])


def test_what_does_not_fill_a_batch_is_said(tmp_path, caplog):
    path = write(tmp_path, "npz", X[:11], np.arange(11))
    text = "left out 3 samples at the end; the network takes 4 at once"
    for data, where in ((path, path), (list(X[:11]), "data"), (iter(X[:11]), "data")):
        caplog.clear()
        got = [each.inputs["x"] for each in gather(data, FOUR)]
        assert np.array_equal(np.concatenate(got), X[:8])
        assert caplog.messages == [f"{where}: {text}"]
    caplog.clear()
    same(gather(X, FOUR, skip=1, limit=9), as_samples(X[1:9], FOUR))
    assert caplog.messages == [
        "data: left out 1 sample at the end; the network takes 4 at once"
    ]
    for data in (write(tmp_path, "npy", X[:3], None), X[:3], iter(X[:3])):
        with pytest.raises(DataError, match="the network takes 4 at once: nothing is"):
            list(gather(data, FOUR))


def test_images_in_batches(tmp_path):
    for number, pixels in enumerate(BYTES):
        Image.fromarray(pixels).save(tmp_path / f"{number:02}.png")
    settings = Preprocess(color="bgr")
    one, four = (
        list(open_samples(tmp_path, each, preprocess=settings)) for each in (ONE, FOUR)
    )
    for number, sample in enumerate(four):
        part = one[4 * number : 4 * number + 4]
        for name in ("inputs", "pixels"):
            wanted = [getattr(each, name)["x"] for each in part]
            wanted = [w if w.ndim == 4 else w[np.newaxis] for w in wanted]
            assert np.array_equal(getattr(sample, name)["x"], np.concatenate(wanted))
    first, last = tmp_path / "04.png", tmp_path / "07.png"
    assert four[1].name == f"{first} to {last}"
    assert len({each.digest for each in four}) == 3


def test_a_digest_tells_types_apart():
    def digest(dtype):
        inputs = {"n": Input(shape=(1, 2), dtype=dtype)}
        (sample,) = as_samples([np.array([1, 0], np.uint8)], inputs)
        return sample.digest

    types = ("float32", "float16", "float64", "int64", "int32", "uint8", "bool")
    assert len({digest(dtype) for dtype in types}) == len(types)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (X, 12),
        (list(X), 12),
        ([X[:5], X[5], X[6:]], 12),
        (list(as_samples(X, ONE)), 12),
        (iter(X), None),
        (Reader([]), None),
        ([X, *as_samples(X, ONE)], None),
        ([X[:, :2]], 1),  # one that does not fit
        ([[[1.0], []]], None),
    ],
)
def test_counting_before_reading(data, count):
    assert count_samples(data, ONE) == count
    if count == 12:
        assert count_samples(data, ONE, skip=3, limit=4) == 4
        assert count_samples(data, ONE, skip=30) == 0


def test_counting_batches():
    assert count_samples(X, FOUR) == 3
    assert count_samples(X, FOUR, skip=1) == 2
    assert count_samples(list(as_samples(X, FOUR)), FOUR) == 3


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (Reader([{"x": X}]), "holds 'x'; the network takes 'x', 'len', 'sizes'"),
        (Reader([X]), "an array without a name is for one input, and the network has"),
        (
            Reader([{"x": X, "len": LENGTHS[:4], "sizes": SIZES}]),
            "sample 0: arrays of different numbers of samples: x 12, len 4",
        ),
        (
            Reader([{"x": X[:2], "len": [1, 2], "sizes": [1, 2, 3]}]),
            r"sample 0: input 'sizes': shape \[3\]",
        ),
        (
            Reader([*cut([2]), {"x": X[0], "len": 0.5, "sizes": SIZES}]),
            "sample 2: input 'len': values are float64; expected int64",
        ),
        ({"x": X, "len": LENGTHS, "sizes": SIZES}, r"get_next\(\), not dict"),
        (3, "not int"),
    ],
)
def test_bad_readers(data, word):
    with pytest.raises(DataError, match=word):
        list(as_samples(data, FREE))


def test_classes_in_dicts():
    data = [{"x": X[:3], "y": [5, 6, 7]}, {"x": X[3], "labels": 8}]
    assert [s.labels for s in as_samples(data, ONE)] == [(5,), (6,), (7,), (8,)]
    for bad, word in (([1, 2], "the classes 2"), ([0.5] * 3, "holds no classes")):
        with pytest.raises(DataError, match=word):
            list(as_samples([{"x": X[:3], "y": bad}], ONE))


def test_several_inputs_in_files(tmp_path):
    path = tmp_path / "a.npz"
    sizes = np.tile(SIZES, (12, 1))
    np.savez(path, x=X, len=LENGTHS, sizes=sizes, y=LENGTHS)
    got = list(open_samples(path, FREE))
    assert [each.labels for each in got] == [(i,) for i in range(12)]
    same(
        [Sample(name="", inputs=each.inputs) for each in got],
        as_samples(SINGLE, FREE),
    )
    folder = tmp_path / "images"
    folder.mkdir()
    Image.fromarray(BYTES[0]).save(folder / "a.png")
    np.save(tmp_path / "a.npy", X)
    for data, what in ((folder, "a folder"), (tmp_path / "a.npy", "an .npy file")):
        text = f"{what} is for one input, and the network has 3; give one array for"
        with pytest.raises(DataError, match=f"^{data}: {text} each, as in an .npz: 'x"):
            open_samples(data, FREE)


def test_files_of_other_batches(tmp_path):
    np.save(tmp_path / "0.npy", X[:3])
    np.save(tmp_path / "1.npy", X[:2])
    with pytest.raises(DataError, match=r"1.npy: shape \[2, 3, 4, 5\]; other files"):
        list(open_samples(tmp_path, ONE))
