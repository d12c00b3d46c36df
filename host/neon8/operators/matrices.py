# SPDX-License-Identifier: Apache-2.0
"""Gemm and MatMul: those of a tensor and a constant matrix are 1x1 convolutions.

What the matrix multiplies are the channels. In ONNX they are the last axis, after
tokens or steps of time, or the last but one; what moves them to where a convolution has
them goes again where the next layer is another such.
"""

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.ir.graph import Node, Tensor
from neon8.ir.views import View
from neon8.operators import rearranged
from neon8.operators.composition import Parts
from neon8.operators.convolution import make_conv
from neon8.operators.family import Family
from neon8.operators.matmul import import_product
from neon8.operators.source import OnnxNode, Source, UnsupportedError

Made = Node | tuple[Node | Tensor, ...]


MATRIX = 2
"""Dimensions."""


def matmul(source: Source, node: OnnxNode) -> Made:
    """MatMul of two tensors, or of one of any rank with a constant, on either side."""
    side = constant_side(source, node)
    if side is None:
        return import_product(source, node)
    weight = source.required(node, side)
    shape = source.shape_of(node, node.inputs[1 - side])
    if not shape:
        raise source.failure(node, f"input {node.inputs[1 - side]!r} has no dimensions")
    while weight.ndim > MATRIX and len(weight) == 1:
        weight = weight[0]
    if weight.ndim > MATRIX:
        value = source.required(node, side)
        return import_product(source, node, constant=value, side=side)
    if side == 0:
        matrix = weight.reshape(-1, weight.shape[-1])
        dims = shape if len(shape) > 1 else (*shape, 1)
        return columns(source, node, matrix, np.zeros(len(matrix)), dims)
    matrix = weight.reshape(len(weight), -1).T
    dims = shape if len(shape) > 1 else (1, *shape)
    return rows(source, node, matrix, np.zeros(len(matrix)), dims)


def gemm(source: Source, node: OnnxNode) -> Made:
    """Gemm of two tensors, or with a constant matrix on either side and a bias."""
    side = constant_side(source, node)
    if side is None:
        return _gemm_of_tensors(source, node)
    matrix: FloatArray | DoubleArray = source.required(node, side)
    shape = source.shape_of(node, node.inputs[1 - side])
    alpha = node.real("alpha", 1.0)
    if alpha != 1:
        matrix = matrix.astype(np.float64) * alpha
    turned = [bool(node.integer(name, 0)) for name in ("transA", "transB")]
    # Made (O, K), by which the columns of a matrix (K, N) are multiplied.
    matrix = matrix.T if turned[side] == bool(side == 0) else matrix
    bias = _bias(source, node, len(matrix), side)
    _check(source, node, matrix, shape[side ^ turned[1 - side]])
    if side == 1 and not turned[0]:
        return rows(source, node, matrix, bias, shape)
    if side == 0 and not turned[1]:
        return columns(source, node, matrix, bias, shape)
    name, out = node.inputs[1 - side], node.outputs[0]
    if side == 1:  # (K, N) to (N, O)
        inner = rearranged.reshaped(name, (1, *shape), "matrices")
        result = rearranged.channels_first(out, (shape[1], len(matrix)))
        return between(node, matrix, bias, inner, result, data=0)
    # (N, K) to (O, N)
    dims = (shape[0], len(matrix))
    result = rearranged.rearranged(out, dims, "turned", dims[::-1], (1, 0))
    return between(node, matrix, bias, None, result, data=1)


def constant_side(source: Source, node: OnnxNode) -> int | None:
    """Which of the first two inputs is a constant matrix, None if both are tensors."""
    for side in (1, 0):
        if node.inputs[side] in source.constants:
            return side
    return None


def _gemm_of_tensors(source: Source, node: OnnxNode) -> Made:
    alpha = node.real("alpha", 1.0)
    if not 0 < alpha < np.inf or (len(node.inputs) > MATRIX and node.inputs[MATRIX]):
        text = "of two tensors has a C, or an alpha that is not above 0; export it as"
        raise source.failure(node, f"{text} MatMul, Mul and Add")
    turns = [bool(node.integer(name, 0)) for name in ("transA", "transB")]
    return import_product(source, node, (turns[0], turns[1]), alpha)


def rows(
    source: Source,
    node: OnnxNode,
    matrix: FloatArray | DoubleArray,
    bias: DoubleArray,
    dims: View,
) -> Made:
    """(..., K) to (..., O), which is matrix (O, K) times each row."""
    name, out = node.inputs[0], node.outputs[0]
    _check(source, node, matrix, dims[-1])
    if len(dims) == MATRIX:
        inner = _unless_so(source, node, name, dims)
        result = _unless_so(source, node, out, (dims[0], len(matrix)))
        return between(node, matrix, bias, inner, result, data=0)
    inner = rearranged.channels_first(name, dims)
    result = rearranged.channels_first(out, (*dims[:-1], len(matrix)))
    return between(node, matrix, bias, inner, result, data=0)


def columns(
    source: Source,
    node: OnnxNode,
    matrix: FloatArray | DoubleArray,
    bias: DoubleArray,
    dims: View,
) -> Made:
    """(..., K, N) to (..., O, N), which is matrix (O, K) times each column."""
    _check(source, node, matrix, dims[-2])
    batch = math.prod(dims[:-2])
    inner, result = (
        rearranged.reshaped(name, (batch, size, dims[-1]), "matrices")
        for name, size in ((node.inputs[1], dims[-2]), (node.outputs[0], len(matrix)))
    )
    return between(node, matrix, bias, inner, result, data=1)


def between(
    node: OnnxNode,
    matrix: FloatArray | DoubleArray,
    bias: DoubleArray,
    inner: Tensor | None,
    result: Tensor | None,
    *,
    data: int,
) -> Made:
    """The convolution, and the moves to `inner` and from `result` where they are."""
    conv = make_conv(node, matrix[:, :, np.newaxis, np.newaxis], bias, data=data)
    made: list[Node | Tensor] = []
    if inner is not None:
        made += [inner, rearranged.there(node.name, inner)]
        conv = replace(conv, inputs=(inner.name,))
    if result is None:
        return (*made, conv)
    conv = replace(conv, output=result.name, pre_activation=result.name)
    return (*made, result, conv, rearranged.back(node.name, result))


def _unless_so(source: Source, node: OnnxNode, name: str, dims: View) -> Tensor | None:
    """Tensor `name` as a matrix, None if it is one already."""
    same = source.shape_of(node, name) == dims
    return None if same else rearranged.reshaped(name, dims, "matrix")


def _check(
    source: Source, node: OnnxNode, matrix: FloatArray | DoubleArray, size: int
) -> None:
    if matrix.shape[1] != size:
        text = f"a matrix of {matrix.shape[1]} rows for vectors of {size} values"
        raise source.failure(node, text)


def _bias(source: Source, node: OnnxNode, channels: int, side: int) -> DoubleArray:
    """beta C, one value for each channel: of the columns of the result if side is 1."""
    c = source.weights(node, 2)
    if c is None:
        return np.zeros(channels)
    bias = c.astype(np.float64) * node.real("beta", 1.0)
    shape = (*(1,) * (MATRIX - bias.ndim), *bias.shape)
    shape = shape if side == 1 else shape[::-1]
    if len(shape) != MATRIX or shape[0] != 1 or shape[1] not in (1, channels):
        text = f"C {list(c.shape)} is not one value per output; export it as a MatMul"
        raise source.failure(node, f"{text} and an Add")
    return np.array(np.broadcast_to(bias.reshape(-1), (channels,)))


def with_sum(p: Parts) -> bool:
    """Gemm with a C that is no bias: one without it, and an Add."""
    source, node = p.source, p.node
    if len(node.inputs) <= MATRIX or not node.inputs[MATRIX]:
        return False
    side = constant_side(source, node)
    out = source.shape_of(node, node.outputs[0])
    with suppress(UnsupportedError):
        if side is not None:
            _bias(source, node, out[side], side)
            return False
    if not p.broadcasts(node.inputs[MATRIX], out):
        return False
    beta = node.real("beta", 1.0)
    kept = {name: v for name, v in node.attributes.items() if name != "beta"}
    product = p.result("Gemm")
    p.append("Gemm", node.inputs[:MATRIX], (product,), kept, layer=True)
    more = node.inputs[MATRIX]
    more = more if beta == 1 else p.add("Mul", more, beta)
    p.add("Add", product, more, output=node.outputs[0])
    return True


FAMILY = Family(
    imports={"Gemm": gemm, "MatMul": matmul}, compositions={"Gemm": with_sum}
)
