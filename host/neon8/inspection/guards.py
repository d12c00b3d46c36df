# SPDX-License-Identifier: Apache-2.0
"""A scale table and the guards that fired for it, for a person to read."""

from neon8.quant.reasons import MEANINGS, guards_of, lines, meaning
from neon8.quant.scale_table import NARROW, ScaleTable
from neon8.text import columns, counted, decimals, printable

MOST_LISTED = 12
"""Tensors that a summary names; more are for `neon8 inspect`."""


def described(table: ScaleTable) -> str:
    """What is said of a new table: its size, and a line for each kind of guard."""
    done = (
        f"{counted(len(table.tensors), 'tensor')} and "
        f"{counted(len(table.layers), 'layer')} from "
        f"{counted(table.samples, 'sample')}, method {table.method}, "
        f"scheme {table.scheme}"
    )
    remedies = recipe(table)
    if remedies:
        done += f"; {remedies}"
    notes = list(lines(table))
    fired = [*table.reasons]
    fired += [code for t in table.tensors.values() for code in guards_of(t.reasons)]
    fired += [code for w in table.layers.values() for code in guards_of(w.reasons)]
    if len(fired) > len(notes):
        notes.append("`neon8 inspect` shows the table with each of them")
    notes += precise(table)
    return "\n".join([done, *(f"  {printable(note)}" for note in notes)])


def recipe(table: ScaleTable) -> str:
    """'1 tensor equalized, 27 biases corrected, 5 layers with the steps ...'."""
    tensors, layers = table.tensors.values(), table.layers.values()
    equalized = sum(bool(entry.factors) for entry in tensors)
    absorbed = sum(bool(entry.offsets) for entry in tensors)
    own = sum("own" in entry.reasons for entry in tensors)
    corrected = sum(bool(entry.bias_correction) for entry in layers)
    stepped = sum("step" in entry.reasons for entry in layers)
    parts = []
    if equalized:
        parts.append(f"{counted(equalized, 'tensor')} equalized")
    if absorbed:
        parts.append(f"offsets of {counted(absorbed, 'tensor')} absorbed")
    if own:
        parts.append(f"own steps for {counted(own, 'tensor')} that a Concat reads")
    if corrected:
        parts.append(f"biases of {counted(corrected, 'layer')} corrected")
    if stepped:
        parts.append(f"{counted(stepped, 'layer')} on the steps of training")
    return ", ".join(parts)


def precise(table: ScaleTable) -> list[str]:
    """What is not of 8 bits or less, one tensor to a line unless there are many."""
    rows = [
        (name, "float32" if entry.float32 else f"int16 of {entry.bits} bits")
        for name, entry in table.tensors.items()
        if entry.float32 or entry.bits > NARROW
    ]
    if not rows:
        return []
    done = f"precision: {counted(len(rows), 'tensor')} with more than 8 bits; those "
    done += "that share a scale have the same"
    if len(rows) > MOST_LISTED:
        return [f"{done}; `neon8 inspect` shows the table with each of them"]
    return [done, *columns(rows, header=("tensor", "precision"))]


def legend(table: ScaleTable) -> list[str]:
    """'few:bins: too few ...' for each kind of code in the table, in a fixed order.

    A code that this neon8 does not know, from another's table, has no line.
    """
    codes = [*table.reasons]
    codes += [code for entry in table.tensors.values() for code in entry.reasons]
    codes += [code for entry in table.layers.values() for code in entry.reasons]
    fired = {meaning(code) for code in codes}
    return [f"{code}: {text}" for code, text in MEANINGS.items() if text in fired]


def priced(table: ScaleTable) -> list[str]:
    """What scales for int8 Winograd changed and cost, one layer to a line."""
    rows = [
        (name, layer.rounding, layer.input, decimals(layer.sqnr_loss))
        for name, layer in table.layers.items()
        if layer.sqnr_loss is not None
    ]
    count = sum(layer.rounding == "lattice" for layer in table.layers.values())
    done = f"fast: {counted(count, 'layer')} on the lattice of int8 Winograd"
    if not rows:
        return [done]
    return [done, *columns(rows, header=("layer", "weights", "input", "loss, dB"))]
