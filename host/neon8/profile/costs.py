# SPDX-License-Identifier: Apache-2.0
"""Instructions and modelled cycles of a part of a run, from a core's table.

A table says, of each kernel, what one of each term of work.py takes, and the same of
the C around kernels. `make costs` makes the tables: it counts training networks under
qemu, models their loops, and solves for what explains them.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neon8.errors import SetupError
from neon8.profile import work
from neon8.profile.trace import Call, Part

FOLDER = Path(__file__).resolve().parent / "tables"

Rates = Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]
"""Instructions and cycles of one of each term, by name."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Instructions that are executed, and the cycles that a model gives them."""

    instructions: float = 0.0
    cycles: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        """Both."""
        return Spent(self.instructions + other.instructions, self.cycles + other.cycles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Where a part spends its time.

    kernel: its inner loops. epilogue: what follows for each tile of a GEMM. around: the
    C that calls it, or does all itself. missing: the kernels and operations of which
    the table says nothing, and which are not in the sums.
    """

    kernel: Spent
    epilogue: Spent
    around: Spent
    missing: tuple[str, ...]

    @property
    def total(self) -> Spent:
        """All of it."""
        return self.kernel + self.epilogue + self.around


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a core takes.  kernels, around: by symbol, and by what work.keys says."""

    core: str
    kernels: Rates
    around: Rates

    def split(self, part: Part) -> Split:
        """What one part of a run takes."""
        kernel, epilogue, missing = Spent(), Spent(), []
        for call in part.calls:
            rates = self.kernels.get(call.kernel)
            if rates is None:
                missing.append(call.kernel)
                continue
            inner, rest = work.split_terms(call)
            kernel += times(call, rates, inner)
            epilogue += times(call, rates, rest)
        known = [self.around[key] for key in work.keys(part) if key in self.around]
        around = Spent()
        if known:
            terms = work.around(part)
            around = Spent(*(dot(rate, terms) for rate in known[0]))
        else:
            missing.append(part.operation)
        return Split(
            kernel=kernel,
            epilogue=epilogue,
            around=around,
            missing=tuple(dict.fromkeys(missing)),
        )


def times(
    call: Call, rates: tuple[Sequence[float], Sequence[float]], terms: Sequence[float]
) -> Spent:
    """What all calls of a kind take."""
    instructions, cycles = rates
    return Spent(call.count * dot(instructions, terms), call.count * dot(cycles, terms))


def dot(rates: Sequence[float], terms: Sequence[float]) -> float:
    """The sum of the products."""
    return sum(rate * term for rate, term in zip(rates, terms, strict=True))


@functools.cache
def table(core: str) -> Table:
    """The table of a core.  SetupError: it is missing or damaged."""
    path = FOLDER / f"{core}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        kernels, around = (
            {name: (tuple(a), tuple(b)) for name, (a, b) in found[key].items()}
            for key in ("kernels", "around")
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path}: not a table of costs: install neon8 again"
        ) from error
    return Table(core=core, kernels=kernels, around=around)
