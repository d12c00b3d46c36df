# SPDX-License-Identifier: Apache-2.0
"""One network and its table in every format, for all tests of conversions."""

import pytest

from table_nets import in_every_format


@pytest.fixture(scope="session", params=[False, True], ids=["auto", "symmetric"])
def made(request, tmp_path_factory):
    """A network, its table in a file, and that in every format."""
    folder = tmp_path_factory.mktemp("formats")
    return in_every_format(folder, symmetric=request.param)


@pytest.fixture
def written(tmp_path):
    """A function that puts text or bytes into a file."""

    def write(data):
        path = tmp_path / "a"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write
