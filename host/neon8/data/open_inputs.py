# SPDX-License-Identifier: Apache-2.0
"""The inputs of an ONNX network whose samples have shapes of their own."""

from os import PathLike

from neon8.data.inputs import Input, of_shapes, with_bounds
from neon8.errors import GraphError
from neon8.graph.onnx_file import Shapes, declared, symbols_of
from neon8.settings.shapes import Open, is_open


def onnx_inputs(model: str | PathLike[str], shapes: Shapes) -> dict[str, Input]:
    """The inputs by name, with bounds where `shapes` has some.  GraphError."""
    dims: dict[str, tuple[int | Open, ...]] = {}
    dtypes, free = {}, set()
    known = declared(model)
    for name, (dtype, sizes) in known.items():
        given = shapes.get(name)
        if given is None:
            if sizes and not isinstance(sizes[0], int):
                free.add(name)
            every = (1, *sizes[1:]) if name in free else sizes
            given = tuple(n for n in every if isinstance(n, int))
        if len(given) != len(sizes):
            text = f"input {name!r} has dimensions {list(sizes)}; give them by --shape"
            raise GraphError(f"{model}: {text}")
        pairs = zip(given, sizes, strict=True)
        if any(isinstance(n, int) and n != one for one, n in pairs):
            text = f"input {name!r} has dimensions {list(sizes)}, which cannot become"
            raise GraphError(f"{model}: {text} {'x'.join(map(str, given))}")
        if not dtype:
            text = f"input {name!r} is no tensor of numbers; cut the network after it"
            raise GraphError(f"{model}: {text}")
        dims[name], dtypes[name] = given, dtype
    for unknown in shapes.keys() - known.keys():
        if not is_open({unknown: shapes[unknown]}):  # a tensor that nothing else tells
            continue
        names = ", ".join(map(repr, known))
        text = f"has no input {unknown!r} to give a shape; its inputs are {names}"
        raise GraphError(f"{model}: {text}")
    least = {
        name: tuple(n if isinstance(n, int) else n.lo for n in given)
        for name, given in dims.items()
    }
    inputs = of_shapes(least, dtypes, free=free)
    return with_bounds(inputs, dims, symbols_of(model, dims))
