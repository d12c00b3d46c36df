# SPDX-License-Identifier: Apache-2.0
"""Where libraries for other machines are looked for."""

import pytest

from neon8 import prebuilt
from neon8.errors import SetupError
from neon8.prebuilt import HEADERS, TARGETS, prebuilt_file


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An empty checkout's folder of the package."""
    folder = tmp_path / "host" / "neon8"
    folder.mkdir(parents=True)
    monkeypatch.setattr(prebuilt, "PACKAGE", folder)
    return folder


@pytest.mark.parametrize("target", [*TARGETS, HEADERS])
def test_a_wheel_comes_before_a_checkout(target, package):
    for folder in (package.parents[1] / "build", package):
        path = folder / "prebuilt" / target / "file"
        path.parent.mkdir(parents=True)
        path.touch()
        assert prebuilt_file(target, "file") == path


@pytest.mark.usefixtures("package")
def test_says_how_to_make_what_is_missing():
    with pytest.raises(
        SetupError, match=r"^linux-armv7/libneon8.a is neither in .*make "
    ):
        prebuilt_file("linux-armv7", "libneon8.a")


@pytest.mark.usefixtures("package")
def test_refuses_other_targets():
    with pytest.raises(SetupError, match=r"for 'linux-riscv64', but for linux"):
        prebuilt_file("linux-riscv64", "libneon8.so")
