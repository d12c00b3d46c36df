# SPDX-License-Identifier: Apache-2.0
"""The digits of the demo: a short training recovers what coarse ranges lose.

Ranges of 0 to 400 leave three to five levels to values of at most 3 to 6, two of the
eight bits. docs/qat.md has the figures.
"""

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch.nn import functional

from digits import split
from neon8 import qat
from train_digits import Digits, floats

DEMO = "digits.onnx"
COARSE = {"re*": (0.0, 400.0)}
EPOCHS, FROZEN, BATCH, RATE = 6, 2, 32, 1e-2


@pytest.fixture(scope="module")
def data():
    learned, unseen = split()
    return floats(learned), torch.from_numpy(learned.y), floats(unseen), unseen.y


@pytest.fixture
def digits(request):
    """The network of the demo, as PyTorch trained it."""
    path = request.config.rootpath / "tests" / "demo" / DEMO
    values = {
        t.name: torch.from_numpy(numpy_helper.to_array(t).copy())
        for t in onnx.load(path).graph.initializer
    }
    names = {"weight": "scale", "bias": "bias"}
    names |= {"running_mean": "mean", "running_var": "variance"}
    state = {
        f"classify.{part}": values[f"classify_{part}"] for part in ("weight", "bias")
    }
    for layer in ("stem", "down", "depthwise", "project", "expand"):
        state[f"{layer}.0.weight"] = values[f"{layer}_weight"]
        state[f"{layer}.1.num_batches_tracked"] = torch.tensor(0)
        for ours, theirs in names.items():
            state[f"{layer}.1.{ours}"] = values[f"{layer}_norm_{theirs}"]
    model = Digits()
    model.load_state_dict(state)
    return model.eval()


def train(model, images, labels):
    """Six epochs, the last two of them frozen."""
    torch.manual_seed(0)
    steps = EPOCHS * (len(images) // BATCH)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model.train()
    for epoch in range(EPOCHS):
        if epoch == EPOCHS - FROZEN:
            model.freeze()
        order = torch.randperm(len(images))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[first : first + BATCH]
            optimizer.zero_grad()
            functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def hits(scores, classes):
    """Percent."""
    return 100 * np.mean(np.asarray(scores).argmax(1) == classes)


def test_training_recovers_what_coarse_ranges_lose(digits, data):
    images, labels, unseen, classes = data
    example = images[:256]
    with torch.no_grad():
        assert hits(digits(unseen), classes) > 98.5  # float: 98.67
        lost = qat.prepare(digits, example, ranges=COARSE).eval()
        before = hits(lost(unseen), classes)  # 72.8
    trained = train(qat.prepare(digits, example, ranges=COARSE), images, labels)
    with torch.no_grad():
        after = hits(trained(unseen), classes)  # 97.3
    assert before < 80
    assert after > 95  # as much training without rounding leads to 87.5
