# SPDX-License-Identifier: Apache-2.0
"""Indices that a run is given, whatever they are: never a wild read or write  (37)."""

import numpy as np
import pytest

from agreement import agreed
from neon8.ir.program import Tensor
from neon8.operators.indexed import Places
from programs import program, step

ROWS = 5
WILD = (-(2**31), 2**31 - 1, -1, 0, ROWS, ROWS - 1, -ROWS, -ROWS - 1, 2**16, -(2**16))
TYPES = {
    "int8": {"scale": np.float32(0.1)},
    "int16": {"scale": np.float32(0.1), "lo": -32768, "hi": 32767},
    "float32": {},
    "int32": {},
}
PLACES = {
    "rows": Places(outer=3, count=10, inner=7, sizes=(ROWS,)),
    "rows of blocks": Places(outer=3, count=10, inner=7, sizes=(ROWS,), by_outer=True),
    "values": Places(
        outer=3, count=10, inner=7, sizes=(ROWS,), by_outer=True, by_inner=True
    ),
    "channels": Places(outer=3, count=10, inner=1, sizes=(ROWS,), by_outer=True),
    "tuples": Places(outer=2, count=10, inner=3, sizes=(2, ROWS, 2)),
    "eight numbers": Places(outer=1, count=10, inner=1, sizes=(1, 2, 1, 1, 1, 1, 1, 1)),
}


def tensor(name, dims, dtype):
    return Tensor(name=name, dims=dims, dtype=dtype, **TYPES.get(dtype, {}))


def values(rng, dims, dtype):
    """Anything, extremes too."""
    if dtype == "float32":
        odd = rng.choice([np.nan, np.inf, -0.0, 1e-40], dims)
        return np.where(rng.random(dims) < 0.1, odd, rng.normal(0, 9, dims)).astype("f")
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, dims, dtype, endpoint=True)


def steps(places, dtype):
    """(step, inputs, dimensions of the output) of each kind."""
    listed = places.listed()
    functions = ["none", "minimum", "maximum"]
    functions += ["add", "multiply"] if dtype in ("float32", "int32") else []
    yield step("Take", "y", "x i", indices=listed), places.others
    for function in functions:
        yield (
            step("Put", "y", "x i u", indices=listed, function=function),
            places.data,
        )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PLACES)
def test_wild_indices(name, dtype):
    """The library computes what the oracle does, which clamps in int64."""
    places = PLACES[name]
    rng = np.random.default_rng(7)
    dims = {"x": places.data, "i": places.indices, "u": places.others}
    for op, made in steps(places, dtype):
        inputs = {name: dims[name] for name in op.inputs}
        types = {"i": "int32"}
        tensors = [tensor(n, inputs[n], types.get(n, dtype)) for n in inputs]
        tensors.append(tensor("y", made, dtype))
        net = program(tensors, [op], " ".join(inputs), "y")
        given = {n: values(rng, inputs[n], dtype) for n in inputs}
        given["i"] = rng.choice(WILD, inputs["i"]).astype(np.int32)
        agreed(net, given, isas=[None])


def test_what_they_mean():
    """-1 is the last row; what is outside is the nearest row."""
    places = Places(outer=1, count=10, inner=1, sizes=(ROWS,))
    op = step("Take", "y", "x i", indices=places.listed())
    ends = [tensor("x", (1, ROWS), "int32"), tensor("i", (1, 10), "int32")]
    net = program([*ends, tensor("y", (1, 10), "int32")], [op], "x i", "y")
    x = np.arange(ROWS, dtype=np.int32)[None] * 10
    found = agreed(net, {"x": x, "i": np.int32([WILD])})["y"]
    assert found.tolist() == [[0, 40, 40, 0, 40, 40, 0, 0, 40, 0]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("function", ["minimum", "maximum"])
def test_the_best_of_all_values(dtype, reverse, function):
    """Every value of a type, many of them equal, and all there are in order."""
    rng = np.random.default_rng(3)
    x = values(rng, (4, 300), dtype)
    x[1], x[2, 100:] = x[1, 0], x[2, :200]
    op = step("Top", "y", "x", function=function, reverse=reverse)
    for count in (1, 7, 300):
        tensors = [tensor("x", (4, 300), dtype), tensor("y", (4, count), "int32")]
        net = program(tensors, [op], "x", "y")
        found = agreed(net, {"x": x})["y"]
        for row, best in zip(x, found, strict=True):
            taken = row[best].astype(np.float64)
            taken = -taken if function == "maximum" else taken
            assert np.array_equal(taken, np.sort(taken), equal_nan=True)
            assert len(set(best.tolist())) == count
