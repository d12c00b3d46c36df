# SPDX-License-Identifier: Apache-2.0
"""The reason codes of a scale table: what a guard of any stage changed or found.

A code that changed something, or that the reader should know of, stands in the table.
Those that nobody asked for are warnings, one line for each kind, however many tensors
and channels it is of. The codes are these and no others.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping

from neon8.quant.scale_table import WEIGHTS16, LayerScale, ScaleTable, TensorScale
from neon8.text import counted

MEANINGS = {
    "dead": "nothing but zeros, so the scale is made up",
    "few:samples": "so few samples say little about the largest values; take more",
    "few:values": "fewer than 1000 values were seen; minimum and maximum were taken",
    "few:bins": "too few different values for the method; minimum and maximum were "
    "taken",
    "guard": "the method clipped more than 0.1 % of the energy; the range was widened",
    "nonfinite": "NaN or infinite values were seen and ignored",
    "floor": "the scale was raised: not every processor keeps it below 1e-30, or its "
    "product with the scale of the input",
    "signed": "negative values were seen where unsigned was asked for; it is symmetric",
    "unread": "no convolution reads the tensor; judged by the histogram instead of the "
    "output of a layer",
    "override": "set by the user",
    "imported": "taken from another tool's table",
    "fast": "127 steps for int8 Winograd; see what the layers that read it lose",
    "int16": "16 bits, or the most with which the sums of what reads it fit int32",
    WEIGHTS16: "its weights have 16 bits, or what of them the sums leave",
    "float32": "not quantized, nor are the layers that read it",
    "step": "the weights are multiples of one step, which is the scale",
    "equalized": "its channels have factors, so that they share a range",
    "absorbed": "its channels have offsets, which biases take back, so that they share "
    "a range",
    "averaged": "only means read it, which clipping harms more than rounding",
    "reserve": "wider than the values seen, since other samples have larger ones",
    "own": "finer steps than what it is joined with, which gets it requantized",
    "corrected": "its bias has what rounded weights take from the means",
    "chosen": "its weights were rounded so that their errors cancel on samples",
    "thorough": "levels or biases were chosen on samples; what that gave in dB, on "
    "others",
    "default": "no levels and biases chosen on samples gave more on others",
    "deep": "weight scales were enlarged so that int16 holds four products",
    "bias": "the weight scale was enlarged so that the bias fits int32",
}
"""Codes of tensors and layers; few:samples is of a whole table. `dead`, `floor` and
`bias` of a layer come with a channel: `dead:7` is a channel without weights."""

RECIPE = frozenset(
    (
        "step",
        "equalized",
        "absorbed",
        "averaged",
        "reserve",
        "own",
        "corrected",
        "chosen",
        "int16",
        "float32",
        WEIGHTS16,
    )
)
"""What was done for accuracy: nothing that anyone must look at."""

MOST_DIGITS = 9
"""How long the number of a channel can be; a longer one is none of ours."""

IMPORTED = "imported"
ASKED = frozenset(("override", IMPORTED, "fast", "deep"))
"""What the user asked for."""


def guards_of(codes: Iterable[str]) -> tuple[str, ...]:
    """The codes that somebody should look at."""
    return tuple(code for code in codes if code not in RECIPE | ASKED)


def meaning(code: str) -> str:
    """What a code, with or without a channel, means; "?" if it is not in the list."""
    return MEANINGS.get(code) or MEANINGS.get(kind(code), "?")


def kind(code: str) -> str:
    """The code without its channel: 'dead' of 'dead:7', but 'few:bins' of itself."""
    return code if code in MEANINGS else code.partition(":")[0]


def condensed(codes: Iterable[str]) -> str:
    """'step dead:0-3,7': all codes of an entry, the channels of a kind together."""
    channels: dict[str, list[int]] = {}
    for code in codes:
        own = code[len(kind(code)) + 1 :]
        if own.isdecimal() and len(own) <= MOST_DIGITS:
            channels.setdefault(kind(code), []).append(int(own))
        else:
            channels.setdefault(code, [])
    return " ".join(
        f"{name}:{_runs(numbers)}" if numbers else name
        for name, numbers in channels.items()
    )


def _runs(numbers: list[int]) -> str:
    """'0-3,7' of increasing numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def lines(table: ScaleTable) -> Iterator[str]:
    """One for each kind of guard that fired: of how many, and where most."""
    for code in table.reasons:
        yield f"{counted(table.samples, 'sample')}: {code}: {meaning(code)}"
    for name, tensors in _by_kind(table.tensors).items():
        yield f"{_tensors(list(tensors))}: {name}: {meaning(name)}"
    for name, layers in _by_kind(table.layers).items():
        yield f"{_channels(table, layers)}: {name}: {meaning(name)}"


def _by_kind(
    entries: Mapping[str, TensorScale] | Mapping[str, LayerScale],
) -> dict[str, dict[str, list[str]]]:
    """The codes of each kind by entry, in the order of the table."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, entry in entries.items():
        for code in guards_of(entry.reasons):
            found.setdefault(kind(code), {}).setdefault(name, []).append(code)
    return found


def _tensors(names: list[str]) -> str:
    if len(names) == 1:
        return f"tensor {names[0]!r}"
    return f"{len(names)} tensors, {names[0]!r} the first"


def _channels(table: ScaleTable, layers: Mapping[str, list[str]]) -> str:
    """The channels of one kind, and the layer with most of them."""
    worst = max(layers, key=lambda name: len(layers[name]))
    most, every = len(layers[worst]), len(table.layers[worst].weight_scales)
    if len(layers) == 1:
        return f"layer {worst!r}, {most} of {counted(every, 'channel')}"
    total = sum(map(len, layers.values()))
    return (
        f"{counted(total, 'channel')} of {len(layers)} layers, most of them in "
        f"{worst!r}, {most} of {every}"
    )


def log(table: ScaleTable) -> None:
    """A warning of the logger "neon8.guards" for each kind of guard that fired."""
    for line in lines(table):
        logging.getLogger("neon8.guards").warning("%s", line)
