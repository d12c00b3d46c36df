# SPDX-License-Identifier: Apache-2.0
"""What a sample is known by."""

import numpy as np
from PIL import Image

from neon8.data.preprocess import Preprocess
from neon8.data.samples import open_samples

ONE = {"image": (1, 3, 4, 5)}
BYTES = np.random.default_rng(1).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)


def digests(path, settings=None, inputs=ONE):
    samples = open_samples(path, inputs, preprocess=settings)
    return [sample.digest for sample in samples]


def test_a_sample_is_known_by_what_it_is_made_of(tmp_path):
    """Whatever file it is from; beside an image's pixels nothing makes a difference."""
    for number, pixels in enumerate(BYTES):
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    wide = np.pad(BYTES, [(0, 0), (2, 2), (1, 1), (0, 0)], constant_values=7)
    for name, x in {
        "a": BYTES,
        "wide": wide,
        "floats": BYTES.transpose(0, 3, 1, 2).astype(np.float32),
    }.items():
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
