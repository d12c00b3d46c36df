# SPDX-License-Identifier: Apache-2.0
"""Normalization folded in training: Jacob et al. 3.2, Krishnamoorthi 3.2.2."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from neon8.errors import CalibrationError
from neon8.qat import prepare
from neon8.qat.layers import Weighted
from neon8.qat.ranges import DECAY, Ranges, Rounding
from torch_nets import block


@pytest.fixture
def layers():
    """A convolution, its normalization, and both as one layer; a batch."""
    torch.manual_seed(3)
    conv, norm = block(3, 5)
    with torch.no_grad():
        norm.weight[0] = 0.0  # nothing may divide by it
    ranges = Ranges(("x",), scheme="asymmetric")
    x = torch.randn(8, 3, 6, 6)
    ranges.observe("x", x)
    layer = Weighted(copy.deepcopy(conv))
    layer.norm, layer.source = copy.deepcopy(norm), ranges
    return conv, norm, layer, x


def rounded_by_hand(weight, gain):
    folded = (weight * gain.reshape(-1, 1, 1, 1)).detach().numpy()
    most = np.abs(folded).reshape(len(folded), -1).max(1)
    scale = np.where(most > 0, most, most.max()).astype(np.float64) / 127
    scale = scale.astype(np.float32).reshape(-1, 1, 1, 1)
    return torch.from_numpy(np.rint(folded / scale.astype(np.float64)) * scale).float()


def test_before_freezing_the_statistics_are_of_the_batch(layers):
    conv, norm, layer, x = layers
    running = torch.sqrt(norm.running_var + norm.eps)
    weight = rounded_by_hand(conv.weight, norm.weight / running)
    raw = conv(x)
    wanted = norm.train()(raw)  # moves its averages
    mean, deviation = (
        raw.mean((0, 2, 3)),
        torch.sqrt(raw.var((0, 2, 3), unbiased=False) + norm.eps),
    )
    rows = (1, -1, 1, 1)
    want = functional.conv2d(x, weight, padding=1) * (running / deviation).reshape(rows)
    want += (norm.bias - norm.weight * mean / deviation).reshape(rows)
    got = layer.train()(x)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert (got - wanted).abs().max() < 0.1  # what rounding of the weights makes
    for key in ("running_mean", "running_var", "num_batches_tracked"):
        torch.testing.assert_close(getattr(layer.norm, key), getattr(norm, key))


def test_after_freezing_they_are_averages(layers):
    conv, norm, layer, x = layers
    layer.frozen = True
    deviation = torch.sqrt(norm.running_var + norm.eps)
    gain = norm.weight / deviation
    want = functional.conv2d(x, rounded_by_hand(conv.weight, gain), padding=1)
    want += (norm.bias - norm.running_mean * gain).reshape(1, -1, 1, 1)
    before = copy.deepcopy(layer.norm.state_dict())
    for mode in (True, False):
        torch.testing.assert_close(layer.train(mode)(x), want, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(before[k], v) for k, v in layer.norm.state_dict().items())


def test_everything_learns(layers):
    *_, layer, x = layers
    for frozen in (False, True):
        layer.frozen = frozen
        layer.zero_grad()
        layer.train()(x).square().sum().backward()
        for parameter in layer.parameters():
            assert parameter.grad.isfinite().all()
            assert parameter.grad.abs().sum() > 0


def test_ranges_are_moving_averages():
    ranges = Ranges(("a", "b"), scheme="auto")
    with pytest.raises(CalibrationError, match="tensor 'a': no batch was seen"):
        ranges.threshold()
    ranges.observe("a", torch.tensor([1.0, 4.0]))
    assert ranges.threshold() == (0.0, 4.0)
    assert ranges.grid().scheme == "unsigned"
    ranges.observe("a", torch.tensor([-2.0, 2.0]))
    lo, hi = (1 - DECAY) * -2.0, DECAY * 4.0 + (1 - DECAY) * 2.0
    assert ranges.threshold() == pytest.approx((lo, hi))
    assert ranges.grid().scheme == "asymmetric"
    ranges.observe("b", torch.tensor([-9.0]))  # one grid covers both
    assert ranges.threshold() == pytest.approx((-9.0, hi))
    for bad in (np.nan, np.inf):
        with pytest.raises(CalibrationError, match="tensor 'b': a batch holds NaN"):
            ranges.observe("b", torch.tensor([bad]))


@pytest.mark.parametrize(
    ("scheme", "positive", "signed"),
    [
        ("auto", "unsigned", "asymmetric"),
        ("symmetric", "symmetric", "symmetric"),
        ("unsigned", "unsigned", "symmetric"),
        ("symmetric_with_uint8", "unsigned", "symmetric"),
        ("asymmetric", "asymmetric", "asymmetric"),
    ],
)
def test_schemes(scheme, positive, signed):
    for values, want in (([0.0, 1.0], positive), ([-1.0, 1.0], signed)):
        ranges = Ranges(("a",), scheme=scheme)
        ranges.observe("a", torch.tensor(values))
        assert ranges.grid().scheme == want


def test_a_tensor_of_zeros_has_a_grid():
    ranges = Ranges(("a",), scheme="auto")
    ranges.observe("a", torch.zeros(3))
    assert Rounding(ranges, "a")(torch.zeros(3)).tolist() == [0, 0, 0]
    assert ranges.scale() > 0


def test_freezing_keeps_the_grids():
    torch.manual_seed(1)
    model = nn.Sequential(block(3, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    x = torch.randn(8, 3, 6, 6)
    made = prepare(model, x).train()
    ranges = [made.roundings[name].ranges for name in made.names]
    before = [each.threshold() for each in ranges]
    made(x * 3)
    moved = [each.threshold() for each in ranges]
    assert all(a != b for a, b in zip(before, moved, strict=True))
    made.freeze()
    made(x * 9)
    made.observe(x * 9)
    assert [each.threshold() for each in ranges] == moved
    twin = prepare(model, x)
    twin.load_state_dict(made.state_dict())
    twin.freeze()
    assert torch.equal(twin.eval()(x), made.eval()(x))


def test_the_model_itself_is_left_alone():
    torch.manual_seed(1)
    model = nn.Sequential(block(3, 4), nn.ReLU())
    before = copy.deepcopy(model.state_dict())
    prepare(model, torch.randn(2, 3, 6, 6)).train()(torch.randn(2, 3, 6, 6))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
