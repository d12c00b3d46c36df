# SPDX-License-Identifier: Apache-2.0
"""The network with a hard tensor, calibrated once."""

import pytest

from hard_nets import images, one_hard_tensor
from neon8 import calibrate_model
from neon8.graph.importer import load
from onnx_nets import save


@pytest.fixture(scope="session")
def hard(tmp_path_factory):
    """Path, graph and table of the network with a hard tensor."""
    path = save(tmp_path_factory.mktemp("hard"), one_hard_tensor())
    table = calibrate_model(path, images(40), method="minmax", plain=True)
    return path, load(path), table
