# SPDX-License-Identifier: Apache-2.0
"""Figures as people read them, the same in HTML and Markdown."""

import math

from neon8.evaluate.ranking import Gain
from neon8.report.facts import Report
from neon8.report.figures import Figure
from neon8.text import size


def decibels(value: float | None) -> str:
    """'31.2 dB'; '-' for what is not known."""
    if value is None or math.isnan(value):
        return "-"
    return "exact" if value == math.inf else f"{value:.1f} dB"


def value_of(figure: Figure) -> str:
    """The number with its unit."""
    return _said(figure, figure.value)


def range_of(figure: Figure) -> str:
    """'93.0 % to 99.4 %', or nothing."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{_said(figure, figure.low)} to {_said(figure, figure.high)}"


def _said(figure: Figure, value: float) -> str:
    if figure.unit == "%":
        return f"{value:.2f} %"
    if figure.unit == "dB":
        return decibels(value)
    if figure.unit == "bytes":
        return size(int(value)).partition(" (")[0]
    if figure.unit == "ms":
        return f"{value:.3g} ms"
    if figure.name == "macs":
        return f"{value / 1e6:.1f} million"
    return f"{value:g}"


def gain_of(name: str, gain: Gain) -> str:
    """'+0.36 ± 0.12 dB' of an output, '+0.01 ± 0.02' of a task."""
    if name.startswith("output "):
        return f"{gain.db:+.2f} ± {gain.range:.2f} dB"
    return f"{gain.db:+.4f} ± {gain.range:.4f}"


def verdict(report: Report) -> str:
    """What matters, in a sentence."""
    loss, sqnr = report.figure("loss"), report.figure("sqnr")
    said = f"{report.evaluation.n} samples"
    if loss is not None:
        what = f"int8 misses {value_of(loss)} of what FP32 says"
        if report.evaluation.change is not None:
            what = f"int8 loses {loss.value:.2f} points of top-1"
        said = f"{what} on {said}"
        if loss.low is not None and loss.high is not None:
            said += f" (95 %: {loss.low:.2f} to {loss.high:.2f})"
    if sqnr is not None:
        said += f"; SQNR {value_of(sqnr)}"
    return said
