# SPDX-License-Identifier: Apache-2.0
"""What the rules of ncnn's tools make of a network.

No package has ncnn2table and ncnn2int8. By their sources: what a convolution or fully
connected layer reads is int8, symmetric, its threshold by relative entropy; weights are
int8 by output channel, or 6 bits where the window is 3x3, dense and of stride 1, for
int8 Winograd; all else is float.
"""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from bench.accuracy.onnx_net import Net, attribute, groups
from bench.accuracy.peer_onnxruntime import folded
from neon8.calibrate.run.reference import Reference

BINS, LEVELS, LEAST = 2048, 128, 1e-4
LINEAR = ("QuantizeLinear", "DequantizeLinear")
LAYERS = ("Conv", "Gemm", "MatMul")


def quantized(model: Path, samples: Iterable[dict[str, np.ndarray]]) -> onnx.ModelProto:
    """The network with rounded weights, and Q/DQ before its layers."""
    network, rows = folded(model), list(samples)
    net = Net(network)
    layers = {
        node.output[0]
        for node in network.graph.node
        if node.op_type in LAYERS and net.constant(node, 1) is not None
    }
    found = {n.input[0] for n in network.graph.node if n.output[0] in layers}
    nodes, ready = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        onnx.save(network, path)
        limits = thresholds(path, sorted(found), rows)
    for node in list(network.graph.node):
        if node.output[0] in layers:
            net.replace(node, 1, rounded(node, net.constant(node, 1)))
            name = node.input[0]
            if name not in ready:
                ready[name] = f"{name}/int8", f"{name}/real"
                pair = {"scale": np.float32(limits[name] / 127), "zero": np.int8(0)}
                for part, value in pair.items():
                    tensor = numpy_helper.from_array(np.array(value), f"{name}/{part}")
                    network.graph.initializer.append(tensor)
                more = [f"{name}/scale", f"{name}/zero"]
                for kind, (x, y) in zip(
                    LINEAR, pairwise((name, *ready[name])), strict=True
                ):
                    nodes.append(helper.make_node(kind, [x, *more], [y]))
            node.input[0] = ready[name][1]
        nodes.append(node)
    del network.graph.node[:]
    network.graph.node.extend(nodes)
    return network


def rounded(node: onnx.NodeProto, weights: np.ndarray) -> np.ndarray:
    """The weights that the integers stand for; one scale for an output channel."""
    turned = node.op_type == "MatMul" or not (
        node.op_type == "Conv" or attribute(node, "transB", 0)
    )
    rows = weights.T if turned else weights
    peak = 31 if node.op_type == "Conv" and _winograd(node, weights) else 127
    count = groups(node)
    scaled = count if count > 1 else len(rows)  # a scale for each group, if several
    flat = rows.reshape(scaled, -1)
    step = np.abs(flat).max(axis=1, keepdims=True) / peak
    step = np.where(step == 0, 1, step)
    values = (np.rint(flat / step) * step).astype(np.float32).reshape(rows.shape)
    return values.T if turned else values


def _winograd(node: onnx.NodeProto, weights: np.ndarray) -> bool:
    ones = (
        *attribute(node, "strides", (1, 1)),
        *attribute(node, "dilations", (1, 1)),
        groups(node),
    )
    return weights.shape[2:] == (3, 3) and set(ones) == {1}


def thresholds(
    model: Path, names: list[str], samples: list[dict[str, np.ndarray]]
) -> dict[str, float]:
    """The largest |x| that is not cut off, by two passes over the samples."""
    inner = [name for name in names if name not in samples[0]]
    runner = Reference(model, inner, inside=True)

    def passes() -> Iterator[tuple[str, np.ndarray]]:
        for sample in samples:
            for name, values in (sample | runner.run(sample)).items():
                if name in largest:
                    yield name, np.abs(values)

    largest = dict.fromkeys(names, 0.0)
    for name, values in passes():
        largest[name] = max(largest[name], float(values.max()))
    counts = {name: np.zeros(BINS) for name in names}
    for name, values in passes():
        bins = np.minimum(values / largest[name] * BINS, BINS - 1).astype(int)
        counts[name] += np.bincount(bins[values > 0], minlength=BINS)
    return {n: (cut(counts[n]) + 0.5) * largest[n] / BINS for n in names}


def cut(counts: np.ndarray) -> int:
    """After how many bins; LEVELS levels share what is before."""
    share = counts / counts.sum()
    below = np.concatenate([[0], np.cumsum(share)])
    best = (np.inf, LEVELS)
    for bins in range(LEVELS, BINS):
        wanted = share[:bins] + LEAST
        wanted[-1] += 1 - below[bins]
        edges = np.linspace(0, bins, LEVELS + 1)
        at_edges = np.interp(edges, np.arange(BINS + 1), below)
        got = np.diff(np.interp(np.arange(bins + 1), edges, at_edges)) + LEAST
        best = min(best, (float((wanted * np.log(wanted / got)).sum()), bins))
    return best[1]
