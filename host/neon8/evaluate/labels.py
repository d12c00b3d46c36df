# SPDX-License-Identifier: Apache-2.0
"""Labels that mean what the network's classes mean, or seem not to."""

from dataclasses import replace

from neon8.arrays import Array
from neon8.data.samples import Sample
from neon8.errors import DataError
from neon8.evaluate.confidence import mcnemar
from neon8.evaluate.metrics import Tally, by_row

CHANCE = 1e-3
"""That so many more samples agree with other labels by accident."""


def with_offset(sample: Sample, offset: int) -> Sample:
    """The sample with `offset` added to its labels."""
    if not offset or not sample.labels:
        return sample
    return replace(sample, labels=tuple(label + offset for label in sample.labels))


def check_labels(sample: Sample, scores: Array, rows: int, offset: int = 0) -> None:
    """DataError: a label that is no index of the scores of its sample."""
    if not sample.labels:
        return
    each = by_row(scores, rows)
    if len(each) != rows:
        raise DataError(
            f"{sample.name}: labels for {rows} samples, but the first output is "
            f"{list(scores.shape)}"
        )
    for label in sample.labels:
        if 0 <= label < each[0].size:
            continue
        given = f"label {label - offset}"
        if offset:
            given += f", {label} with the offset of {offset:+}"
        text = f"{sample.name}: {given}, but the first output has {each[0].size} values"
        near = {each[0].size: -1, -1: 1}.get(label)
        if near is not None:
            text += f"; --label-offset {offset + near} if the labels are off by one"
        raise DataError(text)


def hint(tally: Tally, offset: int) -> str | None:
    """What to try where labels that are one more or one less are right more often.

    Only where that is no accident, as by the sign test.
    """
    hits, step = max((tally.above, 1), (tally.below, -1))
    if hits <= tally.top1 or mcnemar(hits, tally.top1) >= CHANCE:
        return None
    return (
        f"the labels look off by one: top-1 is {100 * hits / tally.labelled:.2f} % "
        f"with --label-offset {offset + step}"
    )
