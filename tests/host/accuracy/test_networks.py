# SPDX-License-Identifier: Apache-2.0
"""Descriptions of networks: what is read, and what is refused."""

import re
from pathlib import Path

import pytest

from bench.accuracy import networks
from neon8.data.preprocess import Preprocess

HERE = Path(networks.__file__).parent

GOOD = """
[tiny]
model = "tiny.onnx"
data = "train.npz"
calibrate = 10
evaluate = 12
"""


def described(folder, text):
    (folder / networks.FILE).write_text(text)
    for name in ("tiny.onnx", "train.npz"):
        (folder / name).touch()
    return networks.load(folder)


def test_settings_are_what_neon8_reads(tmp_path):
    more = (
        'preprocess = { color = "bgr", mean = [104, 117.5, 123] }\nharden = ["dense"]'
    )
    (network,) = described(tmp_path, GOOD + more)
    assert network.model == tmp_path / "tiny.onnx"
    assert network.harden == ("dense",)
    settings = tmp_path / "settings.toml"
    settings.write_text(network.preprocess)
    assert Preprocess.load(settings) == Preprocess(color="bgr", mean=(104, 117.5, 123))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tiny", "networks.toml"),
        (GOOD.replace("data = ", "date = "), "keys are"),
        (GOOD.replace("calibrate = 10", ""), "'calibrate' is missing"),
        (GOOD.replace("tiny.onnx", "other.onnx"), "there is no"),
        (GOOD + 'harden = ["soft"]', "no rewriting 'soft'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, said):
    with pytest.raises(networks.DescriptionError, match=re.escape(said)):
        described(tmp_path, text)


def test_the_example_is_read(tmp_path):
    description = HERE / "sample_zoo.toml"
    for file in re.findall(r'(?:model|data) = "(.*)"', description.read_text()):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = networks.load(tmp_path, description)
    assert [one.name for one in found] == [
        "squeezenet",
        "resnet8",
        "mnist",
        "ultraface",
    ]
