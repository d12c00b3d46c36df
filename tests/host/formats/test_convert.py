# SPDX-License-Identifier: Apache-2.0
"""neon8 convert: every pair of formats, names, and what is missing."""

import json

import numpy as np
import pytest

import neon8
from neon8.cli.main import main
from neon8.errors import TableError
from neon8.formats import ncnn, trt
from neon8.formats.conversion import convert_table as convert
from neon8.formats.conversion import read, read_names
from neon8.formats.registry import NAMES
from table_nets import own_table

LOSSLESS = ("neon8", "glow", "ort", "ort-cache", "ort-overrides")


def steps(table):
    return {
        name: (tensor.scale, tensor.zero_point, tensor.scheme, tensor.threshold)
        for name, tensor in table.tensors.items()
    }


@pytest.mark.parametrize("source", NAMES)
def test_every_pair(made, source, tmp_path):
    """The way over our own format gives what the direct way gives."""
    folder = made.path.parent
    options = {"model": made.path, "onto": folder / "neon8"}
    own = tmp_path / "own.json"
    own.write_bytes(convert(folder / source, "neon8", **options).data)
    for target in NAMES:
        direct = convert(folder / source, target, **options)
        around = convert(own, target, model=made.path)
        assert direct.source_format == {"ort-cache": "ort"}.get(source, source)
        assert direct.data == around.data, target


@pytest.mark.parametrize("source", LOSSLESS)
def test_nothing_is_lost(made, source):
    table = own_table(made.path.parent / source, model=made.path)
    assert steps(table) == steps(made.table)
    for name, layer in made.table.layers.items():
        assert table.layers[name].weight_scales == layer.weight_scales


@pytest.mark.parametrize("source", ["ncnn", "trt", "qdq"])
def test_what_a_format_keeps_is_exact(made, source):
    folder = made.path.parent
    table = own_table(folder / source, onto=folder / "neon8", model=made.path)
    symmetric = made.table.scheme == "symmetric"
    if symmetric or source == "qdq":
        assert steps(table) == steps(made.table)
    if source != "trt":
        for name, layer in made.table.layers.items():
            assert table.layers[name].weight_scales == layer.weight_scales
    if not symmetric and source == "trt":
        for name, tensor in made.table.tensors.items():
            larger = max(map(abs, tensor.threshold))
            assert table.tensors[name].threshold[1] == pytest.approx(larger, rel=1e-6)


def test_the_table_compiles_and_says_where_it_is_from(made):
    table = own_table(made.path.parent / "glow", model=made.path)
    assert neon8.compile_model(made.graph, table)
    assert table.method == "imported"
    assert table.samples == 0
    entry = table.tensors["x"]
    assert (entry.min, entry.max) == (None, None)
    assert entry.reasons == ("imported",)


@pytest.mark.parametrize("name", NAMES)
def test_the_content_tells_the_format(made, name, capsys):
    path = made.path.parent / name
    table, own = read(path)
    assert table.format == {"ort-cache": "ort"}.get(name, name)
    assert (own is None) == (name != "neon8")
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert str(path) in out
    assert "conv0" in out or "r0" in out


@pytest.mark.parametrize(
    "data", [b"", b"x 1\ny 2\n", b"{}", b'{"a": 1}', b"[1]", b"hello\n"]
)
def test_the_content_does_not_tell(written, data):
    with pytest.raises(TableError, match="--from"):
        read(written(data))


@pytest.mark.parametrize(
    ("source", "target", "options", "word"),
    [
        ("ncnn", "trt", (), "needs scales of tensors, and it has .*--model"),
        ("ncnn", "glow", (), "needs ranges of tensors"),
        ("ncnn", "ort", (), "needs ranges of tensors"),
        ("ncnn", "ort-overrides", (), "names of weights, it has .*--model"),
        ("trt", "ncnn", (), "needs the weight scales of layers, and it .*--model"),
        ("glow", "ncnn", (), "needs the weight scales"),
        ("trt", "neon8", (), "needs the network .*--model"),
        ("trt", "qdq", (), "needs the network .*--model"),
        ("neon8", "qdq", (), "needs the float network: add --model"),
        ("ort-overrides", "neon8", ("onto",), "only the network tells: add --model"),
        ("ncnn", "neon8", ("model",), "'avg2?' has no scale or range: .*--onto"),
        ("ncnn", "qdq", ("model",), "'avg2?' has no scale or range: .*--onto"),
    ],
)
def test_what_is_missing_is_named(made, source, target, options, word):
    folder = made.path.parent
    known = {"model": made.path, "onto": folder / "neon8"}
    with pytest.raises(TableError, match=word) as caught:
        convert(folder / source, target, **{name: known[name] for name in options})
    assert str(folder / source) in str(caught.value)


def test_weights_only_go_onto_a_table(made, written):
    path = written("conv0_param_0 1 2 3 4 5 6 7 8\n")
    table = own_table(path, onto=made.path.parent / "neon8")
    assert table.layers["conv0"].weight_scales == tuple(
        float(np.float32(1 / n)) for n in range(1, 9)
    )
    assert table.tensors == made.table.tensors
    assert table.model_digest == made.table.model_digest


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("other_param_0 1", "layer 'other' is not in the table .*--names"),
        ("conv0_param_0 1 2", "has 2 weight scales and 8 channels; is it of another"),
        ("conv0_param_0 0 1 1 1 1 1 1 1", "scale 0 is 0, and the channel has weights"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_layers_that_do_not_fit(made, written, line, word, whole):
    path = written(f"{line}\n")
    model = {"model": made.path} if whole else {}
    word = word if not whole else word.replace("table .* has", "network has")
    word = word.replace("in the table", "in the network") if whole else word
    with pytest.raises(TableError, match=word):
        convert(path, "neon8", onto=made.path.parent / "neon8", **model)


def test_names(made, tmp_path):
    folder = made.path.parent
    there = {"r0": "net/relu: 0", "conv0": "first", "x": "data"}
    (tmp_path / "map.json").write_text(json.dumps(there), encoding="utf-8")
    names = read_names(tmp_path / "map.json")
    cache = tmp_path / "c"
    cache.write_bytes(convert(folder / "neon8", "trt", names=names).data)
    assert "net/relu: 0" in trt.loads(cache.read_bytes()).tensors
    table = ncnn.loads(convert(folder / "neon8", "ncnn", names=names).data)
    assert "first" in table.weights
    back = {"net/relu: 0": "r0", "data": "x"}
    again = convert(cache, "trt", names=back).data
    assert again == (folder / "trt").read_bytes()
    assert "r0" in own_table(cache, names=back, model=made.path).tensors


@pytest.mark.parametrize(
    ("names", "word"),
    [
        ({"nothing": "x"}, "'nothing', which is not in it"),
        ({"x": "r0"}, "two entries the name 'r0'"),
    ],
)
def test_names_that_do_not_fit(made, names, word):
    with pytest.raises(TableError, match=word):
        convert(made.path.parent / "trt", "trt", names=names)
    with pytest.raises(TableError, match="names of other tools"):
        convert(made.path.parent / "neon8", "neon8", names=names)


@pytest.mark.parametrize(
    "text", ["[]", '{"a": 1}', '{"a": ""}', '{"a": "b", "a": "c"}']
)
def test_maps_that_are_none(written, text):
    with pytest.raises(TableError, match=r"a:1: "):
        read_names(written(text))
