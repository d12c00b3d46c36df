# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md of the rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench import pages
from bench.accuracy import peers
from bench.accuracy.rows import FP32, RECIPES, Case, Row, decibels
from neon8.evaluate.confidence import Z95, Interval, paired_change
from neon8.evaluate.ranking import rank_settings

Results = Mapping[tuple[str, str], Row]
"""By the names of case and recipe."""

NEAR = 0.5
"""dB by which a rewritten network may be worse than the network."""

INTRODUCTION = """\
# Accuracy

What int8 loses, on samples apart from those that calibrated. Made by

    {command}

with neon8 {neon8}, beside {versions}.
FP32 is run by onnxruntime; the rows of neon8 by the library, whose bytes are those of
the device; those of peers in floats that are rounded where their Q/DQ says.

**plain** is `neon8 calibrate --plain`, **default** has no options, **thorough** is
`--thorough`, **mixed** `--max-cost` with that number; **of 1** calibrates with the
first sample alone. Cells of what was not measured are empty: searches, which take
minutes, of most networks, and of rewritten networks what says little of them. Each peer
is shown by that of its settings that has the highest SQNR on the very samples that
judge:

{settings}

Weights have a scale for each output channel where the peer can. **onnxruntime** and
**aimet** round every activation but Softmax; **nncf** leaves functions like SiLU in
float32 and has scales by channel before depthwise convolutions; **ncnn** rounds what
convolutions and fully connected layers read and nothing else, by the rules of its
sources: its ncnn2table and ncnn2int8 come in no package. PPQ is not measured, nor are
AdaRound and its like in AIMET, which take hours without a GPU.

The word after a name says how `bench/accuracy/harden.py` rewrote the network:
**depthwise** and **dense** divide channels before such convolutions by up to 256 and
multiply where they are read, **outliers** multiplies a channel in 16 by 32. That keeps
what the float network computes. **lattice_tensor** and **lattice_channel** round
weights to multiples of a step, one a layer or one a channel, which makes another
network, compared with itself in FP32.

`bench/accuracy/drawn.py` builds {drawn}: inverted
residuals of 5x5, with squeeze and excite in hardswish and three outputs in several,
shuffled halves, and in centres a detector that is hardswish with maps of scores, sizes
and offsets (CenterNet). Channels differ in range by up to a hundred times; only the
last layers were fitted, to digits, which centres finds on a canvas.
"""

COLUMNS = """\
**top-1** and its **change** against FP32 in points; **agree**: share with the top-1 of
FP32, or **F1** of boxes against those of FP32 (same class, IoU of 0.5); **SQNR**: of
scores without what all classes share, or of the worst of several outputs; **dNLL**:
rise of the label's negative log likelihood; ± is one standard error.
"""

BESIDE = """\
How much more neon8's default has than the best of each peer: SQNR, and points of top-1
or F1; ± is the 95 % interval, of pairs of samples."""

HEADER = ("network", "recipe", "top-1, %", "change", "agree, %", "SQNR, dB", "dNLL")


def page(cases: Iterable[Case], results: Results, facts: Mapping[str, object]) -> str:
    cases, measured = list(cases), {recipe for _, recipe in results}
    recipes = [recipe for recipe in RECIPES if recipe in measured]
    shown = [one for one in recipes if one != FP32]
    summary = []
    if "default" in recipes:
        summary = [*beside(cases, results, recipes), *_summary(cases, results)]
    shown_peers = {name: peers.PEERS[name] for name in recipes if name in peers.PEERS}
    drawn = [case.name for case in cases if case.network.draw]
    more = {
        "versions": ", ".join(sorted({each.version for each in shown_peers.values()})),
        "settings": "\n".join(
            f"- {name}: {'; '.join(peer.settings)}"
            for name, peer in shown_peers.items()
        ),
        "drawn": ", ".join(drawn) or "none of these",
    }
    ratios = (
        [case.name, *(_sqnr(results, case, recipe) for recipe in shown)]
        for case in cases
    )
    every = (
        [case.name, *figures(results[case.name, recipe], recipe)]
        for case in cases
        for recipe in recipes
        if (case.name, recipe) in results
    )
    parts = [INTRODUCTION.format(**facts, **more), "## SQNR in dB", ""]
    parts += [pages.table(("network", *shown), ratios), "", *summary]
    parts += ["## All figures", "", COLUMNS, pages.table(HEADER, every), ""]
    return "\n".join(parts)


def figures(row: Row, recipe: str) -> list[str]:
    """The cells of one row after the network's name."""
    if "refused" in row:
        return [recipe, f"refused: {row['refused']}".replace("|", "\\|"), *[""] * 4]
    return [
        f"{recipe}: {row['setting']}" if "setting" in row else recipe,
        _with_error(row["top1"], row["top1_error"], ".1f"),
        _with_error(row["change"], _half(row["change_range"]), "+.1f"),
        _agreement(row),
        sqnr(row),
        _with_error(row["dnll"], row["dnll_error"], "+.3f"),
    ]


def _agreement(row: Row) -> str:
    """Agreement of top-1, or of the boxes of a detector."""
    boxes = row["samples"]["boxes"]
    if row["detection"] is not None:
        error = _root(_f1_terms(boxes))
        return f"F1 {_with_error(100 * f1(boxes), 100 * error, '.1f')}"
    return _with_error(row["agreement"], None, ".1f")


Boxes = list[tuple[int, int]]


def f1(boxes: Boxes) -> float:
    """Twice the boxes matched over all of both; 1 if there are none."""
    matched, both = map(sum, zip(*boxes, strict=True))
    return 2 * matched / both if both else 1.0


def _f1_terms(boxes: Boxes) -> list[float]:
    """What each sample adds to the error of F1, by its linear terms."""
    value, both = f1(boxes), max(1, sum(each for _, each in boxes))
    return [(2 * matched - value * each) / both for matched, each in boxes]


def _root(terms: Iterable[float]) -> float:
    return math.sqrt(math.fsum(term * term for term in terms))


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more the default has, and the 95 % interval, of pairs of samples."""

    value: float
    interval: Interval
    unit: str

    def __str__(self) -> str:
        half = (self.interval.high - self.interval.low) / 2
        return f"{self.value:+.1f} ± {half:.1f}{' dB' * (self.unit == 'dB')}"


def task_gain(ours: Row, theirs: Row) -> Gain | None:
    """In points of top-1 or F1.  None: neither is known."""
    one, other = ours["samples"], theirs["samples"]
    if ours["top1"] is not None:
        pairs = list(zip(one["right"], other["right"], strict=True))
        gained, lost = pairs.count((True, False)), pairs.count((False, True))
        interval = paired_change(gained, lost, len(pairs)).times(100)
        return Gain(100 * (gained - lost) / len(pairs), interval, "points")
    if ours["detection"] is None:
        return None
    terms = zip(_f1_terms(one["boxes"]), _f1_terms(other["boxes"]), strict=True)
    half = 100 * Z95 * _root(a - b for a, b in terms)
    gain = 100 * (f1(one["boxes"]) - f1(other["boxes"]))
    return Gain(gain, Interval(gain - half, gain + half), "points")


def sqnr_gain(ours: Row, theirs: Row) -> Gain:
    errors = [theirs["samples"]["noise"], ours["samples"]["noise"]]
    gain = rank_settings(errors, 0).gains[1]
    return Gain(gain.db, Interval(gain.least, gain.db + gain.range), "dB")


def beside(cases: list[Case], results: Results, recipes: list[str]) -> list[str]:
    """The default beside each peer, and where it is behind."""
    names = [name for name in recipes if name in peers.PEERS]
    if not names:
        return []
    rows, behind = [], []
    for case in cases:
        ours, cells = results[case.name, "default"], []
        for name in names:
            theirs = results.get((case.name, name))
            if theirs is None:
                cells.append("")
                continue
            if "refused" in ours or "refused" in theirs:
                cells.append("refused")
                behind += [f"{case.name}: refused"] * ("refused" in ours)
                continue
            gains = [sqnr_gain(ours, theirs), task_gain(ours, theirs)]
            known = [gain for gain in gains if gain is not None]
            cells.append(", ".join(map(str, known)))
            behind += [
                f"{case.name}: {name} by {-gain.value:.1f} {gain.unit}"
                for gain in known
                if gain.interval.high < 0
            ]
        rows.append([case.name, *cells])
    where = [f"- {each}" for each in dict.fromkeys(behind)]
    said = ["Behind by more than the interval:", "", *where]
    if not where:
        said = ["Behind on none by more than the interval."]
    table = pages.table(("network", *names), rows)
    parts = ["## Default beside peers", "", BESIDE, "", table, ""]
    return [*parts, *_failures(cases, results, names), *said, ""]


def _failures(cases: list[Case], results: Results, names: list[str]) -> list[str]:
    """Settings of peers that made no network."""
    found = [
        f"- {case.name}, {name}, {setting}: {why}"
        for case in cases
        for name in names
        for setting, why in results.get((case.name, name), {}).get("failed", {}).items()
    ]
    return ["Settings of peers that failed:", "", *found, ""] if found else []


def _half(interval: Mapping[str, float] | None) -> float | None:
    """The standard error by a 95 % interval."""
    return interval and (interval["high"] - interval["low"]) / 2 / Z95


def _with_error(value: float | None, error: float | None, form: str) -> str:
    if value is None:
        return "-"
    return f"{value:{form}}" + (f" ± {error:{form.strip('+')}}" if error else "")


def sqnr(row: Row) -> str:
    if "refused" in row:
        return "refused"
    value = decibels(row)
    return "equal" if value is None else f"{value:.1f}"


def _sqnr(results: Results, case: Case, recipe: str) -> str:
    row = results.get((case.name, recipe))
    return "" if row is None else sqnr(row)


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
