# SPDX-License-Identifier: Apache-2.0
"""Random small Programs, and inputs for them, that all back ends must agree on.

Drawn so that the awkward cases are frequent: odd channel counts, windows that reach far
into the padding, ranges of every scheme, multipliers that give x.5 ties or saturate,
weights that are all +-127, sums near 2**31.
"""

import functools

import numpy as np

from neon8.ir.program import Program
from random_net import Net
from random_steps import GROW

KINDS = ("conv", "conv", "depthwise", *GROW)
"""What a layer is drawn from: convolutions more often than the rest."""
WIDE_KINDS = (
    *("conv", "conv", "depthwise", "add", "sum", "requantize", "max", "average"),
    *("concat", "reshape", "permute", "gather", "interpolate"),
    *("multiply", "divide", "total", "extreme", "softmax", "normalization"),
)
"""... those that int16 has."""


@functools.lru_cache(maxsize=64)  # several tests go through the first 60
def random_program(seed: int) -> Program:
    """A network of 1 to 7 layers; every result that nothing reads is an output."""
    net = Net(np.random.default_rng(seed))
    rng = net.rng
    batch = int(rng.choice([1, 1, 2, 3]))
    inputs = []
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.integers(8)
        channels, height, width = rng.integers(1, (20, 12, 12))
        if kind < 2:  # a vector
            height = width = 1
        elif kind == 2:  # deep: more than one step along the channels
            channels, height, width = rng.integers(1, (150, 5, 5))
        elif kind == 3:  # wide: more than one piece of an image
            channels, height, width = rng.integers((1, 20, 20), (4, 42, 42))
        shape = (batch, channels, height, width)
        given = rng.integers(6)
        if given < 3:
            source = net.tensor(shape, dtype="float32")
            inputs.append(source.name)
            out = net.tensor(shape, dtype=net.width())
            net.grow("Quantize", out, source)
        elif given == 3:
            source = net.tensor((batch, height, width, channels), dtype="uint8")
            inputs.append(source.name)
            out = net.tensor(shape)
            table = rng.integers(out.lo, out.hi + 1, (channels, 256), np.int8)
            net.grow("Image", out, source, table=table)
        else:
            source = net.tensor(shape, dtype=net.width())
            inputs.append(source.name)
            net.levels.append(source)
    if rng.integers(4) == 0:
        source = net.tensor(shape, dtype="int32")
        inputs.append(source.name)
        net.integers.append(source)
    size = len(net.ops) + rng.integers(1, 8)
    while len(net.ops) < size:
        kinds = WIDE_KINDS if net.mixed and rng.integers(3) else KINDS
        GROW[str(rng.choice(kinds))](net)
    for tensor in tuple(net.levels):
        if tensor.name not in net.read and rng.integers(2):
            out = net.tensor(tensor.shape, dtype="float32")
            net.grow("Dequantize", out, tensor)
    made = {op.output for op in net.ops}
    outputs = tuple(name for name in net.tensors if name in made - net.read)
    # A tensor that is an output and is read, too.
    inner = [tensor.name for tensor in net.levels if tensor.name in made & net.read]
    if inner and rng.integers(3) == 0:
        outputs += (str(rng.choice(inner)),)
    return Program(
        source_digest=f"{seed:064x}",
        tensors=net.tensors,
        ops=tuple(net.ops),
        inputs=tuple(inputs),
        outputs=outputs,
    )


def random_inputs(program: Program, seed: int) -> dict[str, np.ndarray]:
    """Arrays for a program: int8 of all bytes, int16 of the tensor's range, any int32;
    floats with ties, NaN and inf.
    """
    rng = np.random.default_rng(seed)
    arrays = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        shape = tensor.dims
        if tensor.dtype == "uint8":
            arrays[name] = rng.integers(0, 256, shape, np.uint8)
            continue
        if tensor.dtype == "int32":
            values = rng.integers(-9, 10, shape)
            odd = rng.integers(-(2**31), 2**31, shape)
            values = np.where(rng.random(shape) < 0.2, odd, values)
            arrays[name] = values.astype(np.int32)
            continue
        if tensor.dtype != "float32":
            kind = np.dtype(tensor.dtype)
            ends = (-128, 127) if kind == np.int8 else (tensor.lo, tensor.hi)
            values = rng.integers(ends[0], ends[1] + 1, shape, kind)
            if rng.integers(3) == 0:
                values = np.full(shape, rng.choice(ends), kind)
            arrays[name] = values
            continue
        (scale,) = {
            program.tensors[op.output].scale for op in program.ops if name in op.inputs
        }
        values = rng.normal(0, 60, shape)
        ties = rng.integers(-300, 300, shape) + 0.5
        values = np.where(rng.random(shape) < 0.3, ties, values) * scale
        odd = rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0, 1e-40], shape)
        values = np.where(rng.random(shape) < 0.05, odd, values)
        arrays[name] = values.astype(np.float32)
    return arrays


def differing_bytes(result, expected) -> dict[str, int]:
    """By output, how many bytes differ; outputs that do not differ are left out."""
    assert result.keys() == expected.keys()
    found = {}
    for name, array in expected.items():
        assert result[name].shape == array.shape, name
        assert result[name].dtype == array.dtype, name
        ours, theirs = (
            np.frombuffer(each.tobytes(), np.uint8) for each in (array, result[name])
        )
        if (ours != theirs).any():
            found[name] = int((ours != theirs).sum())
    return found
