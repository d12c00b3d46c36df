# SPDX-License-Identifier: Apache-2.0
"""Attention as two products, and a softmax between them."""

import math

import numpy as np

from neon8.arrays import DoubleArray
from neon8.operators.composition import Parts
from neon8.operators.family import Family
from neon8.operators.source import OnnxNode

LOWEST = {"float32": -3e38, "float16": -6e4}
"""What stands for -inf: constants are finite."""


FLOAT_TYPES = {"float32": 1, "float16": 10}
"""As ONNX numbers them."""


def attention(p: Parts) -> bool:
    """Attention with any mask; sequences of which a constant says how long they are."""
    source, node = p.source, p.node
    kind = source.types.get(node.inputs[0], "")
    if kind not in LOWEST:
        return False
    q, k, v = (_heads(p, at) for at in range(3))
    (batch, heads, rows, width), (_, groups, _, _), (*_, depth) = q[1], k[1], v[1]
    keys, values = _with_past(p, k[0], 4, output=1), _with_past(p, v[0], 5, output=2)
    past = source.shape_of(node, node.inputs[4])[2] if _has(node, 4) else 0
    length = past + k[1][2]
    fixed = _fixed_mask(p, (rows, length), past)
    running = _has(node, 3) and node.inputs[3] not in source.constants
    mode, wanted = node.integer("qk_matmul_output_mode", 0), _output(node, 3)
    finite = bool(np.isfinite(fixed).all())
    if heads % groups or np.isneginf(fixed.max(axis=-1)).any():
        return False  # or what has no keys, whose result is 0
    if wanted and mode == 2 and not finite:
        return False
    if running and source.shapes[node.inputs[3]][-1:] != (length,):
        return False

    # The heads that have the same keys are one with more rows.
    apart = [batch, heads, rows, length]
    joined = [batch, groups, heads // groups * rows]
    query = q[0] if heads == groups else p.add("Reshape", q[0], [*joined, width])
    turned = p.add("Transpose", keys, perm=(0, 1, 3, 2))
    scores = p.add("MatMul", query, turned)
    if heads != groups:
        scores = p.add("Reshape", scores, apart)
    scale = node.real("scale", 0.0) or 1 / math.sqrt(width)
    scores = p.add("Mul", scores, np.array(scale, kind))
    stages = [scores, scores]
    softcap = node.real("softcap", 0.0)
    if softcap:
        cap = np.array(softcap, kind)
        scores = stages[1] = p.add("Mul", p.add("Tanh", p.add("Div", scores, cap)), cap)
    begin = len(p.nodes)
    if running:
        scores = p.add("Add", scores, _running_mask(p, kind))
    if fixed.any():
        scores = p.add("Add", scores, np.maximum(fixed, LOWEST[kind]).astype(kind))
    # On a grid of what is masked nothing would be left of the rest.
    p.hidden.update(made for part in p.nodes[begin:] for made in part.outputs)
    stages += [scores, p.add("Softmax", scores, axis=-1)]
    if wanted:
        p.add("Identity", stages[mode], output=wanted)
    shares = stages[3]
    if heads != groups:
        shares = p.add("Reshape", shares, [*joined, length])
    made = p.add("MatMul", shares, values)
    if heads != groups:
        made = p.add("Reshape", made, [batch, heads, rows, depth])
    shape = source.shape_of(node, node.outputs[0])
    if len(shape) == 3:
        made = p.add("Transpose", made, perm=(0, 2, 1, 3))
    p.add("Reshape", made, shape, output=node.outputs[0])
    return True


def _has(node: OnnxNode, index: int) -> bool:
    return index < len(node.inputs) and node.inputs[index] != ""


def _output(node: OnnxNode, index: int) -> str:
    """The name of an output, "" if it is not there."""
    return node.outputs[index] if index < len(node.outputs) else ""


def _heads(p: Parts, at: int) -> tuple[str, tuple[int, ...]]:
    """Input `at` as (batch, heads, rows, width), and this shape."""
    name = p.node.inputs[at]
    shape = p.shape_of(name)
    if len(shape) != 3:
        return name, shape
    heads = p.node.integer("kv_num_heads" if at else "q_num_heads", 1)
    parted = [*shape[:2], heads, shape[2] // heads]
    value = p.add("Reshape", name, parted)
    batch, rows, _, width = parted
    return p.add("Transpose", value, perm=(0, 2, 1, 3)), (batch, heads, rows, width)


def _with_past(p: Parts, value: str, at: int, *, output: int) -> str:
    """What stands in input `at`, then `value`; output number `output` of the node."""
    name = _output(p.node, output)
    if _has(p.node, at):
        return p.add("Concat", p.node.inputs[at], value, axis=2, output=name)
    return p.add("Identity", value, output=name) if name else value


def _fixed_mask(p: Parts, shape: tuple[int, int], past: int) -> DoubleArray:
    """What is added to the scores and is known now, 0 and -inf mostly."""
    node, constants = p.node, p.source.constants
    p.source.check_made(p.node, *shape)
    mask: DoubleArray = np.zeros(shape)
    if _has(node, 3) and node.inputs[3] in constants:
        given = constants[node.inputs[3]]
        given = np.where(given, 0, -np.inf) if given.dtype == bool else given
        left_out = shape[1] - given.shape[-1]
        ends = [(0, 0)] * (given.ndim - 1) + [(0, left_out)]
        mask = mask + np.pad(given, ends, constant_values=-np.inf).astype(np.float64)
    begin = np.full((1, 1, 1, 1), past)
    places = np.arange(shape[1])
    if _has(node, 6):
        lengths = p.source.constant(p.node, 6)
        filled = np.asarray(lengths).reshape(-1, 1, 1, 1)
        begin = filled - shape[0]
        mask = mask + np.where(places < filled, 0, -np.inf)
    ahead = places - (np.arange(shape[0])[:, None] + begin)
    before, after = (
        node.integer(f"{side}_window_size", -1) for side in ("left", "right")
    )
    if node.integer("is_causal", 0):
        mask = mask + np.where(ahead <= 0, 0, -np.inf)
    if before >= 0:
        mask = mask + np.where(ahead >= -before, 0, -np.inf)
    if after >= 0:
        mask = mask + np.where(ahead <= after, 0, -np.inf)
    return mask


def _running_mask(p: Parts, kind: str) -> str:
    """The mask that is an input, as what is added."""
    name = p.node.inputs[3]
    if p.source.types.get(name) != "bool":
        return name
    taken = p.add("Cast", name, to=FLOAT_TYPES[kind])
    return p.add("Log", taken)  # 0 or -inf


FAMILY = Family(compositions={"Attention": attention})
