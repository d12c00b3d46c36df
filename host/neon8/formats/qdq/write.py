# SPDX-License-Identifier: Apache-2.0
"""An int8 Program as an ONNX file with QuantizeLinear and DequantizeLinear nodes.

It is made from what the compiler lowered, not from the float file, so a tensor has a
Q/DQ pair exactly where our runtime rounds it: after the fused activation and the
residual sum, and nowhere else. Opset 13: weights int8 with one scale per output channel
and zero points 0, bias int32 with scale_in * scale_w, activations with one scale. They
are int8 where all are symmetric, which is what TensorRT takes, else uint8: only for
this has onnxruntime integer kernels on x86 without an option.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from neon8.compile import program
from neon8.compile.lower import lower
from neon8.compile.program import Conv2d, FloatArray, Opaque, Program, Tensor
from neon8.errors import CompileError, TableError
from neon8.formats.qdq import moves
from neon8.formats.qdq.nodes import Nodes
from neon8.formats.qdq.opaque import Originals, append, originals
from neon8.graph.extend import batch_sizes
from neon8.graph.graph import Graph
from neon8.graph.onnx_file import ModelLike
from neon8.quant.scale_table import ScaleTable

OPSET = 13
IR_VERSION = 7


def dumps(table: ScaleTable, graph: Graph, model: ModelLike) -> bytes:
    """The bytes of the ONNX file.  model: the float file that `graph` came from.

    CompileError: the table is of another network, or lacks a tensor.
    """
    program = lower(graph, table, opaque=True)
    opaque = any(isinstance(op, Opaque) for op in program.ops)
    return from_program(
        program,
        {
            op.name: _weight_scales(program, table, op)
            for op in program.ops
            if isinstance(op, Conv2d)
        },
        name=graph.name,
        batch=batch_sizes(model),
        kept=originals(model, least=OPSET) if opaque else None,
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
    *,
    name: str,
    batch: Mapping[str, int | str],
    kept: Originals | None = None,
) -> bytes:
    """The bytes of the ONNX file.

    weight_scales: layer -> (O,).  batch: input -> its first dimension.  kept: where the
    nodes of Opaque steps are, if there are such.  CompileError
    names a layer that opset 13 cannot express.
    """
    activations = [t for t in source.tensors.values() if t.dtype == "int8"]
    symmetric = all((t.lo, t.zero_point) == (-127, 0) for t in activations)
    n = Nodes(tensors=source.tensors, offset=0 if symmetric else 128)
    for op in source.ops:
        if isinstance(op, Opaque) and kept is not None:
            append(n, op, kept)
        else:
            _append(n, op, weight_scales)
    out_batch = "N" if "N" in batch.values() else 1
    opsets = [helper.make_opsetid("", OPSET if kept is None else kept.opset)]
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


def _append(n: Nodes, op: program.Op, weight_scales: Mapping[str, FloatArray]) -> None:
    """The nodes of one step."""
    match op:
        case program.Quantize():
            n.quantize(op.inputs[0], op.output)
        case program.Dequantize():
            n.dequantize(op.inputs[0], op.output)
        case program.Conv2d():
            _conv(n, op, weight_scales[op.name])
        case program.Add():
            value = n.node("Add", [n.real(name) for name in op.inputs], name=op.name)
            _finish(n, value, op)
        case program.Requantize():
            _finish(n, n.real(op.inputs[0]), op)
        case program.Pool():
            _pool(n, op)
        case program.Concat():
            moves.concat(n, op)
        case program.Reshape():
            moves.reshape(n, op)
        case program.Permute():
            moves.permute(n, op)
        case program.Gather():
            moves.gather(n, op)
        case program.ResizeLinear():
            moves.resize_linear(n, op)
        case program.Softmax():
            source = [op.inputs[0]]
            kind = "LogSoftmax" if op.function == "log" else "Softmax"
            n.node(kind, source, name=op.name, output=op.output, axis=op.axis)
        case _:
            kind = type(op).__name__
            raise CompileError(f"layer {op.name!r}: {kind} has no Q/DQ form yet")


def _dims(tensor: Tensor) -> tuple[int, ...]:
    return tensor.dims


def _finish(
    n: Nodes, value: str, op: program.Conv2d | program.Add | program.Requantize
) -> None:
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
    """Conv, or Gemm between vectors, on int8 weights and int32 bias."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    scale_in = np.float32(source.scale)
    weights = op.weights.transpose(0, 3, 1, 2)
    bias_scale = scale_in * weight_scale
    bias = _bias(op, source, bias_scale)
    vectors = source.rank == out.rank == 2 and weights.shape[2:] == (1, 1)
    if vectors and op.groups == 1:
        weights = weights[:, :, 0, 0]
    w = n.constant(f"{op.name}_weight", weights, weight_scale)
    b = n.constant(f"{op.name}_bias", bias, bias_scale)
    x = n.real(op.inputs[0])
    if vectors and op.groups == 1:
        value = n.node("Gemm", [x, w, b], name=op.name, transB=1)
    else:
        if source.rank != 4:
            x = n.reshape(x, source.shape)
        value = n.node(
            "Conv",
            [x, w, b],
            name=op.name,
            kernel_shape=list(weights.shape[2:]),
            strides=list(op.strides),
            pads=list(op.pads),
            dilations=list(op.dilations),
            group=op.groups,
        )
        if out.rank != 4:
            value = n.reshape(value, _dims(out))
    if out.dtype == "float32":
        n.rename_last(op.output)
        return
    if len(op.inputs) > 1:
        value = n.node("Add", [value, n.real(op.inputs[1])])
    _finish(n, value, op)


def _bias(
    op: program.Conv2d, source: Tensor, scale: FloatArray
) -> npt.NDArray[np.int32]:
    """rne(bias / scale), (O,): what the program has without its zero point  (5)."""
    if op.bias_f32 is None:
        sums = op.weights.astype(np.int64).sum(axis=(1, 2, 3))
        whole = op.bias.astype(np.int64) + source.zero_point * sums
    else:
        # Far beyond int32 it does not matter how far.
        real = np.rint(op.bias_f32.astype(np.float64) / scale)
        whole = np.clip(real, -(2.0**40), 2.0**40).astype(np.int64)
    bad = np.flatnonzero(np.abs(whole) >= 2**31)
    if bad.size:
        raise CompileError(
            f"layer {op.name!r}: channel {bad[0]}: its bias does not fit int32 with "
            f"scale {scale[bad[0]]:.4g}; enlarge its weight scale in the table"
        )
    result: npt.NDArray[np.int32] = whole.astype(np.int32)
    return result


def _pool(n: Nodes, op: program.Pool) -> None:
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    if op.kind == "average" and op.dilations != (1, 1):
        raise CompileError(
            f"layer {op.name!r}: opset {OPSET} has no average pool with dilations"
        )
    x = n.real(op.inputs[0])
    if source.rank != 4:
        x = n.reshape(x, source.shape)
    kind = op.kind.capitalize()
    whole = op.kernel == source.shape[2:] and out.shape[2:] == (1, 1)
    if whole and op.pads == (0, 0, 0, 0) and op.dilations == (1, 1):
        value = n.node(f"Global{kind}Pool", [x], name=op.name)
    else:
        extra = (
            {"count_include_pad": int(op.count_pad)}
            if op.kind == "average"
            else {"dilations": list(op.dilations)}
        )
        value = n.node(
            f"{kind}Pool",
            [x],
            name=op.name,
            kernel_shape=list(op.kernel),
            strides=list(op.strides),
            pads=list(op.pads),
            ceil_mode=int(_ceils(op, source, out)),
            **extra,
        )
    if out.rank != 4:
        value = n.reshape(value, _dims(out))
    n.finish(_clamp(n, value, op.output, op.lo, op.hi), op.output)


def _ceils(op: program.Pool, source: Tensor, out: Tensor) -> bool:
    """True if the output has a window that rounding down would leave out."""
    for axis in (0, 1):
        reach = op.dilations[axis] * (op.kernel[axis] - 1) + 1
        room = source.shape[2 + axis] + op.pads[axis] + op.pads[2 + axis] - reach
        if room // op.strides[axis] + 1 != out.shape[2 + axis]:
            return True
    return False
