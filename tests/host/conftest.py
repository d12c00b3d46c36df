# SPDX-License-Identifier: Apache-2.0
"""A tiny network with everything that the command line needs to work on it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_nets import net, node

CLASSES = 6
SHAPE = (1, 3, 8, 8)


class WithoutTorch(pytest.Module):
    """A module that imports torch, where cross/setup.sh did not install it."""

    def collect(self):
        pytest.skip(
            "torch is not installed, see cross/setup.sh", allow_module_level=True
        )


def pytest_pycollect_makemodule(module_path, parent):
    needed = re.search(r"^(import|from) torch", module_path.read_text(), re.MULTILINE)
    if needed and find_spec("torch") is None:
        return WithoutTorch.from_parent(parent, path=module_path)
    return None


STATES: dict = {}
"""How the generators of modules began, by their identity."""


@pytest.fixture(autouse=True)
def same_chance(request):
    """A test draws the same numbers whichever ran before it."""
    if rng := getattr(request.module, "RNG", None):
        state = STATES.setdefault(id(rng), rng.bit_generator.state)
        rng.bit_generator.state = state


@dataclass(frozen=True, slots=True)
class Tiny:
    """Files of one network: image 1x3x8x8 -> scores 1x6.  net: makes its likes."""

    net: Callable[..., onnx.ModelProto]
    folder: Path
    onnx: Path
    data: Path
    labelled: Path
    table: Path
    n8: Path
    n8_int8: Path


def conv_net(seed: int = 1, operator: str = "Relu") -> onnx.ModelProto:
    """Convolution, activation, global pool, fully connected."""
    rng = np.random.default_rng(seed)

    def weight(*shape):
        return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)

    nodes = [
        node("Conv", "image w1 b1", "sum1", "c1", pads=[1] * 4),
        node(operator, "sum1", "act1", "a1"),
        node("GlobalAveragePool", "act1", "pooled", "pool"),
        node("Flatten", "pooled", "flat", "flatten"),
        node("Gemm", "flat w2 b2", "scores", "fc", transB=1),
    ]
    weights = {
        "w1": weight(8, 3, 3, 3),
        "b1": weight(8),
        "w2": weight(CLASSES, 8),
        "b2": weight(CLASSES),
    }
    return net(nodes, {"image": SHAPE}, "scores", weights)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Tiny:
    """Calibrated and compiled through the Python functions."""
    import neon8

    folder = tmp_path_factory.mktemp("tiny")
    files = Tiny(
        conv_net,
        folder,
        folder / "tiny.onnx",
        folder / "train.npz",
        folder / "test.npz",
        folder / "tiny.scales.json",
        folder / "tiny.n8",
        folder / "tiny_int8.n8",
    )
    onnx.save(conv_net(), files.onnx)
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (24, *SHAPE[1:])).astype(np.float32)
    np.savez(files.data, x=x)
    np.savez(files.labelled, x=x, y=np.arange(24) % CLASSES)
    table = neon8.calibrate_model(files.onnx, files.data, method="minmax")
    neon8.save_table(table, files.table)
    neon8.save_model(neon8.compile_model(files.onnx, table), files.n8)
    neon8.save_model(neon8.compile_model(files.onnx, table, io="int8"), files.n8_int8)
    return files
