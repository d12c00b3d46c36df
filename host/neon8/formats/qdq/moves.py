# SPDX-License-Identifier: Apache-2.0
"""Steps that move values, and linear resize, as ONNX nodes."""

import numpy as np

from neon8.compile import program
from neon8.compile.program import FloatArray, Int32Array, Tensor
from neon8.formats.qdq.nodes import Array, Nodes
from neon8.graph.operators.resize import COORDINATES, between


def reshape(n: Nodes, op: program.Reshape) -> None:
    """A Reshape."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    _end(n, _shaped(n, _value(n, source), source.dims, out.dims), out)


def concat(n: Nodes, op: program.Concat) -> None:
    """A Concat, between images where the dimensions are not those that it counts."""
    out = n.tensors[op.output]
    sources = [n.tensors[name] for name in op.inputs]
    direct = all(len(t.dims) == len(out.dims) <= 4 for t in sources)
    direct = direct and op.axis < len(out.dims)
    values = [
        _value(n, t) if direct else _shaped(n, _value(n, t), t.dims, t.shape)
        for t in sources
    ]
    value = n.node("Concat", values, name=op.name, axis=op.axis)
    _end(n, value if direct else _shaped(n, value, out.shape, out.dims), out)


def permute(n: Nodes, op: program.Permute) -> None:
    """Reshape, Transpose, Reshape; a batch of one may be any."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    view, order = (row.tolist() for row in op.indices)
    kept = [axis for axis in order if view[axis] > 1]
    sizes = [(axis, view[axis]) for axis in sorted(kept)]
    place = {axis: at + 1 for at, (axis, _) in enumerate(sizes)}
    shape = (1, *(size for _, size in sizes))
    turn = [0, *(place[axis] for axis in kept)]
    value = _shaped(n, _value(n, source), source.dims, shape)
    value = n.node("Transpose", [value], name=op.name, perm=turn)
    turned = tuple(shape[axis] for axis in turn)
    _end(n, _shaped(n, value, turned, out.dims), out)


def gather(n: Nodes, op: program.Gather) -> None:
    """A Gather along each axis, of what is padded first where a constant is taken."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    value = _shaped(n, _value(n, source), source.dims, source.shape)
    ends = np.cumsum(out.shape)[:-1]
    for axis, taken in enumerate(np.split(op.indices, ends)):
        size = source.shape[axis]
        if np.array_equal(taken, np.arange(size)):
            continue
        if (taken < 0).any():
            value = _with_constant(n, value, axis, _real(op.fill, out))
            taken = np.where(taken < 0, size, taken)  # noqa: PLW2901
        indices = n.array(f"{op.output}_indices", taken.astype(np.int64))
        value = n.node("Gather", [value, indices], axis=axis)
    _end(n, _shaped(n, value, out.shape, out.dims), out)


def _with_constant(n: Nodes, value: str, axis: int, fill: float) -> str:
    """One more place at the end of the axis, of four, with a constant in it."""
    pads = np.zeros(8, np.int64)
    pads[4 + axis] = 1
    constant = n.array(f"{value}_fill", np.array(fill, np.float32))
    return n.node("Pad", [value, n.array(f"{value}_pads", pads), constant])


def _real(fill: np.float32, out: Tensor) -> float:
    if out.dtype == "float32":
        return float(fill)
    return float((np.float64(fill) - out.zero_point) * np.float64(out.scale))


def resize_linear(n: Nodes, op: program.ResizeLinear) -> None:
    """A Resize, or weighted sums of two columns, then of two rows  (17)."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    value = _shaped(n, _value(n, source), source.dims, source.shape)
    height = out.shape[2]
    rows, columns = np.split(op.indices.reshape(-1, 2), [height])
    row_weights, column_weights = np.split(op.values.reshape(-1, 2), [height])
    wanted = rows, row_weights, columns, column_weights
    mode = _coordinates(source, out, wanted)
    if mode is None:
        value = _between(n, value, 3, columns, column_weights)
        value = _between(n, value, 2, rows, row_weights.reshape(-1, 2, 1))
    else:
        scales = _scales(source, out)
        if np.array_equal(
            np.floor(source.shape * scales.astype(np.float64)), out.shape
        ):
            size = ["", n.array(f"{op.output}_scales", scales)]
        else:
            size = [
                "",
                "",
                n.array(f"{op.output}_sizes", np.array(out.shape, np.int64)),
            ]
        value = n.node(
            "Resize",
            [value, *size],
            name=op.name,
            mode="linear",
            coordinate_transformation_mode=mode,
        )
    _end(n, _shaped(n, value, out.shape, out.dims), out)


def _scales(source: Tensor, out: Tensor) -> FloatArray:
    """Of a Resize, (4,)."""
    before, after = (np.array(t.shape, np.float32) for t in (source, out))
    scales: FloatArray = after / before
    return scales


def _coordinates(source: Tensor, out: Tensor, wanted: tuple[Array, ...]) -> str | None:
    """The mode of a Resize that has these places and weights; None: there is none."""
    scales = _scales(source, out)
    for mode in COORDINATES:
        rows, columns = (
            between(source.shape[axis], out.shape[axis], scales[axis], mode)
            for axis in (2, 3)
        )
        if all(map(np.array_equal, (*rows, *columns), wanted)):
            return mode
    return None


def _between(
    n: Nodes, value: str, axis: int, pairs: Int32Array, weights: FloatArray
) -> str:
    terms = []
    for side in (0, 1):
        at = n.array(f"{value}_at", pairs[:, side].astype(np.int64))
        share = n.array(f"{value}_share", weights[:, side])
        terms.append(n.node("Mul", [n.node("Gather", [value, at], axis=axis), share]))
    return n.node("Add", terms)


def _value(n: Nodes, tensor: Tensor) -> str:
    """The float values of a tensor."""
    return tensor.name if tensor.dtype == "float32" else n.real(tensor.name)


def _shaped(
    n: Nodes, value: str, dims: tuple[int, ...], wanted: tuple[int, ...]
) -> str:
    """`value` of shape `dims` with other dimensions; a batch of one may be any."""
    if dims == wanted:
        return value
    if dims[:1] == wanted[:1]:
        return n.reshape(value, wanted)
    shape = n.array(f"{value}_shape", np.array(wanted, np.int64))
    return n.node("Reshape", [value, shape])


def _end(n: Nodes, value: str, out: Tensor) -> None:
    """`value` becomes tensor `out` of the program."""
    if out.dtype == "float32":
        n.named(value, out.name)
    else:
        n.finish(value, out.name)
