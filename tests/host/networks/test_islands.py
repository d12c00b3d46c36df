# SPDX-License-Identifier: Apache-2.0
"""What counts as a float island, on programs made by hand."""

import pytest

from bench.networks.measure import islands
from neon8.ir.program import Op, Program, Tensor


class Conv(Op):
    """Some product."""


class Wave(Op):
    """Some float function."""


class Convert(Op):
    """Between int8 and float32."""


FIRST = (Conv, "first", "x", "a", "int8")
LAST = (Conv, "last", "e", "f", "int8")
UP = (Convert, "up", "a", "b", "float32")
BETWEEN = (
    UP,
    (Wave, "w1", "b", "c", "float32"),
    (Wave, "w2", "c", "d", "float32"),
    (Convert, "down", "d", "e", "int8"),
)
BRANCHES = (
    FIRST,
    UP,
    (Wave, "w1", "b", "c1", "float32"),
    (Wave, "w2", "b", "c2", "float32"),
)
APART = (
    (Convert, "down1", "c1", "e", "int8"),
    (Convert, "down2", "c2", "d2", "int8"),
    LAST,
    (Conv, "end", "d2", "e2", "int8"),
)
JOINED = ((Wave, "sum", "c1 c2", "d", "float32"), BETWEEN[-1], LAST)
WAVE = "wave (no int8 form)"


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ((FIRST, *BETWEEN, LAST), [WAVE]),
        ((FIRST, *BETWEEN), []),  # a head
        ((*BETWEEN, LAST), []),  # what comes before
        ((FIRST, UP, (Convert, "down", "b", "e", "int8"), LAST), []),
        ((*BRANCHES, *APART), [WAVE, "wave"]),
        ((*BRANCHES, *JOINED), [WAVE]),
    ],
)
def test_islands_are_float_steps_between_products(steps, found):
    names = {name for _, _, sources, output, _ in steps for name in sources.split()}
    dtypes = dict.fromkeys(names, "int8") | {step[3]: step[4] for step in steps}
    program = Program(
        source_digest="",
        tensors={n: Tensor(name=n, dims=(1,), dtype=t) for n, t in dtypes.items()},
        ops=tuple(
            kind(name=name, inputs=tuple(sources.split()), output=output)
            for kind, name, sources, output, _ in steps
        ),
        inputs=("x",),
        outputs=(steps[-1][3],),
        islands={"w1": "no int8 form"},
    )
    assert islands(program, {"first", "last", "end"}) == found
    with pytest.raises(ValueError, match="none of the products"):
        islands(program, {"another"})
