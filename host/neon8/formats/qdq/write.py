# SPDX-License-Identifier: Apache-2.0
"""An int8 Program as an ONNX file with QuantizeLinear and DequantizeLinear nodes.

It is made from what the compiler lowered, not from the float file, so a tensor has a
Q/DQ pair exactly where our runtime rounds it: after the fused activation and the
residual sum, and nowhere else. Opset 13, or the first that has all operators: weights
int8 with one scale per output channel and zero points 0, bias int32 with scale_in *
scale_w, or float32 where the sum is not rounded, activations with one scale. They
are int8 where all are symmetric, which is what TensorRT takes, else uint8: only for
this has onnxruntime integer kernels on x86 without an option.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from neon8.compile import program
from neon8.compile.lower import lower
from neon8.compile.program import Conv2d, FloatArray, Opaque, Program, Tensor
from neon8.errors import CompileError, TableError
from neon8.formats.qdq import floats, functions, moves
from neon8.formats.qdq.nodes import Nodes
from neon8.formats.qdq.opaque import Originals, append, originals
from neon8.formats.qdq.windows import between_vectors, convolve, opset_of, pool
from neon8.graph.extend import batch_sizes
from neon8.graph.functions import Function
from neon8.graph.graph import Graph, Node, Pointwise
from neon8.graph.onnx_file import ModelLike
from neon8.graph.operators.pointwise import NEGATIVE
from neon8.quant.scale_table import ScaleTable

OPSET = 13
IR_VERSION = 7


def dumps(table: ScaleTable, graph: Graph, model: ModelLike) -> bytes:
    """The bytes of the ONNX file.  model: the float file that `graph` came from.

    CompileError: the table is of another network, or lacks a tensor.
    """
    made = lower(graph, table, opaque=True)
    opaque = any(isinstance(op, Opaque) for op in made.ops)
    layers: dict[str, Any] = {node.name: node for node in graph.nodes}
    opset = OPSET
    for op in made.ops:
        opset = opset_of(op, opset)
        if isinstance(op, program.Table):
            opset = functions.opset_of(_function(layers[op.name]), opset)
    return from_program(
        made,
        {
            op.name: _weight_scales(made, table, op)
            for op in made.ops
            if isinstance(op, Conv2d) and op.name in table.layers
        },
        layers,
        name=graph.name,
        batch=batch_sizes(model),
        opset=opset,
        kept=originals(model, least=opset) if opaque else None,
    )


def _weight_scales(program: Program, table: ScaleTable, op: Conv2d) -> FloatArray:
    """(O,), of the table; TableError where the compiler could not take them."""
    scales = np.array(table.layers[op.name].weight_scales, np.float32)
    if len(scales) > 1:  # a transposed convolution has each channel several times
        phases = len(op.bias) // len(scales)
        scales = np.repeat(scales.reshape(op.groups, 1, -1), phases, axis=1).reshape(-1)
    scales = np.broadcast_to(scales, op.bias.shape)
    product = np.float64(program.tensors[op.inputs[0]].scale) * scales
    out = program.tensors[op.output]
    if out.dtype == "int8":
        product = product / np.float64(out.scale)
    changed = np.flatnonzero(product.astype(np.float32) != op.multiplier)
    if changed.size:
        text = f"layer {op.name!r}: weight scale {changed[0]} is too small for int32"
        raise TableError(f"{table.model_name}: {text} sums; enlarge it in the table")
    return scales


def from_program(
    source: Program,
    weight_scales: Mapping[str, FloatArray],
    layers: Mapping[str, Any],
    *,
    name: str,
    batch: Mapping[str, int | str],
    opset: int,
    kept: Originals | None = None,
) -> bytes:
    """The bytes of the ONNX file.

    weight_scales: layer -> (O,).  layers: the nodes of the network, by name.  batch:
    input -> its first dimension.  kept: where the nodes of Opaque steps are, if there
    are such.  CompileError names a layer that cannot be expressed.
    """
    activations = [t for t in source.tensors.values() if t.dtype == "int8"]
    symmetric = all((t.lo, t.zero_point) == (-127, 0) for t in activations)
    n = Nodes(tensors=source.tensors, offset=0 if symmetric else 128)
    for op in source.ops:
        if isinstance(op, Opaque) and kept is not None:
            append(n, op, kept)
        else:
            _append(n, op, weight_scales, layers)
    out_batch = "N" if "N" in batch.values() else 1
    opsets = [helper.make_opsetid("", opset if kept is None else kept.opset)]
    opsets += [] if kept is None else kept.domains
    model = helper.make_model(
        helper.make_graph(
            n.nodes,
            name,
            [_info(source.tensors[key], batch[key]) for key in source.inputs],
            [_output(source.tensors[key], out_batch, kept) for key in source.outputs],
            [numpy_helper.from_array(array, key) for key, array in n.arrays.items()],
        ),
        producer_name="neon8",
        opset_imports=opsets,
        ir_version=max(IR_VERSION, 0 if kept is None else kept.ir_version),
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _info(tensor: Tensor, batch: int | str) -> onnx.ValueInfoProto:
    """batch: takes the place of a first dimension of 1."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    free = batch if tensor.dims[:1] == (1,) else None
    shape = tensor.dims if free is None else (free, *tensor.dims[1:])
    return helper.make_tensor_value_info(tensor.name, kind, shape)


def _output(
    tensor: Tensor, batch: int | str, kept: Originals | None
) -> onnx.ValueInfoProto:
    """As _info(); of a shape that only a run shows what the float file says."""
    info = _info(tensor, batch)
    if kept is not None and not tensor.dims:
        said = kept.outputs[tensor.name].type.tensor_type.shape
        info.type.tensor_type.shape.CopyFrom(said)
    return info


WithActivation = (
    program.Conv2d
    | program.Add
    | program.Multiply
    | program.Divide
    | program.InstanceNorm
    | program.Requantize
    | program.Sum
)

STEPS: dict[type[program.Op], Callable[[Nodes, Any], None]] = {
    program.Binary: floats.binary,
    program.Concat: moves.concat,
    program.Constant: floats.constant,
    program.Conv2dF32: floats.conv,
    program.Gather: moves.gather,
    program.Permute: moves.permute,
    program.PoolF32: floats.pool_f32,
    program.Reshape: moves.reshape,
    program.ResizeLinear: moves.resize_linear,
    program.Softmax: floats.softmax,
    program.Unary: floats.unary,
}
"""Those that say all about themselves."""


def _append(
    n: Nodes,
    op: program.Op,
    weight_scales: Mapping[str, FloatArray],
    layers: Mapping[str, Any],
) -> None:
    """The nodes of one step.  layers: of the network, by name."""
    match op:
        case program.Quantize():
            n.quantize(op.inputs[0], op.output)
        case program.Dequantize():
            n.dequantize(op.inputs[0], op.output)
        case program.Conv2d() if op.name not in weight_scales:
            _finish(n, n.real(op.inputs[0]), op)  # a PRelu alone
        case program.Conv2d():
            _conv(n, op, weight_scales[op.name])
        case program.Add():
            operator = "Sub" if op.residual_scale < 0 else "Add"
            _binary(n, operator, op)
        case program.Multiply():
            _binary(n, "Mul", op)
        case program.Divide():
            _binary(n, "Div", op)
        case program.Maximum():
            _binary(n, "Max", op)
        case program.Minimum():
            _binary(n, "Min", op)
        case program.Sum():
            _binary(n, "Mean" if layers[op.name].mean else "Sum", op)
        case program.Requantize():
            _finish(n, n.real(op.inputs[0]), op)
        case program.Pool():
            value = pool(n, op, n.real(op.inputs[0]))
            if n.tensors[op.output].dtype == "float32":
                n.named(value, op.output)
                return
            n.finish(_clamp(n, value, op.output, op.lo, op.hi), op.output)
        case program.Table():
            function = _function(layers[op.name])
            value = functions.append(n, function, n.real(op.inputs[0]), op.name)
            n.finish(value, op.output)
        case program.Lrn():
            size, alpha, beta, bias = op.values.tolist()
            value = n.node(
                "LRN",
                [n.real(op.inputs[0])],
                name=op.name,
                size=int(size),
                alpha=alpha,
                beta=beta,
                bias=bias,
            )
            n.finish(value, op.output)
        case program.InstanceNorm():
            _instance_norm(n, op)
        case program.Recurrent():
            floats.recurrent(n, op, layers[op.name])
        case _:
            STEPS[type(op)](n, op)


def _function(node: Node) -> Function:
    """What a table of `node` computes; around a pool of the least, the negative."""
    return node.function if isinstance(node, Pointwise) else NEGATIVE


def _binary(
    n: Nodes, operator: str, op: WithActivation | program.Maximum | program.Minimum
) -> None:
    values = [n.real(name) for name in op.inputs]
    value = n.node(operator, values, name=op.name)
    if isinstance(op, program.Maximum | program.Minimum):
        n.finish(value, op.output)
    else:
        _finish(n, value, op)


def _instance_norm(n: Nodes, op: program.InstanceNorm) -> None:
    source = n.real(op.inputs[0])
    gamma, beta = (
        n.array(f"{op.name}_{what}", values)
        for what, values in zip(
            ("scale", "shift"), np.split(op.values[:-1], 2), strict=True
        )
    )
    value = n.node(
        "InstanceNormalization",
        [source, gamma, beta],
        name=op.name,
        epsilon=float(op.values[-1]),
    )
    _finish(n, value, op)


def _finish(n: Nodes, value: str, op: WithActivation) -> None:
    """Leaky slope and clamp of an op, then the Q/DQ pair of its output."""
    slopes = op.slopes if isinstance(op, program.Conv2d) else np.array([op.slope])
    if slopes is not None and (slopes != 1).any():
        if (slopes == slopes[0]).all():
            value = n.node("LeakyRelu", [value], alpha=float(slopes[0]))
        else:
            column = slopes.reshape(-1, *(1,) * (n.tensors[op.output].rank - 2))
            slope = n.array(f"{op.name}_slope", column.astype(np.float32))
            value = n.node("PRelu", [value, slope])
    n.finish(_clamp(n, value, op.output, op.lo, op.hi), op.output)


def _clamp(n: Nodes, value: str, output: str, lo: int, hi: int) -> str:
    """The activation that lo and hi stand for; the ends of the scheme need none.

    QuantizeLinear ends at -128 where the symmetric scheme ends at -127: one step, for
    which a Clip would keep onnxruntime and TensorRT from using integer kernels.
    """
    out = n.tensors[output]
    if (lo, hi) == (out.zero_point, out.hi):
        return n.node("Relu", [value])
    return value if (lo, hi) == (out.lo, out.hi) else n.clip(value, output, lo, hi)


def _conv(n: Nodes, op: program.Conv2d, weight_scale: FloatArray) -> None:
    """Conv, or Gemm between vectors, on int8 weights; the bias is int32, or float."""
    source = n.tensors[op.inputs[0]]
    weights = op.weights.transpose(0, 3, 1, 2)
    if between_vectors(n, op):
        weights = weights[:, :, 0, 0]
    w = n.constant(f"{op.name}_weight", weights, weight_scale)
    if op.bias_f32 is not None:
        b = n.array(f"{op.name}_bias", op.bias_f32)
        n.named(convolve(n, op, n.real(op.inputs[0]), (w, b)), op.output)
        return
    scale = np.float32(source.scale) * weight_scale
    b = n.constant(f"{op.name}_bias", _bias(op, source, scale), scale)
    value = convolve(n, op, n.real(op.inputs[0]), (w, b))
    if len(op.inputs) > 1:
        operator = "Sub" if op.residual_scale < 0 else "Add"
        value = n.node(operator, [value, n.real(op.inputs[1])])
    _finish(n, value, op)


def _bias(
    op: program.Conv2d, source: Tensor, scale: FloatArray
) -> npt.NDArray[np.int32]:
    """rne(bias / scale), (O,): what the program has without its zero point  (5)."""
    sums = op.weights.astype(np.int64).sum(axis=(1, 2, 3))
    whole = op.bias.astype(np.int64) + source.zero_point * sums
    bad = np.flatnonzero(np.abs(whole) >= 2**31)
    if bad.size:
        raise CompileError(
            f"layer {op.name!r}: channel {bad[0]}: its bias does not fit int32 with "
            f"scale {scale[bad[0]]:.4g}; enlarge its weight scale in the table"
        )
    result: npt.NDArray[np.int32] = whole.astype(np.int32)
    return result
