# SPDX-License-Identifier: Apache-2.0
"""Small files that ask for large tensors are refused before anything is allocated."""

import sys

import numpy as np
import onnx
import pytest
from onnx import helper

from neon8.errors import GraphError
from neon8.graph.importer import load
from neon8.operators.opaque import opaque_nodes
from onnx_nets import net, node, save
from processes import ran
from refusals import refused

INT64 = 7
LONG = 100_000


def numbers(*values):
    return np.array(values, np.int64)


SMALL = {"x": (1, 1)}
TOO_LARGE = {
    "expand": (node("Expand", "x s", "y"), SMALL, {"s": numbers(LONG, LONG)}),
    "tile": (node("Tile", "x s", "y"), SMALL, {"s": numbers(LONG, LONG)}),
    "pad": (node("Pad", "x s", "y"), SMALL, {"s": numbers(0, 0, LONG, LONG)}),
    "resize": (
        helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest"),
        {"x": (1, 1, 1, 1)},
        {"s": np.array([1, 1, LONG, LONG], np.float32)},
    ),
    "affine": (
        node("AffineGrid", "x s", "y"),
        {"x": (1, 2, 3)},
        {"s": numbers(1, 1, LONG, LONG)},
    ),
    "gather": (
        node("Gather", "x s", "y", axis=0),
        {"x": (1, LONG)},
        {"s": np.zeros(LONG, np.int64)},
    ),
    "broadcast": (node("Add", "x z", "y"), {"x": (LONG, 1), "z": (1, LONG)}, {}),
    "product": (node("MatMul", "x z", "y"), {"x": (LONG, 1), "z": (1, LONG)}, {}),
}


def ranged(kind, end):
    return {n: kind(v) for n, v in (("a", 0), ("b", end), ("d", 1))}


CONSTANTS = {
    "fill": ("ConstantOfShape", {"s": numbers(LONG, LONG)}, "makes 10000000000 values"),
    "bytes": (
        "ConstantOfShape",
        {"s": numbers(30_000, 30_000)},
        "makes 3600000000 bytes of constants, too many",
    ),
    "range": ("Range", ranged(np.float32, 1e10), "makes 10000000000 values"),
    "list": ("Range", ranged(np.int64, 10**12), "a list of 1000000000000 integers"),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_no_tensor_has_more_values_than_the_library_takes(tmp_path, name):
    made, inputs, constants = TOO_LARGE[name]
    path = save(tmp_path, net([made], inputs, "y", constants, opset=20))
    with refused(GraphError, path, made.op_type, "2147483647", "smaller"):
        load(path)


@pytest.mark.parametrize("name", CONSTANTS)
def test_nor_has_a_constant(tmp_path, name):
    operator, constants, text = CONSTANTS[name]
    nodes = [node(operator, " ".join(constants), "c"), node("Relu", "x", "y")]
    path = save(tmp_path, net(nodes, SMALL, "y", constants, opset=20))
    with refused(GraphError, path, operator, text):
        load(path)


def one_hot():
    constants = {"d": numbers(300_000_000), "v": np.array([0, 1], np.float32)}
    made = node("OneHot", "i d v", "y", "big")
    return net([made], {"i": (1, 4)}, "y", constants, types={"i": INT64})


def trilu():
    return net([node("Trilu", "x", "y", "big")], {"x": (40_000, 40_000)}, "y", opset=14)


def mean():
    made = node("ReduceMean", "x", "y", "big", axes=[1, 2, 3])
    return net([made], {"x": (1, 2, 30_000, 30_000)}, "y")


def attention():
    """Causal, of 40000 queries and keys."""
    made = node("Attention", "q k v", "y", "big", is_causal=1)
    shape = (1, 1, 40_000, 1)
    return net([made], dict.fromkeys("qkv", shape), "y", opset=23)


def test_nor_makes_the_import_one(tmp_path):
    """Nothing of that size is allocated: the process may have half a gigabyte more."""
    makers = one_hot, trilu, mean, attention
    paths = [str(save(tmp_path, make(), f"{make.__name__}.onnx")) for make in makers]
    code = f"""
import resource
from neon8.operators.opaque import opaque_nodes
from neon8.graph.importer import load
import onnx.reference, numpy.ma
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 29),) * 2)
for path in {paths!r}:
    (node,) = opaque_nodes(load(path))
    print(node.name, node.reason)
"""
    done = ran(sys.executable, "-c", code, check=True)
    said = done.stdout.splitlines()
    assert len(said) == len(makers)
    assert all("big needs a constant of shape" in line for line in said)
    assert all("export it for smaller tensors" in line for line in said)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Mod", "Equal"])
def test_integers_that_int32_lacks_are_refused(tmp_path, operator):
    """Arithmetic with them would wrap from the first sample on."""
    result = onnx.TensorProto.BOOL if operator == "Equal" else INT64
    model = net(
        [node(operator, "x b", "y", "big")],
        {"x": (1, 4)},
        "y",
        {"b": numbers(2**31)},
        types={"x": INT64, "y": result},
    )
    (opaque,) = opaque_nodes(load(save(tmp_path, model)))
    assert opaque.name == "big"
    assert "constant 'b' has 2147483648, which is outside int32" in opaque.reason
    assert "export this part in float, or with numbers that fit" in opaque.reason
