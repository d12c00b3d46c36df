# SPDX-License-Identifier: Apache-2.0
"""The shapes of inputs with open dimensions, as the arrays in a file have them."""

import numpy as np
import pytest

from neon8.data.arrays import shapes_in

USUAL = {"image": (1, 3, 16, 16)}
TWO = {"image": (1, 3, 16, 16), "size": (1, 2)}


@pytest.mark.parametrize("shape", [(1, 3, 48, 64), (5, 3, 48, 64), (3, 48, 64)])
def test_an_array(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    assert shapes_in(tmp_path / "x.npy", USUAL) == {"image": (1, 3, 48, 64)}


def test_one_of_any_name(tmp_path):
    np.savez(tmp_path / "x.npz", picture=np.zeros((1, 3, 48, 64), np.float32))
    assert shapes_in(tmp_path / "x.npz", USUAL) == {"image": (1, 3, 48, 64)}


def test_several_by_name(tmp_path):
    np.savez(tmp_path / "x.npz", image=np.zeros((1, 3, 48, 64)), other=np.zeros(2))
    assert shapes_in(tmp_path / "x.npz", TWO) == TWO | {"image": (1, 3, 48, 64)}


def test_what_is_not_there_stays_as_usual(tmp_path):
    """Whoever reads the samples says what is wrong."""
    np.savez(tmp_path / "none.npz")
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 48, 64), np.float32))
    np.save(tmp_path / "far.npy", np.zeros(7, np.float32))
    assert shapes_in(tmp_path / "none.npz", USUAL) == USUAL
    assert shapes_in(tmp_path / "x.npy", TWO) == TWO
    assert shapes_in(tmp_path / "far.npy", USUAL) == USUAL
