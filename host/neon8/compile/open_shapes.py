# SPDX-License-Identifier: Apache-2.0
"""A network with open dimensions: compiled at sample shapes, compared, tried out."""

import logging
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import Array
from neon8.compile import oracle
from neon8.compile.template import (
    Sample,
    at,
    derived,
    difference,
    ones,
    sharing,
    structure,
)
from neon8.compile.whole_constants import Wholes, wholes_of, with_wholes
from neon8.errors import LOG, CompileError, Neon8Error
from neon8.ir.program import Program, Tensor
from neon8.ir.sizes import Symbol
from neon8.progress import Stages, nobody
from neon8.settings.shapes import Open

if TYPE_CHECKING:  # loads onnx, which a board has not
    from neon8.graph.onnx_file import Shapes

Wanted = Mapping[str, Sequence[int | Open]]

SAMPLES = 8
"""Shapes that are compared, if there are as many."""

DIVISORS = (2, 3, 4, 5, 6, 8, 16, 32, 64)
"""What networks divide sizes by."""

CHECKS = 3
"""Further shapes at which the result is tried, beside the bounds."""

MANY = 16
"""Sizes of which some are left out, those so small that deep layers shrink to 1."""

LARGE = 48
SPREAD = 64
MOST_VALUES = 1 << 24
"""Values of the inputs at the largest shape that is tried."""

MOST_SYMBOLS = 16

CLOSE = 15.0
"""dB of an output that only roundings make another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """The symbols of a network, and where they stand.

    shapes: of each input its dimensions, where a negative number stands for a symbol as
    for a size in a Program.
    """

    symbols: tuple[Symbol, ...]
    shapes: Mapping[str, tuple[int, ...]]

    def at(self, values: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """The shapes of inputs where the symbols have these values."""
        return {
            name: tuple(n if n >= 0 else values[-1 - n] for n in dims)
            for name, dims in self.shapes.items()
        }

    def said(self, values: Sequence[int]) -> str:
        """The same as on the command line."""
        return " ".join(
            f"{name}={'x'.join(map(str, dims))}"
            for name, dims in self.at(values).items()
        )


def openings(
    wanted: Wanted,
    names: Mapping[str, Sequence[str]],
    usual: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Openings:
    """The symbols that a user wants.

    names: of inputs, what their dimensions are called, "" for what has no name;
    dimensions of one name are one symbol.  usual: the shapes of inputs where a caller
    gives none, as far as they are within the bounds.  CompileError: bounds contradict.
    """
    symbols: dict[str, Symbol] = {}
    given: dict[str, int | Open] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, dims in wanted.items():
        numbers = []
        known = names.get(name, ())
        for axis, size in enumerate(dims):
            own = known[axis] if axis < len(known) else ""
            key = own or f"{name}[{axis}]"
            if given.setdefault(key, size) != size:
                text = f"dimension {key!r} is {given[key]} and {size} in --shape"
                raise CompileError(f"{text}; it is one, so give it once")
            if isinstance(size, int):
                numbers.append(size)
                continue
            seen = usual.get(name, ())[axis : axis + 1]
            often = seen[0] if seen and seen[0] in size.values else size.lo
            symbols.setdefault(key, Symbol(key, size.lo, size.hi, size.step, often))
            numbers.append(-1 - list(symbols).index(key))
        shapes[name] = tuple(numbers)
    if len(symbols) > MOST_SYMBOLS:
        text = f"{len(symbols)} open dimensions are too many for a .n8 file"
        raise CompileError(f"{text}, which has up to {MOST_SYMBOLS}")
    return Openings(symbols=tuple(symbols.values()), shapes=shapes)


def compile_open(
    found: Openings,
    compile_at: Callable[["Shapes"], Program],
    progress: Stages = nobody,
) -> Program:
    """The Program for all shapes within the bounds.

    compile_at: the network at one shape.  CompileError: it has other steps at other
    shapes, or a number of it follows from the shape in a way that a file cannot say.
    """
    sampled = sample_values(found.symbols)
    tried = check_values(found, sampled)
    total = len(sampled) + len(tried)
    every: list[Sample] = []
    for values in (*sampled, *tried):
        progress("shapes", len(every), total)
        with _quiet(silent=bool(every)):
            program = _compiled(found, compile_at, values)
        if program is None:
            continue
        if every:
            program = sharing(program, every[0].program)
        every.append(Sample(values=values, program=program))
    samples, others = every[: len(sampled)], every[len(sampled) :]
    like = alike(samples)
    highest = tuple(symbol.hi for symbol in found.symbols)
    wholes: Wholes = {}
    for sample in every:
        if sample.values == highest:
            wholes = wholes_of([each.program for each in like], sample.program)
    samples, like, others = (
        [replace(s, program=with_wholes(s.program, wholes)) for s in part]
        for part in (samples, like, others)
    )
    template = derived(found.symbols, like)
    for sample in others:
        samples.append(sample)
        if comparable(like[0], sample) and unlike(template, sample):
            # It shows what the others did not: that sizes differ which were equal.
            like.append(sample)
            template = derived(found.symbols, like)
    for sample in samples:
        why = unlike(template, sample)
        if why:
            text = f"with {found.said(sample.values)} the network is not what it is"
            remedy = "fix a dimension by --shape, or give narrower bounds"
            raise CompileError(f"{text} elsewhere: {why}; {remedy}")
    progress("shapes", total, total)
    return template


def _compiled(
    found: Openings, compile_at: Callable[["Shapes"], Program], values: Sequence[int]
) -> Program | None:
    """The network at one shape.

    None where a dimension is 1 and the network, put together otherwise for that, wants
    scales of tensors that no other shape has.
    """
    try:
        return compile_at(found.at(values))
    except Neon8Error as error:
        unlike_others = isinstance(error, CompileError) and not error.details
        if 1 in values and unlike_others:
            return None
        said = found.said(values)
        text = f"with {said}, which is within --shape: {error.text}"
        hint = "leave it out by bounds with a step, as in 32..1280:32"
        hint += f", or calibrate with --shape {said}" if unlike_others else ""
        raise CompileError(f"{text}; {hint}", error.details) from error


@contextmanager
def _quiet(*, silent: bool) -> Iterator[None]:
    """Without what has been said of the first shape."""
    loggers = (LOG, LOG.getChild("guards"))

    def none(_record: logging.LogRecord) -> bool:
        return not silent

    for logger in loggers:
        logger.addFilter(none)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(none)


def alike(samples: Sequence[Sample]) -> list[Sample]:
    """Those with the structure of most.

    A dimension that shrinks to 1, and a pad to 0, may leave steps and axes out.
    """
    keys = [(structure(s.program), ones(s.program)) for s in samples]
    count = Counter(keys)
    best = max(count, key=lambda key: (count[key], -len(key[1])))
    return [s for s, key in zip(samples, keys, strict=True) if key == best]


def sample_values(symbols: Sequence[Symbol]) -> list[tuple[int, ...]]:
    """Values of the symbols, generic ones: large enough, and unlike one another."""
    chance = random.Random(0)  # noqa: S311 - the same for all
    columns = [_candidates(symbol) for symbol in symbols]
    if math.prod(map(len, columns)) <= SAMPLES:
        return list(product(*columns))
    drawn = [_varied(column, chance) for column in columns]
    for values in drawn:
        chance.shuffle(values)
    rows = [row for row in zip(*drawn, strict=True) if len(set(row)) == len(row)]
    while len(rows) < SAMPLES:
        row = tuple(chance.choice(column) for column in columns)
        rows += [row] if row not in rows else []
    return rows


def _varied(column: Sequence[int], chance: random.Random) -> list[int]:
    """As many values as samples that leave many rests when they are divided."""
    chosen: list[int] = []
    seen: set[tuple[int, int]] = set()
    while len(chosen) < SAMPLES:
        left = [v for v in column if v not in chosen] or list(column)
        chance.shuffle(left)
        best = max(left, key=lambda v: len(_rests(v) - seen))
        seen |= _rests(best)
        chosen.append(best)
    return chosen


def _rests(value: int) -> set[tuple[int, int]]:
    return {(divisor, value % divisor) for divisor in DIVISORS}


def _candidates(symbol: Symbol) -> list[int]:
    every = [v for v in symbol.values if v > 1]
    if len(every) < 2:
        # Beside a fixed one these are what shows that it may change.
        every += [symbol.hi + symbol.step * n for n in (1, 2, 3)]
    if len(every) <= MANY:
        return every
    first = next((i for i, v in enumerate(every) if v >= LARGE), 0)
    first = min(first, len(every) // 4)
    return every[first : first + SPREAD]


def check_values(
    found: Openings, sampled: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """The bounds, the largest that is not too large, and others between."""
    chance = random.Random(1)  # noqa: S311 - the same for all
    symbols = found.symbols
    lowest = tuple(s.lo for s in symbols)
    highest = [s.hi for s in symbols]
    while _values(found, highest) > MOST_VALUES and tuple(highest) != lowest:
        largest = max(range(len(symbols)), key=lambda i: highest[i] - symbols[i].lo)
        s = symbols[largest]
        steps = (highest[largest] - s.lo) // s.step // 2
        highest[largest] = s.lo + steps * s.step
    between = [
        tuple(
            s.lo + s.step * chance.randint(0, (top - s.lo) // s.step)
            for s, top in zip(symbols, highest, strict=True)
        )
        for _ in range(CHECKS)
    ]
    tried = dict.fromkeys((lowest, tuple(highest), *between))
    return [values for values in tried if values not in sampled]


def _values(found: Openings, values: Sequence[int]) -> int:
    return sum(math.prod(dims) for dims in found.at(values).values())


def comparable(sample: Sample, other: Sample) -> bool:
    """True if two differ in numbers only, so that sizes can be found from both."""
    return structure(sample.program) == structure(other.program) and ones(
        sample.program
    ) == ones(other.program)


def unlike(template: Program, sample: Sample) -> str:
    """Where the template is not what the network is at this shape, or "".

    Where axes of 1 have left steps out only results can be compared, and these are not
    the same where a rounding is left out, too.
    """
    made = at(template, sample.values)
    same = structure(made) == structure(sample.program)
    why = difference(made, sample.program) if same else ""
    if same and (not why or not has_new_ones(template, made)):
        return why
    name, ratio = agreement(made, sample.program)
    if ratio < (CLOSE if has_new_ones(template, made) else math.inf):
        return f"output {name!r} has other values"
    if ratio < math.inf:
        shape = " ".join(str(list(made.tensors[name].dims)) for name in made.inputs)
        LOG.warning(
            "with inputs of %s a dimension inside of the network is 1, and output %r "
            "is what a file for that shape alone gives but for roundings, %.0f dB",
            *(shape, name, ratio),
        )
    return ""


def has_new_ones(template: Program, made: Program) -> bool:
    """True if an open dimension is 1 here."""
    return any(
        size == 1 and number < 0
        for name, tensor in made.tensors.items()
        for size, number in zip(tensor.dims, template.tensors[name].dims, strict=True)
    )


def agreement(made: Program, fresh: Program) -> tuple[str, float]:
    """The output that agrees least on random inputs, and its SQNR in dB.

    It is infinite for the same bytes, and so it is for all then.
    """
    chance = np.random.default_rng(0)
    inputs = {name: _random(chance, fresh.tensors[name]) for name in fresh.inputs}
    ours, theirs = (oracle.run(program, inputs) for program in (made, fresh))
    ratios = {name: _ratio(ours[name], theirs[name]) for name in fresh.outputs}
    worst = min(ratios, key=lambda name: ratios[name])
    return worst, ratios[worst]


def _ratio(ours: Array, theirs: Array) -> float:
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return -math.inf
    if ours.tobytes() == theirs.tobytes():
        return math.inf
    want = theirs.astype(np.float64)
    signal = float(np.square(want).sum())
    noise = float(np.square(ours.astype(np.float64) - want).sum())
    known = 0 < signal < math.inf and 0 < noise < math.inf
    return 10 * math.log10(signal / noise) if known else -math.inf


def _random(chance: np.random.Generator, tensor: Tensor) -> Array:
    kind = np.dtype(tensor.dtype)
    if kind.kind == "f":
        return chance.standard_normal(tensor.dims).astype(kind)
    lo, hi = (0, 2) if tensor.dtype == "int32" else (tensor.lo, tensor.hi + 1)
    if tensor.dtype == "uint8":
        lo, hi = 0, 256
    return chance.integers(lo, hi, tensor.dims).astype(kind)
