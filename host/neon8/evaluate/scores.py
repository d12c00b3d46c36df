# SPDX-License-Identifier: Apache-2.0
"""The scores of a classifier: logits, or probabilities that a Softmax made of them.

What is asked of them is the same either way: the logarithm of a probability is its
logit but for a number that all classes share.
"""

from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, DoubleArray

LOGITS = "logits"
PROBABILITIES = "probabilities"

SUM_TOLERANCE = 1e-3
LEAST = float(np.finfo(np.float32).smallest_normal)
"""Smaller probabilities have no precise logarithm."""

NOT_ONE_OF_MANY = frozenset({"Sigmoid", "HardSigmoid"})
"""Operators whose results are a probability each, and no distribution together."""


@dataclass(frozen=True, slots=True)
class Reading:
    """kind: LOGITS, PROBABILITIES, or None where classes do not exclude each other.

    why: what decided, for people.
    """

    kind: str | None
    why: str


def reading(operator: str, scores: Array) -> Reading:
    """How to read scores like these, of one sample.

    operator: that computes them, "" if the file does not say.
    """
    if operator in NOT_ONE_OF_MANY:
        return Reading(None, f"they come from {operator}")
    if not is_vector(scores):
        return Reading(None, "they are no vector with a value for each class")
    values = np.asarray(scores, np.float64).reshape(-1)
    if operator == "Softmax":
        return Reading(PROBABILITIES, "they come from Softmax")
    if values.min() >= 0 and abs(values.sum() - 1) <= SUM_TOLERANCE:
        return Reading(PROBABILITIES, "none is below 0, and their sum is 1")
    return Reading(LOGITS, f"they come from {operator}" if operator else "by value")


def is_vector(scores: Array) -> bool:
    """True for a score for each class: several values along a single axis."""
    return max(scores.shape, default=1) == scores.size > 1


def log_scores(scores: Array, kind: str, floor: float = LEAST) -> DoubleArray:
    """Logits, or the logarithms of probabilities, of which none is below `floor`."""
    values = np.asarray(scores, np.float64).reshape(-1)
    return values if kind == LOGITS else np.log(np.maximum(values, floor))


def negative_log_likelihood(logs: DoubleArray, label: int) -> float:
    """-ln of the probability of the label, by the softmax of `logs`."""
    highest = logs.max()
    return float(np.log(np.exp(logs - highest).sum()) + highest - logs[label])


def tied(scores: Array) -> bool:
    """True if the largest value stands more than once."""
    values = np.asarray(scores).reshape(-1)
    return bool(np.count_nonzero(values == values.max()) > 1)
