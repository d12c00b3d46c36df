# SPDX-License-Identifier: Apache-2.0
"""The reason codes of a scale table: what a guard of any stage changed or found.

A code that changed something, or that the reader should know of, stands in the table
and is a line in the log. The codes are these and no others.
"""

import logging
from collections.abc import Iterator

from neon8.quant.scale_table import ScaleTable

MEANINGS = {
    "dead": "nothing but zeros was seen; the scale is made up",
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
    "float32": "not quantized, nor are the layers that read it",
    "step": "the weights are multiples of one step, which is the scale",
    "equalized": "its channels have factors, so that they share a range",
    "corrected": "its bias has what rounded weights take from the means",
    "bias": "the weight scale was enlarged so that the bias fits int32",
}
"""Codes of tensors and layers; few:samples is of a whole table. `dead`, `floor` and
`bias` of a layer come with a channel: `dead:7` is a channel without weights."""

RECIPE = frozenset(("step", "equalized", "corrected", "int16", "float32"))
"""What was done for accuracy: nothing that anyone must look at."""


def guards_of(codes: tuple[str, ...]) -> tuple[str, ...]:
    """The codes that are not of the RECIPE."""
    return tuple(code for code in codes if code not in RECIPE)


def meaning(code: str) -> str:
    """What a code, with or without a channel, means; "?" if it is not in the list."""
    return MEANINGS.get(code) or MEANINGS.get(code.partition(":")[0], "?")


def lines(table: ScaleTable) -> Iterator[str]:
    """One for each guard that fired."""
    for code in table.reasons:
        yield f"{table.samples} samples: {code}: {meaning(code)}"
    for name, tensor in table.tensors.items():
        for code in guards_of(tensor.reasons):
            yield f"tensor {name!r}: {code}: {meaning(code)}"
    for name, layer in table.layers.items():
        for code in guards_of(layer.reasons):
            yield f"layer {name!r}: {code}: {meaning(code)}"


def log(table: ScaleTable) -> None:
    """Every guard that fired, as a warning of the logger "neon8.guards"."""
    for line in lines(table):
        logging.getLogger("neon8.guards").warning("%s", line)
