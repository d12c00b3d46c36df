# SPDX-License-Identifier: Apache-2.0
"""Models of the kinds that packages meet, tiny."""

from pathlib import Path

import numpy as np

import neon8
from neon8.cli.main import main
from onnx_nets import chain, save

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
IMAGE = "size = [6, 6]\ncolor = 'bgr'\nscale = 0.0039\nmean = [0.4, 0.5, 0.6]\n"


def network(folder, *, source="image", result="scores"):
    """A convolution, a mean and five classes, on images of 6 x 6."""
    conv = ("Conv", [(5, 3, 3, 3), (5,)], {"pads": [1, 1, 1, 1]})
    steps = [conv, ("GlobalAveragePool", [], {}), ("Flatten", [], {})]
    model = chain(steps, (1, 3, 6, 6))
    graph = model.graph
    graph.input[0].name = graph.node[0].input[0] = source
    graph.output[0].name = graph.node[-1].output[0] = result
    return save(folder, model)


def compiled(folder, *, io="float", image=False, **names):
    """The network as an .n8 file."""
    onnx_file = network(folder, **names)
    samples = np.random.default_rng(2).standard_normal((4, 3, 6, 6))
    table = neon8.calibrate_model(onnx_file, samples.astype(np.float32))
    (folder / "p.toml").write_text(IMAGE)
    how = {"image": folder / "p.toml"} if image else {}
    made = neon8.compile_model(onnx_file, table, io=io, **how)
    path = folder / "net.n8"
    neon8.save_model(made, path)
    return path


def package(capsys, model, folder, kind, *options):
    """Run the command; what it printed."""
    words = ["package", model, "--for", kind, "-o", folder, *options]
    capsys.readouterr()
    status = main([*map(str, words)])
    said = capsys.readouterr()
    assert status == 0, said.err
    return said.out
