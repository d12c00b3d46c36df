# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md of the rows."""

from collections.abc import Iterable, Mapping

from bench import pages
from bench.accuracy.rows import FP32, RECIPES, Case, Row

Results = Mapping[tuple[str, str], Row]
"""By the names of case and recipe."""

NEAR = 0.5
"""dB by which a rewritten network may be worse than the network."""
Z95 = 1.96

INTRODUCTION = """\
# Accuracy

What int8 loses, on samples apart from those that calibrated. Made by

    {command}

with neon8 {neon8} and its peer, onnxruntime {onnxruntime}. FP32 is run by onnxruntime;
the rows of neon8 by the library, whose bytes are those of the device.

**plain** is `neon8 calibrate --plain`, **default** has no options, **thorough** is
`--thorough`, **mixed** `--max-cost 1.1`. **onnxruntime** is its static quantization
into Q/DQ, with weights per channel where it can, and {bins} bins for Entropy: of its
own 128 it can cut hardly any off. ncnn is not measured.

The word after a name says how `bench/accuracy/harden.py` rewrote the network:
**depthwise** and **dense** divide channels before such convolutions by up to 256 and
multiply where they are read, **outliers** multiplies a channel in 16 by 32, **biases**
adds constants to linear channels. That keeps what the float network computes.
**lattice_tensor** and **lattice_channel** round weights to multiples of a step, one a
layer or one a channel, which makes another network, compared with itself in FP32.
"""

COLUMNS = """\
**top-1** and its **change** against FP32 in points; **agree**: share with the top-1 of
FP32, or of its boxes that are found; **SQNR**: of scores without what all classes
share, or else of all outputs; **dNLL**: rise of the label's negative log likelihood;
± is one standard error.
"""

HEADER = ("network", "recipe", "top-1, %", "change", "agree, %", "SQNR, dB", "dNLL")


def page(
    cases: Iterable[Case],
    results: Results,
    recipes: Iterable[str],
    facts: Mapping[str, object],
) -> str:
    """The whole document."""
    cases, recipes = list(cases), [one for one in RECIPES if one in recipes]
    shown = [one for one in recipes if one != FP32]
    summary = _summary(cases, results) if "default" in recipes else []
    return "\n".join(
        [
            INTRODUCTION.format(**facts),
            "## SQNR in dB",
            "",
            pages.table(
                ("network", *shown),
                (
                    [case.name, *(sqnr(results[case.name, r]) for r in shown)]
                    for case in cases
                ),
            ),
            "",
            *summary,
            "## All figures",
            "",
            COLUMNS,
            pages.table(
                HEADER,
                (
                    [case.name, recipe, *figures(results[case.name, recipe])]
                    for case in cases
                    for recipe in recipes
                ),
            ),
            "",
        ]
    )


def figures(row: Row) -> list[str]:
    """The cells of one row after its names."""
    if "refused" in row:
        return [f"refused: {row['refused']}".replace("|", "\\|"), *[""] * 4]
    return [
        _with_error(row["top1"], row["top1_error"], ".1f"),
        _with_error(row["change"], _half(row["change_range"]), "+.1f"),
        _agreement(row),
        sqnr(row),
        _with_error(row["dnll"], row["dnll_error"], "+.3f"),
    ]


def _agreement(row: Row) -> str:
    """Agreement of top-1, or of the boxes of a detector."""
    if row["detection"] is not None:
        return f"{row['detection']['found']:.1f} of boxes"
    return _with_error(row["agreement"], None, ".1f")


def _half(interval: Mapping[str, float] | None) -> float | None:
    """The standard error by a 95 % interval."""
    return interval and (interval["high"] - interval["low"]) / 2 / Z95


def _with_error(value: float | None, error: float | None, form: str) -> str:
    if value is None:
        return "-"
    return f"{value:{form}}" + (f" ± {error:{form.strip('+')}}" if error else "")


def decibels(row: Row) -> float | None:
    """None: refused, or no error at all, which JSON cannot say otherwise."""
    centred = row.get("sqnr_centred_db")
    return row.get("sqnr_db") if centred is None else centred


def sqnr(row: Row) -> str:
    if "refused" in row:
        return "refused"
    value = decibels(row)
    return "equal" if value is None else f"{value:.1f}"


def _summary(cases: list[Case], results: Results) -> list[str]:
    """How much of the network's SQNR its rewritings keep by default."""
    near, far = [], []
    for case in cases:
        own = decibels(results[case.name, "default"])
        first = decibels(results[case.network.name, "default"])
        if not case.rewriting or first is None:
            continue
        if own is not None and own >= first - NEAR:
            near.append(case.name)
            continue
        lost = "is refused" if own is None else f"loses {first - own:.1f} dB"
        why = case.network.notes.get(case.rewriting, "")
        far.append(f"- {case.name} {lost}{': ' if why else ''}{why}.")
    if not near and not far:
        return []
    parts = ["## Rewritten networks by default", ""]
    if near:
        parts += [f"Within {NEAR} dB of the network as it was: {', '.join(near)}.", ""]
    if far:
        parts += ["Not:", "", *far, ""]
    return parts
