# SPDX-License-Identifier: Apache-2.0
"""The int8 network simulated in float, by onnxruntime: fast, and near it, not equal.

Every tensor can be rounded to a grid of its own, or left alone, from run to run, so
that one session tells what each of them costs. Sums are in float32 and biases are not
rounded. The int8 library says what the network really gives; this says where to look.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from neon8.arrays import Array
from neon8.calibrate.run.reference import Reference
from neon8.graph.onnx_file import ModelLike, Shapes, open_onnx
from neon8.graph.roundable import NUMBERS, ROUNDING, roundable
from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d
from neon8.quant.grid import Grid
from neon8.quant.scale_table import TensorScale

EXACT = (1.0, -np.inf, np.inf, 0.0, 1.0)
"""The numbers of a tensor that is not rounded."""


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
        shapes: Shapes | None = None,
    ) -> None:
        """graph: of the same file.

        tensors: those of the graph that run() may round, one or more.  layers: of the
        graph, but with the weights and biases that they shall have, such as
        rounded_layers() makes; the others are as in the file.  outputs: tensors of the
        graph that run() gives.  shapes: as for open_onnx().
        """
        file = open_onnx(model, shapes=shapes)
        self._network = roundable(
            file, graph, tensors=tensors, layers=layers, outputs=outputs
        )
        self._reference = Reference(self._network.file)
        self._exact = np.tile(
            np.array(EXACT, np.float32), 1 + max(self._network.places.values())
        )

    def run(
        self, inputs: Mapping[str, Array], scales: Mapping[str, TensorScale]
    ) -> dict[str, Array]:
        """The outputs by name, with the tensors in `scales` rounded to their grids.

        inputs: of one sample.  scales: of some of the tensors; of equalized ones, the
        layers around them have the factors.  DataError: as Reference.
        """
        settings = self._exact.copy()
        for name, scale in scales.items():
            start = NUMBERS * self._network.places[name]
            settings[start : start + NUMBERS] = numbers(scale)
        found = self._reference.run({**inputs, self._network.settings: settings})
        return {name: found[made] for name, made in self._network.outputs.items()}


def numbers(scale: TensorScale) -> tuple[float, ...]:
    """Give what graph/roundable.py needs to leave of a value what (2) and (1) do.

    Clamped before it is rounded: the bounds are whole numbers.
    """
    grid = Grid(scale.scheme, scale.bits)
    step = np.float32(scale.scale)
    lowest, highest = (q - scale.zero_point for q in (grid.lowest, grid.highest))
    return float(np.float32(1) / step), lowest, highest, ROUNDING, float(step)
