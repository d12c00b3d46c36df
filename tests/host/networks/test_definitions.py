# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/networks are the published ones."""

import numpy as np
import pytest

from bench.networks import catalogue, samples, weights
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


def test_an_ssd_of_300_pixels_has_1917_boxes():
    net = catalogue.draw("ssd_mobilenet", width=1, size=300)
    assert net.shape("boxes") == (1, 1917, 4)
    assert net.shape("scores") == (1, 1917, 21)


def test_a_yolo_of_640_pixels_has_25200_boxes():
    net = catalogue.draw("yolov5n", width=1, size=640)
    assert net.shape("output0") == (1, 25200, 85)


def test_weights_depend_on_seed_and_name_only():
    """Folded or not, it computes the same; drawn again, it has the same bytes."""
    net, proto = catalogue.build("resnet18", small=True)
    again, repeated = catalogue.build("resnet18", small=True)
    assert proto.SerializeToString() == repeated.SerializeToString()
    again.fold = True
    folded = weights.model(again, catalogue.drawn("resnet18", small=True))
    assert len(folded.graph.node) < len(proto.graph.node)
    (sample,) = samples.inputs(net, 1, seed=7)
    (plain,) = weights.run(proto, sample, net.outputs)
    (other,) = weights.run(folded, sample, net.outputs)
    np.testing.assert_allclose(plain, other, rtol=1e-4, atol=1e-5)
