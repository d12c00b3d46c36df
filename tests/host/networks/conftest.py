# SPDX-License-Identifier: Apache-2.0
"""Small versions of the catalogue's networks, each built once."""

from functools import cache

import pytest

from bench.networks import catalogue


@pytest.fixture(scope="session")
def small_network():
    """Name to (Net, ModelProto); nobody changes them."""
    return cache(lambda name: catalogue.build(name, small=True))
