# SPDX-License-Identifier: Apache-2.0
"""The random networks can tell: they reach everything, vary, and show a wrong byte."""

from collections import Counter

import numpy as np

from neon8.compile import writer
from neon8.operators.arithmetic import SumOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.pooling import PoolOp
from neon8.runtime import Model, library
from random_program import random_program

MOST_KINDS = 4
"""Inputs and output of a step that is counted by their types."""
MIXED = ("int8 int16", "int16 int8", "int16 int16", "int16 float32")


def test_generator_reaches_everything():
    """What the networks are made of, over the seeds that a run surely sees."""
    seen = Counter()
    for seed in range(1500):
        program = random_program(seed)
        with Model.from_bytes(writer.dumps(program)) as model:
            seen.update(step.operation for step in model.steps)
            seen.update(step.kernel.rpartition("_")[0] for step in model.steps)
        for op in program.ops:
            kinds = [program.tensors[name].dtype for name in (*op.inputs, op.output)]
            seen[" ".join([type(op).__name__.removesuffix("Op"), *kinds])] += (
                len(kinds) < MOST_KINDS
            )
            if isinstance(op, Conv2dOp):
                source = program.tensors[op.inputs[0]]
                seen["int16 residual"] += kinds[1:-1] == ["int16"]
                wide = "int16" if op.weights.dtype == np.int16 else "int8"
                seen[f"{wide} weights on {source.dtype}"] += 1
                seen["depthwise int16 weights"] += (
                    wide == "int16" and op.groups == source.shape[1] > 1
                )
                seen["grouped"] += 1 < op.groups < source.shape[1]
                seen["slopes"] += op.slopes is not None
                seen["weights of -128"] += op.weights.min() == -128
                seen["dilated"] += max(op.dilations) > 1
                seen["batch"] += source.shape[0] > 1
                seen["odd channels"] += source.shape[1] % 8 != 0
            if isinstance(op, SumOp):
                seen["int16 sum of several"] += "int16" in kinds[:-1]
            if isinstance(op, PoolOp):
                seen["count_pad"] += op.count_pad
        seen.update(tensor.zero_point for tensor in program.tensors.values())
    kinds = library.load().ffi.typeof("enum n8_op").relements
    for what in (
        *(kind.removeprefix("N8_OP_").lower() for kind in kinds),
        *("n8_igemm_s8_s8", "n8_igemm_s8_f32", "n8_igemm_s8_s8_add"),
        *("n8_depthwise_s8", "n8_depthwise3x3s1_s8", "n8_depthwise3x3s2_s8"),
        *("grouped", "slopes", "dilated", "batch", "odd channels", "count_pad"),
        *("weights of -128", "int16 residual", "depthwise int16 weights"),
        *("int16 weights on int8", "int16 weights on int16", "int8 weights on int16"),
        *(f"Conv2d {kinds}" for kinds in MIXED),
        *(f"Requantize {kinds}" for kinds in MIXED if "float32" not in kinds),
        *(f"Interpolate {kinds}" for kinds in MIXED if "float32" not in kinds),
        *(f"SoftmaxQ {kinds}" for kinds in MIXED if "float32" not in kinds),
        *(f"Normalization {kinds}" for kinds in MIXED if "float32" not in kinds),
        *("Pool int16 int16", "Pool int8 float32", "Pool int16 float32"),
        *("Add int16 int16 int16", "Add int8 int8 int16", "Add int16 int16 int8"),
        *("Multiply int16 int16 int16", "Multiply int16 int16 int8"),
        *("Multiply int8 int8 int16", "Divide int16 int16 int16"),
        *("int16 sum of several", "Constant int16"),
        *(f"{kind} int16 int16 int16" for kind in ("Maximum", "Minimum")),
        *(f"{kind} int16 int16" for kind in ("Reshape", "Permute", "Gather")),
        *("Concat int16 int16 int16", "Quantize float32 int16"),
        *("Dequantize int16 float32", "Constant int32", "Concat int32 int32 int32"),
        *(f"{kind} int32 int32" for kind in ("Reshape", "Permute", "Gather")),
        *(-128, -1, 0, 1, 127),
    ):
        assert seen[what] >= 5, what
