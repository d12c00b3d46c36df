# SPDX-License-Identifier: Apache-2.0
"""calibrate(): from an ONNX file and samples to the scale table."""

from collections.abc import Callable, Iterable
from functools import reduce
from os import PathLike
from typing import Any

from neon8.calibrate.groups import scale_groups, sources
from neon8.calibrate.histogram import Histogram, empty, merge
from neon8.calibrate.observe import observe
from neon8.calibrate.reference import ENGINE, Reference
from neon8.calibrate.thresholds import METHODS, SCHEMES, solve
from neon8.calibrate.weights import weight_scales
from neon8.data import as_samples
from neon8.errors import CalibrationError
from neon8.graph.graph import Conv2d, Graph
from neon8.graph.importer import load
from neon8.table.scale_table import ScaleTable, TensorScale


def calibrate(
    model: str | PathLike[str],
    samples: Iterable[Any],
    *,
    method: str = "mse",
    scheme: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> ScaleTable:
    """Run the FP32 network in `model` on `samples` and choose all scales.

    samples: what data.open_samples gives, or an iterable of arrays or of dicts.
    progress: called with the number of samples done so far. Memory does not depend on
    how many there are. GraphError, DataError, CalibrationError.
    """
    for what, value, known in (
        ("method", method, tuple(METHODS)),
        ("scheme", scheme, SCHEMES),
    ):
        if value not in known:
            text = f"expected one of {', '.join(known)}"
            raise CalibrationError(f"{what} {value!r} is unknown: {text}")
    graph = load(model)
    names = sources(graph)
    reference = Reference(model, [name for name in names if name not in graph.inputs])
    histograms = dict.fromkeys(names, empty())
    count = 0
    for sample in as_samples(samples, graph):
        values = {**sample.inputs, **reference.run(sample.inputs)}
        histograms = observe(histograms, values, sample=sample.name)
        count += 1
        if progress is not None:
            progress(count)
    if count == 0:
        raise CalibrationError(f"{graph.name}: there are no samples to calibrate with")
    tensors = _solve(graph, histograms, method=method, scheme=scheme)
    return ScaleTable(
        model_name=graph.name,
        model_digest=graph.digest,
        method=method,
        scheme=scheme,
        samples=count,
        engine=ENGINE,
        tensors=tensors,
        layers={
            node.name: weight_scales(node, tensors[node.inputs[0]].scale)
            for node in graph.nodes
            if isinstance(node, Conv2d)
        },
    )


def _solve(
    graph: Graph, histograms: dict[str, Histogram], *, method: str, scheme: str
) -> dict[str, TensorScale]:
    """The scale of every tensor; each group is solved once, on all its sources."""
    leader = scale_groups(graph)
    members: dict[str, list[Histogram]] = {}
    for name, histogram in histograms.items():
        members.setdefault(leader[name], []).append(histogram)
    solved = {
        name: solve(reduce(merge, group), method=method, scheme=scheme)
        for name, group in members.items()
    }
    return {name: solved[leader[name]] for name in graph.tensors}
