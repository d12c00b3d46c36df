# SPDX-License-Identifier: Apache-2.0
"""A scale table and the guards that fired for it, for a person to read."""

from neon8.quant.reasons import MEANINGS, RECIPE, guards_of, meaning
from neon8.quant.scale_table import NARROW, ScaleTable
from neon8.text import columns, counted, decimals


def described(table: ScaleTable) -> str:
    """What is said of a new table: its size, and the guards that fired."""
    done = (
        f"{counted(len(table.tensors), 'tensor')} and "
        f"{counted(len(table.layers), 'layer')} from "
        f"{counted(table.samples, 'sample')}, method {table.method}, "
        f"scheme {table.scheme}"
    )
    notes = [*guarded(table), *legend(table, RECIPE), *precise(table)]
    remedies = recipe(table)
    if remedies:
        done += f"; {remedies}"
    return "\n".join([done, *(f"  {note}" for note in notes)])


def recipe(table: ScaleTable) -> str:
    """'1 tensor equalized, 27 biases corrected, 5 layers with the steps ...'."""
    tensors, layers = table.tensors.values(), table.layers.values()
    equalized = sum(bool(entry.factors) for entry in tensors)
    corrected = sum(bool(entry.bias_correction) for entry in layers)
    stepped = sum("step" in entry.reasons for entry in layers)
    parts = []
    if equalized:
        parts.append(f"{counted(equalized, 'tensor')} equalized")
    if corrected:
        parts.append(f"biases of {counted(corrected, 'layer')} corrected")
    if stepped:
        parts.append(f"{counted(stepped, 'layer')} on the steps of training")
    return ", ".join(parts)


def precise(table: ScaleTable) -> list[str]:
    """What is not of 8 bits or less, one tensor to a line."""
    rows = [
        (name, "float32" if entry.float32 else f"int16 of {entry.bits} bits")
        for name, entry in table.tensors.items()
        if entry.float32 or entry.bits > NARROW
    ]
    if not rows:
        return []
    done = f"precision: {counted(len(rows), 'tensor')} with more than 8 bits; those "
    done += "that share a scale have the same"
    return [done, *columns(rows, header=("tensor", "precision"))]


def guarded(table: ScaleTable) -> list[str]:
    """'tensor 'x': few:bins' for each entry that a guard changed."""
    reasons = [("all tensors", table.reasons)]
    reasons += [(f"tensor {name!r}", t.reasons) for name, t in table.tensors.items()]
    reasons += [(f"layer {name!r}", w.reasons) for name, w in table.layers.items()]
    kept = ((what, guards_of(codes)) for what, codes in reasons)
    return [f"{what}: {' '.join(codes)}" for what, codes in kept if codes]


def legend(table: ScaleTable, without: frozenset[str] = frozenset()) -> list[str]:
    """'few:bins: too few ...' for each kind of code in the table, in a fixed order.

    A code that this neon8 does not know, from another's table, has no line.
    """
    codes = [*table.reasons]
    codes += [code for entry in table.tensors.values() for code in entry.reasons]
    codes += [code for entry in table.layers.values() for code in entry.reasons]
    fired = {meaning(code) for code in codes}
    return [
        f"{code}: {text}"
        for code, text in MEANINGS.items()
        if text in fired and code not in without
    ]


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
