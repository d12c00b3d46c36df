# SPDX-License-Identifier: Apache-2.0
"""A plain training loop for classifiers, for who has none: that of `neon8 qat`."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from neon8.errors import CalibrationError, DataError
from neon8.qat.model import QatModel
from neon8.settings.stages import TrainSettings

Step = Callable[[int, int], None]


def train(
    model: QatModel,
    images: torch.Tensor,
    labels: torch.Tensor,
    settings: TrainSettings,
    step: Step = lambda _done, _all: None,
) -> None:
    """Train by cross-entropy, then freeze; the model is in eval() afterwards.

    images: (N, ...); labels: (N,) classes.  step: told how many steps are done, and of
    how many.  CalibrationError: the loss is NaN or infinite.  DataError: fewer samples
    than a batch.
    """
    batches = len(images) // settings.batch
    if not batches:
        text = f"{len(images)} samples do not fill a batch of {settings.batch}"
        raise DataError(f"{text}; take more, or a smaller batch")
    generator = torch.Generator().manual_seed(settings.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
    steps = settings.epochs * batches
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model.train()
    for number in range(steps):
        epoch, index = divmod(number, batches)
        if index == 0:
            order = torch.randperm(len(images), generator=generator)
            if epoch == settings.epochs - settings.epochs // 3:
                model.freeze()
        chosen = order[index * settings.batch :][: settings.batch]
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images[chosen]), labels[chosen])
        if not torch.isfinite(loss):
            text = "the loss is not finite; take a smaller rate"
            raise CalibrationError(f"training, step {number}: {text}")
        loss.backward()
        optimizer.step()
        schedule.step()
        step(number + 1, steps)
    model.freeze()
    model.eval()


def scores(
    model: nn.Module, images: torch.Tensor, *, batch: int = 256
) -> npt.NDArray[np.float32]:
    """(N, classes), as eval() gives them."""
    before = model.training
    model.eval()
    with torch.no_grad():
        found = [model(part).numpy() for part in images.split(batch)]
    model.train(before)
    return np.concatenate(found)
