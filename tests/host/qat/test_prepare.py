# SPDX-License-Identifier: Apache-2.0
"""What is refused, and what the user gives."""

import pytest
import torch
from torch import nn

from neon8.errors import CalibrationError, GraphError
from neon8.qat import prepare
from refusals import refused
from torch_nets import block, network

X = torch.ones(2, 3, 8, 8)


class Uses(nn.Module):
    """What a function makes of a convolution."""

    def __init__(self, function, layer=None):
        super().__init__()
        self.conv, self.layer, self.function = block(3, 4), layer, function

    def forward(self, image):
        return self.function(self, self.conv(image))


def call(model, x):
    return model.layer(x)


REFUSED = {
    "function": (Uses(lambda _m, x: x.softmax(1)), "softmax (softmax)"),
    "constant": (Uses(lambda _m, x: x + 1), "add (a constant operand)"),
    "module": (Uses(call, nn.GELU()), "layer (GELU)"),
    "mean": (Uses(lambda _m, x: x.mean(1)), "mean (mean over other dimensions"),
    "axis": (Uses(lambda _m, x: torch.cat([x, x], 2)), "cat (cat along another"),
    "view": (Uses(lambda _m, x: x.view(2, 2, -1)), "view (reshape; flatten(1) works)"),
    "two": (Uses(lambda _m, x: x.exp() + x.sin()), "exp (exp); sin (sin)"),
    "dict": (Uses(lambda _m, x: {"y": x}), "the output (is no tensor and no tuple"),
    "padding": (Uses(call, nn.Conv2d(4, 4, 3, padding="same")), "with padding 'same'"),
    "reflect": (Uses(call, nn.Conv2d(4, 4, 3, padding_mode="reflect")), "reflect"),
    "pooling": (Uses(call, nn.AdaptiveAvgPool2d(2)), "pooling to 2"),
    "norm": (nn.Sequential(nn.BatchNorm2d(3)), "only follows a convolution"),
    "statistics": (
        nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, track_running_stats=False)),
        "keeps no running statistics",
    ),
    "branch": (Uses(lambda _m, x: x if x.sum() > 0 else -x), "torch.fx cannot trace"),
}


@pytest.mark.parametrize(("model", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(model, text):
    with refused(GraphError, "", text):
        prepare(model, X)


def test_a_normalization_that_is_not_alone():
    def twice(model, x):
        x = model.layer[0](x)
        return x + model.layer[1](x)

    with pytest.raises(GraphError, match="that nothing else reads"):
        prepare(Uses(twice, block(4, 4)), X)


def test_ranges_of_the_user():
    model, inputs = network("joined")
    names = prepare(model, inputs).names
    made = prepare(model, inputs, ranges={"*": (-4, 4), "image": (-1.0, 2.0)})
    for name in names:
        ranges = made.ranges_of(name)
        assert ranges.threshold() == ((-1.0, 2.0) if name == "image" else (-4.0, 4.0))
    for given, text in {
        "nothing": ((0, 1), "range 'nothing': names none of image, "),
        "image": ((1, 2), "does not hold 0"),
        "leaky": ((0, float("nan")), "does not hold 0"),
    }.items():
        with pytest.raises(CalibrationError, match=text[1]):
            prepare(model, inputs, ranges={given: text[0]})
    joined = [n for n in names if made.ranges_of(n) is made.ranges_of("leaky")]
    assert len(joined) == 2
    with pytest.raises(CalibrationError, match="share one range; several are given"):
        prepare(model, inputs, ranges={joined[0]: (0, 1), joined[1]: (0, 2)})


def test_arguments():
    with pytest.raises(CalibrationError, match="scheme 'odd' is not one of auto"):
        prepare(block(3, 4), X, scheme="odd")
    with pytest.raises(GraphError, match="2 inputs given; the network takes 1"):
        prepare(block(3, 4), [X, X])
    with pytest.raises(CalibrationError, match="a batch holds NaN or infinity"):
        prepare(block(3, 4), X * float("nan"))
