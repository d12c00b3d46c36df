# SPDX-License-Identifier: Apache-2.0
"""Which size follows from which: expressions of the numbers seen at several shapes.

A network is compiled at some sample shapes, and each of its numbers is a vector with an
entry for each of them. The search goes from what is simple and near to what is not, and
what it finds is right for all samples; open_shapes.py tries it at other shapes, too.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial, reduce
from itertools import combinations_with_replacement, permutations
from math import gcd, prod

from neon8.ir.sizes import Size, combined, link

Vector = tuple[int, ...]
Build = Callable[[], int]

MOST_DIVISOR = 64
"""The largest divisor of a quotient that is rounded."""

NEAR = 24
"""How many sizes products and sums of three are made of."""


class SizeBook:
    """Sizes, each once, as they are found.

    A number below stands for itself, or for size i as -1 - i, as in a Program.
    """

    def __init__(self, samples: Sequence[Sequence[int]]) -> None:
        """samples: of each symbol its values, of each sample one."""
        self.sizes: list[Size] = []
        self._vectors: list[Vector] = []
        self._known: dict[Vector, int] = {}
        self.count = len(samples[0])
        self.symbols = tuple(
            self._append(Size("symbol", place), tuple(seen))
            for place, seen in enumerate(samples)
        )

    def _append(self, size: Size, vector: Vector) -> int:
        number = link(len(self.sizes))
        self.sizes.append(size)
        self._vectors.append(vector)
        self._known.setdefault(vector, number)
        return number

    def vector(self, number: int) -> Vector:
        """What a number is at each sample."""
        return self._vectors[link(number)] if number < 0 else (number,) * self.count

    def constant(self, value: int) -> int:
        """The number that is this everywhere: a size if it is negative."""
        return value if value >= 0 else self._place_of(value)

    def _place_of(self, value: int) -> int:
        vector = (value,) * self.count
        known = self._known.get(vector)
        return self._append(Size("number", value), vector) if known is None else known

    def make(self, kind: str, a: int, b: int) -> int:
        """The number that is `kind` of two others."""
        pairs = zip(self.vector(a), self.vector(b), strict=True)
        vector = tuple(combined(kind, *pair) for pair in pairs)
        if len(set(vector)) == 1:
            return self.constant(vector[0])
        if vector in self._known:
            return self._known[vector]
        a, b = (n if n < 0 else self._place_of(n) for n in (a, b))
        return self._append(Size(kind, link(a), link(b)), vector)

    def plus(self, number: int, amount: int) -> int:
        """The number and so much more."""
        if amount < 0:
            return self.make("subtract", number, -amount)
        return self.make("add", number, amount) if amount else number

    def times(self, number: int, factor: Fraction) -> int:
        """The number by a positive factor, which gives whole numbers."""
        if factor.numerator != 1:
            number = self.make("multiply", number, factor.numerator)
        if factor.denominator != 1:
            number = self.make("divide", number, factor.denominator)
        return number

    def tried(self, wanted: Vector, builds: Iterable[Build]) -> int | None:
        """The first of what is built that is as wanted; the others leave nothing."""
        for build in builds:
            mark = len(self.sizes)
            made = build()
            if self.vector(made) == wanted:
                return made
            for vector in self._vectors[mark:]:
                if link(self._known[vector]) >= mark:
                    del self._known[vector]
            del self.sizes[mark:], self._vectors[mark:]
        return None

    def known(self, wanted: Vector) -> int | None:
        """The number that is as wanted, if it is a constant or a size already."""
        if len(set(wanted)) == 1:
            return self.constant(wanted[0])
        return self._known.get(wanted)

    def found(
        self, wanted: Vector, near: Iterable[int] = (), *, far: bool = False
    ) -> int | None:
        """The number that is as wanted, None if nothing simple is.

        near: what it probably depends on.  far: look at all sizes there are, too.
        """
        known = self.known(wanted)
        if known is not None:
            return known
        first = [n for n in dict.fromkeys(near) if n < 0]
        wider = list(dict.fromkeys((*first, *self.symbols)))
        every = list(dict.fromkeys((*wider, *map(link, range(len(self.sizes))))))
        for sources in (first, wider, every)[: 3 if far else 2]:
            for search in (
                self._on_a_line,
                self._product,
                self._sum,
                self._quotient,
                self._rounded,
                partial(self._product, of=3),
            ):
                found = search(wanted, sources)
                if found is not None:
                    return found
        return None

    def _on_a_line(self, wanted: Vector, sources: Sequence[int]) -> int | None:
        """a x + c and c - x; a is whole or divides x without rest."""
        for x in sources:
            have = self.vector(x)
            slope, rest = line(have, wanted)
            fits = rest.denominator == 1 and all(
                slope * n + rest == want for n, want in zip(have, wanted, strict=True)
            )
            if fits and slope == -1:
                return self.make("subtract", self.constant(int(rest)), x)
            if fits and slope > 0 and exact(have, slope):
                return self.plus(self.times(x, slope), int(rest))
        return None

    def _rounded(self, wanted: Vector, sources: Sequence[int]) -> int | None:
        """(p x + c) / q rounded down, or a multiple of that and some more."""
        first = wanted[0]
        factor = gcd(*(t - first for t in wanted))
        more = first % factor
        quotients = [(t - more) // factor for t in wanted]
        for x in sources:
            have = self.vector(x)
            slope = line(have, wanted)[0] / factor
            for q in range(2, MOST_DIVISOR + 1):
                p = round(slope * q)
                if p < 1 or p > MOST_DIVISOR or gcd(p, q) > 1:
                    continue
                rests = [q * t - p * v for v, t in zip(have, quotients, strict=True)]
                least, most = max(rests), min(rests) + q - 1
                if least > most:
                    continue
                liked = [c for c in (0, q - 1) if least <= c <= most]
                c = (liked or [least if least > 0 else most])[0]
                amount = self.plus(self.times(x, Fraction(p)), c)
                part = self.make("divide", amount, q)
                return self.plus(self.times(part, Fraction(factor)), more)
        return None

    def _product(
        self, wanted: Vector, sources: Sequence[int], *, of: int = 2
    ) -> int | None:
        """The product of some sizes by a constant."""
        near = sources if of == 2 else sources[:NEAR]
        for factors in combinations_with_replacement(near, of):
            vectors = zip(*map(self.vector, factors), strict=True)
            product = list(map(prod, vectors))
            if min(*product, *wanted) < 1:
                continue
            ratios = {Fraction(t, v) for v, t in zip(product, wanted, strict=True)}
            if len(ratios) == 1:
                made = reduce(partial(self.make, "multiply"), factors)
                return self.times(made, ratios.pop())
        return None

    def _sum(self, wanted: Vector, sources: Sequence[int]) -> int | None:
        """x + y + c, x - y + c, x + y + z, or the larger one of two."""
        for x, y in permutations(sources, 2):
            rows = list(zip(self.vector(x), self.vector(y), wanted, strict=True))
            for kind in ("add", "subtract"):
                left = {t - combined(kind, a, b) for a, b, t in rows}
                if len(left) == 1:
                    return self.plus(self.make(kind, x, y), left.pop())
            if all(t == max(a, b) for a, b, t in rows):
                return self.make("maximum", x, y)
            z = self._known.get(tuple(t - a - b for a, b, t in rows))
            if z is not None:
                return self.make("add", self.make("add", x, y), z)
        return None

    def _quotient(self, wanted: Vector, sources: Sequence[int]) -> int | None:
        """x / y without rest."""
        for y in sources:
            rows = zip(self.vector(y), wanted, strict=True)
            x = self._known.get(tuple(t * v for v, t in rows))
            if x is not None and min(self.vector(y)) > 0:
                return self.make("divide", x, y)
        return None


def line(have: Vector, wanted: Vector) -> tuple[Fraction, Fraction]:
    """Slope and rest of the line through the two points that are farthest apart."""
    low, high = (have.index(end(have)) for end in (min, max))
    if have[low] == have[high]:
        return Fraction(0), Fraction(0)
    slope = Fraction(wanted[high] - wanted[low], have[high] - have[low])
    return slope, wanted[low] - slope * have[low]


def exact(have: Vector, slope: Fraction) -> bool:
    """True if the slope is whole, or divides all without rest."""
    return all(slope.numerator * v % slope.denominator == 0 for v in have)
