# SPDX-License-Identifier: Apache-2.0
"""Which array is which input, by its name."""

import numpy as np
import pytest

from neon8.data.columns import choose
from neon8.data.inputs import of_shapes
from neon8.data.samples import open_samples
from neon8.errors import DataError

ONE, TWO = of_shapes({"img": (1, 4)}), of_shapes({"img": (1, 4), "len": (1,)})


def chosen(have, inputs=ONE, **options):
    return choose("f", dict.fromkeys(have.split()), inputs, any_name=True, remedy="R",
                  **options)  # fmt: skip


@pytest.mark.parametrize(
    ("have", "array", "label"),
    [
        ("x", "x", None),
        ("x y", "x", "y"),
        ("img x y", "img", "y"),  # the network's own name wins
        ("x_train y_train", "x_train", "y_train"),
        ("X_Train Y_Train", "X_Train", "Y_Train"),
        ("x_test y_train y_test", "x_test", "y_test"),
        ("train_images train_labels", "train_images", "train_labels"),
        ("data label", "data", "label"),
        ("input targets names", "input", "targets"),
        ("x y_train", "x", None),
        ("arr_0", "arr_0", None),
        ("anything labels", "anything", "labels"),
        ("x z", "x", None),  # what has no meaning is left alone
    ],
)
def test_one_input(have, array, label):
    assert chosen(have) == ({"img": array}, label)


def test_several_inputs_have_their_own_names():
    assert chosen("len y img", TWO) == ({"img": "img", "len": "len"}, "y")
    inputs = of_shapes({"x": (1, 4), "y": (1,)})
    assert chosen("y x", inputs) == ({"x": "x", "y": "y"}, None)
    with pytest.raises(DataError, match=r"f: holds 'x', 'len'; .* 'img', 'len', one"):
        chosen("x len", TWO)
    with pytest.raises(DataError, match="an array is chosen for one input"):
        chosen("x len", TWO, array="x")


@pytest.mark.parametrize(
    "have",
    ["x_train x_test", "x data", "a b", "arr_0 arr_1", "y", ""],
)
def test_what_may_be_several_is_asked(have):
    with pytest.raises(DataError, match=r"which of them is the input 'img'\? R"):
        chosen(have)


def test_labels_that_may_be_several_are_asked():
    with pytest.raises(DataError, match=r"which of 'y', 'labels' are the classes\? R"):
        chosen("x y labels")


def test_the_user_chooses():
    have = "x_train x_test y_train y_test z"
    assert chosen(have, array="x_test") == ({"img": "x_test"}, "y_test")
    assert chosen("a b", array="b") == ({"img": "b"}, None)
    with pytest.raises(DataError, match="holds no array 'c', but 'a', 'b'"):
        chosen("a b", array="c")


def test_the_users_choice_in_a_path(tmp_path):
    path = tmp_path / "both.npz"
    x, y = np.arange(20.0).reshape(5, 4), np.arange(5)
    np.savez(path, x_train=-x, y_train=-y, x_test=x, y_test=y)
    with pytest.raises(DataError, match=f"Choose one: {path}:ARRAY"):
        open_samples(path, ONE)
    samples = list(open_samples(f"{path}:x_test", ONE))
    assert [sample.labels[0] for sample in samples] == [0, 1, 2, 3, 4]
    assert np.array_equal(np.concatenate([s.inputs["img"] for s in samples]), x)
    assert samples[3].name == f"{path}[3]"
    odd = tmp_path / "odd.npz:x_test"  # is the file that it says
    np.save(tmp_path / "a.npy", x)
    (tmp_path / "a.npy").rename(odd)
    with pytest.raises(DataError, match="a file of another kind"):
        open_samples(odd, ONE)
