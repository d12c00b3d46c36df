# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/networks are the published ones."""

import pytest

from bench.networks import catalogue
from bench.networks.catalogue import NETWORKS

PUBLISHED = [name for name, network in NETWORKS.items() if network.parameters]
ROUNDING = 0.01
"""By which multiply-accumulates may differ: some have two digits, some count biases."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_macs_are_the_published_ones(name):
    network = NETWORKS[name]
    net = catalogue.draw(name, width=1, size=network.size)
    assert net.parameters == network.parameters
    if network.macs is not None:
        assert net.macs / 1e6 == pytest.approx(network.macs, rel=ROUNDING)
