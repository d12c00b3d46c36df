# SPDX-License-Identifier: Apache-2.0
"""A few samples of many: the same ones in any order."""

import numpy as np
import pytest

from neon8.data import few
from neon8.data.few import Few
from neon8.data.samples import Sample


def sample(number, size=4):
    values = np.full(size, number, np.float32)
    return Sample(name=f"sample {number}", inputs={"x": values})


def kept(samples, most):
    chosen = Few(most)
    assert list(chosen.watch(samples)) == list(samples)
    return chosen.samples


@pytest.mark.parametrize("most", [1, 5, 30, 100])
def test_order_does_not_matter(most):
    samples = [sample(number) for number in range(30)]
    wanted = sorted(each.digest for each in samples)[:most]
    for seed in range(3):
        mixed = [samples[i] for i in np.random.default_rng(seed).permutation(30)]
        assert [each.digest for each in kept(mixed, most)] == wanted


def test_copies_of_a_sample_count_once():
    found = kept([sample(number % 3) for number in range(30)], 10)
    assert len(found) == 3


def test_memory_that_is_used_again():
    buffer = np.zeros(4, np.float32)
    chosen = Few(10)
    for number in range(5):
        buffer[:] = number
        chosen.add(Sample(name="", inputs={"x": buffer}))
    assert sorted(each.inputs["x"][0] for each in chosen.samples) == list(range(5))


def test_samples_of_different_sizes_in_any_order(monkeypatch):
    monkeypatch.setattr(few, "BUDGET", 40 * 4)
    samples = [sample(number, size=1 + number % 13) for number in range(30)]
    ordered = sorted(samples, key=lambda each: each.digest)
    sizes = np.cumsum([each.inputs["x"].size for each in ordered])
    wanted = [each.digest for each in ordered[: int((sizes <= 40).sum())]]
    assert 3 < len(wanted) < 15
    for seed in range(10):
        mixed = [samples[i] for i in np.random.default_rng(seed).permutation(30)]
        assert [each.digest for each in kept(mixed, 20)] == wanted


def test_no_more_than_memory_holds(monkeypatch):
    monkeypatch.setattr(few, "BUDGET", 3 * 16)
    assert len(kept([sample(number) for number in range(9)], 5)) == 3
    assert len(kept([sample(number, size=100) for number in range(9)], 5)) == 1
