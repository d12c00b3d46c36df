# SPDX-License-Identifier: Apache-2.0
"""Tables with factors and corrected biases: who can hold them, who refuses them."""

from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.errors import TableError
from neon8.formats.conversion import convert_table as convert
from onnx_nets import chain, save
from quantized_nets import ort

CHANNELS = 8
SAMPLES = np.random.default_rng(0).normal(0.3, 1, (24, 1, 3, 9, 9)).astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A network whose channels are 1 to 2**-7 in size, and its table's file."""
    folder = tmp_path_factory.mktemp("recipe")
    rng = np.random.default_rng(1)
    drift = np.exp2(-np.arange(CHANNELS))[:, None, None, None]
    first = rng.normal(size=(CHANNELS, 3, 3, 3)) * drift
    second = rng.normal(size=(CHANNELS, 1, 3, 3)) / drift
    steps = [
        ("Conv", [first.astype(np.float32)], {}),
        ("Relu", [], {}),
        ("Conv", [second.astype(np.float32)], {"group": CHANNELS}),
        ("Relu", [], {}),
        ("Conv", [(4, CHANNELS, 1, 1)], {}),
    ]
    model = save(folder, chain(steps, SAMPLES.shape[1:]))
    table = neon8.calibrate_model(model, SAMPLES, output=folder / "t.json")
    assert [name for name, each in table.tensors.items() if each.factors] == ["t1"]
    assert all(layer.bias_correction for layer in table.layers.values())
    return model, folder / "t.json", table


def test_quantized_files_hold_both(made):
    """onnxruntime gives what our integers give, but for sums in another order."""
    model, path, table = made
    quantized = path.with_name("q.onnx")
    quantized.write_bytes(convert(path, "qdq", model=model).data)
    program = lower(neon8.load_graph(model), table)
    for x in SAMPLES:
        want = oracle.run(program, {"x": x})["y"]
        got = ort(quantized, {"x": x})["y"]
        near = np.abs(got - want) <= table.tensors["y"].scale * 1.001
        assert near.mean() > 0.99
    assert convert(path, "neon8", model=model).data == path.read_bytes()


@pytest.mark.parametrize("to", ["ncnn", "trt", "ort", "ort-overrides", "glow"])
def test_other_tables_refuse_factors_and_tell_of_corrections(made, tmp_path, to):
    model, path, table = made
    said = f"{to} has no factors of channels, which tensor 't1' has; .* --plain"
    with pytest.raises(TableError, match=said):
        convert(path, to, model=model)
    plain = {name: replace(each, factors=()) for name, each in table.tensors.items()}
    neon8.save_table(replace(table, tensors=plain), tmp_path / "p.json")
    notes = convert(tmp_path / "p.json", to, model=model).notes
    text = f"{to} has no biases: corrections of the biases of 3 layers are left out"
    assert text in notes
    simple = neon8.calibrate_model(model, SAMPLES, plain=True)
    neon8.save_table(simple, tmp_path / "s.json")
    foreign = tmp_path / "foreign"
    converted = convert(tmp_path / "s.json", to, model=model)
    assert not any("biases" in note for note in converted.notes)
    foreign.write_bytes(converted.data)
    if to == "ort-overrides":
        with pytest.raises(TableError, match="t1' has; calibrate with --plain"):
            convert(foreign, "neon8", model=model, onto=path)
