# SPDX-License-Identifier: Apache-2.0
"""What the guards of a scale table mean, in words."""

from neon8.table.scale_table import ScaleTable

MEANINGS = {
    "dead": "nothing but zeros were seen; the scale is made up",
    "few": "too few different values to choose from; minimum and maximum were taken",
    "guard": "the method clipped too much; the range was widened",
    "bias": "a weight scale was enlarged so that the bias fits int32",
}


def guarded(table: ScaleTable) -> list[str]:
    """'tensor 'x': few' for each entry that a guard changed."""
    reasons = [(f"tensor {name!r}", t.reasons) for name, t in table.tensors.items()]
    reasons += [(f"layer {name!r}", w.reasons) for name, w in table.layers.items()]
    return [f"{what}: {' '.join(codes)}" for what, codes in reasons if codes]


def legend(table: ScaleTable) -> list[str]:
    """'few: too few ...' for each kind of guard that fired, in a fixed order."""
    codes = [code for entry in table.tensors.values() for code in entry.reasons]
    codes += [code for entry in table.layers.values() for code in entry.reasons]
    fired = {code.partition(":")[0] for code in codes}
    return [f"{code}: {text}" for code, text in MEANINGS.items() if code in fired]
