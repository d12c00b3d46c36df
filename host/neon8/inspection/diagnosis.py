# SPDX-License-Identifier: Apache-2.0
"""A diagnosis, for a person to read: what costs most stands first."""

from collections.abc import Iterable, Sequence

from neon8.refine.diagnosis import Diagnosis
from neon8.refine.remedies import Remedy, best
from neon8.refine.split import Split
from neon8.text import columns, counted, decimals

UNEXPLAINED_DB = 6.0
"""A tensor that alone costs so much less than all together does not explain it."""
FEW = 5
"""Rows of a table that does not show all."""


def described(found: Diagnosis, *, everything: bool = False) -> str:
    """All of it as text; everything: with every tensor, layer, remedy and guard."""
    most = None if everything else FEW
    sections = (
        _tensors(found, most),
        _channels(found, most),
        _layers(found, most),
        _samples(found),
        _guards(found, everything=everything),
        _remedies(found, everything=everything),
    )
    count, agreement = counted(found.n, "sample"), decimals(found.agreement)
    text = f"{count}, SQNR {_db(found.sqnr_db)}, agreement {agreement} %"
    lines = [f"{found.model}: {text}"]
    for section in sections:
        lines += ["", *section] if section else []
    return "\n".join([*lines, "", f"summary: {summary(found)}"])


def summary(found: Diagnosis) -> str:
    """One line: how much is lost, where most of it, and what would help."""
    parts = [f"SQNR {_db(found.sqnr_db)}"]
    costs = found.by_cost()
    spoiled = _spoiled(found)
    if spoiled is not None:
        text = f"layer {spoiled.layer!r} loses most, {_db(spoiled.sqnr_db)} by itself, "
        parts.append(f"{text}by {spoiled.cause}")
    elif costs:
        worst = costs[0]
        parts.append(f"tensor {worst.name!r} costs most, {_db(worst.alone_db)} alone")
    if found.plan:
        first, *others = found.plan
        gain = _signed(first.gain_db)
        text = f"{first.kind} for {first.target} gives {gain} dB"
        if others:
            count, reached = _remedies_of(len(found.plan)), _db(others[-1].sqnr_db)
            text += f"; with {count} it has {reached}"
        parts.append(text)
    elif found.remedies:
        parts.append("no remedy that was tried helps")
    return "; ".join(parts)


def _spoiled(found: Diagnosis) -> Split | None:
    """The layer to blame where no tensor alone costs nearly as much as is lost."""
    costs = [each.alone_db for each in found.by_cost() if each.alone_db is not None]
    own = [each for each in found.layers if each.cause in ("its weights", "its bias")]
    if not own or (costs and costs[0] <= found.sqnr_db + UNEXPLAINED_DB):
        return None
    return min(own, key=lambda each: each.sqnr_db)


def _db(value: float | None) -> str:
    return "-" if value is None else f"{decimals(value)} dB"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _title(what: str, shown: int, count: int) -> str:
    return f"{what}, {shown} of {count}; --all shows all" if shown < count else what


def _tensors(found: Diagnosis, most: int | None) -> list[str]:
    tensors = found.by_cost()
    rows = [
        (
            each.name,
            str(each.bits or "float"),
            decimals(each.alone_db),
            decimals(each.sqnr_db),
            decimals(each.rounding_db),
            decimals(each.clipping_db),
            decimals(100 * each.clipped),
        )
        for each in tensors[:most]
    ]
    header = ("tensor", "bits", "alone", "so far", "rounding", "clipping", "beyond %")
    title = "SQNR of tensors in dB, what costs the network most first"
    lines = [_title(title, len(rows), len(tensors)), *columns(rows, header=header)]
    if found.inside:
        lines.append(f"  never int8, inside of a step: {', '.join(found.inside)}")
    return lines


def _channels(found: Diagnosis, most: int | None) -> list[str]:
    tensors = found.by_cost()[:most]
    rows = [
        (
            tensor.name,
            str(each.channel),
            decimals(each.sqnr_db),
            _range(each.low, each.high),
            _range(tensor.low, tensor.high),
        )
        for tensor in tensors
        for each in tensor.channels[: None if most is None else 2]
    ]
    header = ("tensor", "channel", "SQNR dB", "its range", "of the tensor")
    title = "channels that lose most, of what varies in them"
    return [title, *columns(rows, header=header)] if rows else []


def _range(low: float, high: float) -> str:
    return f"{low:.4g} .. {high:.4g}"


def _layers(found: Diagnosis, most: int | None) -> list[str]:
    layers = sorted(found.layers, key=lambda each: each.sqnr_db)
    rows = [
        (
            each.layer,
            decimals(each.sqnr_db),
            *(
                decimals(part.sqnr_db)
                for part in (
                    each.rounding,
                    each.clipping,
                    each.weights,
                    each.bias,
                    each.bias_shift,
                )
            ),
        )
        for each in layers[:most]
    ]
    header = ("layer", "all", "rounding", "clipping", "weights", "bias", "bias shift")
    title = "SQNR of each layer by itself, and with one of its errors, the worst first"
    if not rows:
        return []
    return [_title(title, len(rows), len(layers)), *columns(rows, header=header)]


def _samples(found: Diagnosis) -> list[str]:
    rows = [(each.sample, decimals(each.sqnr_db)) for each in found.samples]
    return [
        "samples that lose most",
        *columns(rows, header=("sample", "SQNR dB")),
    ]


def _guards(found: Diagnosis, *, everything: bool) -> list[str]:
    dead = sum(each.dead for each in found.tensors)
    holders = sum(each.dead > 0 for each in found.tensors)
    lines = []
    if dead:
        where = counted(holders, "tensor")
        lines.append(f"{counted(dead, 'channel')} of {where} hold nothing but 0 here")
    if everything:
        lines += [f"  {each.name}: {each.dead}" for each in found.tensors if each.dead]
        lines += [f"  {each}" for each in found.guarded]
    elif found.guarded:
        lines.append("--all has the guards of each tensor and layer")
    return [*found.guards, *lines]


def _remedies(found: Diagnosis, *, everything: bool) -> list[str]:
    if not found.remedies:
        return []
    shown = list(found.remedies) if everything else best(found.remedies)
    failed = [each for each in shown if each.failure]
    if not shown:
        return [f"none of {_remedies_of(len(found.remedies))} that were tried helps"]
    lines = [
        "remedies, the best of each alone, measured on these samples",
        *_listed(shown),
        *(f"  {targets}: {how}" for how, targets in _ways(shown).items()),
        *(f"  {each.target}: no {each.kind}: {each.failure}" for each in failed),
    ]
    if len(found.plan) > 1:
        lines += [
            "one after another, each on top of those before it",
            *_listed(found.plan),
        ]
    return lines


REMEDY = ("for", "what", "gain dB", "+-", "SQNR dB", "cost", "sure to lose in")


def _listed(remedies: Sequence[Remedy]) -> list[str]:
    """A table; what none loses in has no column."""
    last = None if any(each.losses for each in remedies) else -1
    return columns([_row(each)[:last] for each in remedies], header=REMEDY[:last])


def _ways(remedies: Iterable[Remedy]) -> dict[str, str]:
    """How to apply remedies, each way with its targets."""
    ways: dict[str, str] = {}
    for each in remedies:
        if not each.failure:
            known = ways.get(each.how)
            ways[each.how] = f"{known}, {each.target}" if known else each.target
    return ways


def _remedies_of(count: int) -> str:
    return "1 remedy" if count == 1 else f"{count} remedies"


def _row(each: Remedy) -> Sequence[str]:
    gain, after = _signed(each.gain_db), decimals(each.sqnr_db)
    error, cost = decimals(each.error_db), decimals(each.cost)
    lost = ", ".join(each.losses)
    return (each.target, each.kind, gain, error, after, cost, lost)
