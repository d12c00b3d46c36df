# SPDX-License-Identifier: Apache-2.0
"""The int8 network simulated in float by onnxruntime: fast and close, not exact.

From run to run every tensor can be rounded to a grid of its own or left alone, and each
layer can have other weights, so one session shows what each of them costs. Accumulators
are float32 and biases are not rounded. The int8 library gives the true result; the
simulation shows where to look.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from neon8.arrays import Array
from neon8.calibrate.run.reference import Reference
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.roundable import NUMBERS, ROUNDING, roundable
from neon8.ir.graph import Factors, Graph
from neon8.operators.convolution import Conv2d
from neon8.quant.grid import Grid
from neon8.quant.scale_table import TensorScale

EXACT = (1.0, -np.inf, np.inf, 0.0, 1.0)
"""The parameters of a tensor that is not rounded."""


class Simulator:
    """The network in an ONNX file, on one thread; several threads may run it at once.

    GraphError: as Reference and roundable().
    """

    def __init__(
        self,
        model: ModelLike,
        graph: Graph,
        *,
        tensors: Sequence[str],
        layers: Iterable[Conv2d] = (),
        outputs: Sequence[str],
        factors: Mapping[str, Factors] = MappingProxyType({}),
    ) -> None:
        """Load the network; graph: of the same file.

        tensors: those that run() may round, one or more.  layers: nodes of the graph
        whose weights and biases these are unless run() has others; all other layers are
        as in the file.  outputs: tensors that run() returns.  factors: of channels of
        tensors, which are rounded in these units; values are real ones everywhere.
        """
        file, layers = open_onnx(model), tuple(layers)
        self._network = roundable(
            file,
            graph,
            tensors=tensors,
            layers=layers,
            outputs=outputs,
            factors=factors,
        )
        self._reference = Reference(self._network.file)
        self._layers = self._given(layers)
        self._exact = np.tile(
            np.array(EXACT, np.float32), 1 + max(self._network.places.values())
        )

    def run(
        self,
        inputs: Mapping[str, Array],
        scales: Mapping[str, TensorScale],
        layers: Iterable[Conv2d] = (),
    ) -> dict[str, Array]:
        """Run one sample with the tensors in `scales` rounded; outputs by name.

        layers: some of those that the constructor was given, with other weights and
        biases.  DataError: as Reference.
        """
        settings = self._exact.copy()
        for name, scale in scales.items():
            start = NUMBERS * self._network.places[name]
            settings[start : start + NUMBERS] = numbers(scale)
        given = self._layers | self._given(layers)
        given[self._network.settings] = settings
        found = self._reference.run({**inputs, **given})
        return {name: found[made] for name, made in self._network.outputs.items()}

    def _given(self, layers: Iterable[Conv2d]) -> dict[str, Array]:
        """The inputs with weights and biases."""
        found: dict[str, Array] = {}
        for node in layers:
            arrays = np.ascontiguousarray(node.weight), np.ascontiguousarray(node.bias)
            found |= zip(self._network.layers[node.name], arrays, strict=True)
        return found


def numbers(scale: TensorScale) -> tuple[float, ...]:
    """The parameters with which graph/roundable.py does (2) and (1) of numerics.

    Values are clamped before they are rounded, as the bounds are integers.
    """
    grid = Grid(scale.scheme, scale.bits)
    step = np.float32(scale.scale)
    lowest, highest = (q - scale.zero_point for q in (grid.lowest, grid.highest))
    return float(np.float32(1) / step), lowest, highest, ROUNDING, float(step)
