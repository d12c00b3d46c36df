# SPDX-License-Identifier: Apache-2.0
"""`neon8 inspect` of an ONNX file: int8, float32 or not supported, node by node."""

import numpy as np
import pytest

import neon8
from neon8.errors import GraphError
from neon8.formats.conversion import convert_table as convert
from onnx_nets import chain, save

F = np.float32
STEPS = [
    ("Conv", [(4, 3, 3, 3), (4,)], {}),
    ("Relu", [], {}),
    ("Tan", [], {}),
    ("Flatten", [], {}),
    ("Gemm", [(64, 5)], {}),
    ("Softmax", [], {}),
]


def rows(said):
    """Name of a node -> the words of its line."""
    lines = said[said.index("  runs in") :].split("\n")[1:]
    cells = (line.split("  ") for line in lines if line.startswith("  "))
    words = ([cell.strip() for cell in line if cell.strip()] for line in cells)
    return {line[1]: line for line in words}


def test_every_node_is_in_one_list(tmp_path):
    path = save(tmp_path, chain(STEPS, ("n", 3, 6, 6)))
    said = neon8.inspect_file(path)
    found = rows(said)
    assert found["n0"][:4] == ["int8", "n0", "Conv", "1x4x4x4"]
    assert found["n2"][:3] == ["not supported", "n2", "Tan"]
    assert "cut the network" in found["n2"][-1]
    assert found["n4"][0] == "int8"
    assert found["n5"][0] == "float32"
    assert "read in float32" in found["n5"][-1]
    assert "1 not supported" in said
    assert neon8.load_graph(path).digest in said


def test_it_says_what_compile_does(tmp_path):
    """The nodes in float32 are those that the compiler reports."""
    steps = [step for step in STEPS if step[0] != "Tan"]
    path = save(tmp_path, chain(steps, (1, 3, 6, 6)))
    found = rows(neon8.inspect_file(path))
    table = neon8.calibrate_model(path, [np.ones((3, 6, 6), F)])
    from neon8.compile.compiler import compile_network

    islands = compile_network(path, table).islands
    assert {name for name, row in found.items() if row[0] == "float32"} == set(islands)


def test_a_quantized_file_says_how_its_scales_are_taken_over(tmp_path):
    steps = [step for step in STEPS if step[0] not in ("Tan", "Softmax")]
    path = save(tmp_path, chain(steps, (1, 3, 6, 6)))
    table = neon8.calibrate_model(path, [np.ones((3, 6, 6), F)])
    neon8.save_table(table, tmp_path / "t.json")
    quantized = tmp_path / "q.onnx"
    quantized.write_bytes(convert(tmp_path / "t.json", "qdq", model=path).data)
    said = neon8.inspect_file(quantized)
    assert "neon8 compile takes it as it is" in said
    assert "neon8 convert" in said
    assert "scales or ranges of tensors" in said


def test_open_shapes(tmp_path):
    path = save(tmp_path, chain([("Relu", [], {})], (1, 3, "h", 6)))
    with pytest.raises(GraphError, match="--shape x="):
        neon8.inspect_file(path)
    assert "1x3x4x6" in neon8.inspect_file(path, shapes={"x": (1, 3, 4, 6)})
