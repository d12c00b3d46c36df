# SPDX-License-Identifier: Apache-2.0
"""neon8 convert: every pair of formats, names, and what is missing."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx_nets import net, node
from table_nets import case, mixed

import neon8
from neon8.cli import main
from neon8.errors import TableError
from neon8.table import json_format, ncnn, trt
from neon8.table.conversion import convert, read, read_names
from neon8.table.detect import FORMATS

LOSSLESS = ("neon8", "glow", "ort", "ort-cache", "ort-overrides")


@pytest.fixture(scope="module", params=[False, True], ids=["auto", "symmetric"])
def made(request, tmp_path_factory):
    """A network, its table in a file, and that in every format."""
    folder = tmp_path_factory.mktemp("formats")
    result = case(folder, mixed(), symmetric=request.param)
    json_path = folder / "net.scales.json"
    neon8.save_table(result.table, json_path)
    for name in FORMATS:
        done = convert(json_path, name, model=result.path)
        (folder / name).write_bytes(done.data)
    return result


def table_of(made, source, **options):
    data = convert(made.path.parent / source, "neon8", **options).data
    return json_format.loads(data.decode())


def steps(table):
    return {
        name: (tensor.scale, tensor.zero_point, tensor.scheme, tensor.threshold)
        for name, tensor in table.tensors.items()
    }


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_every_pair(made, source, target, tmp_path):
    """The way over our own format gives what the direct way gives."""
    folder = made.path.parent
    options = {"model": made.path, "onto": folder / "neon8"}
    direct = convert(folder / source, target, **options)
    path = tmp_path / "own.json"
    path.write_bytes(convert(folder / source, "neon8", **options).data)
    around = convert(path, target, model=made.path)
    kind = {"ort-cache": "ort"}.get(source, source)
    assert direct.source_format == kind
    assert direct.data.replace(str(folder).encode(), b"") == around.data.replace(
        str(tmp_path).encode(), b""
    )


@pytest.mark.parametrize("source", LOSSLESS)
def test_nothing_is_lost(made, source):
    table = table_of(made, source, model=made.path)
    assert steps(table) == steps(made.table)
    for name, layer in made.table.layers.items():
        assert table.layers[name].weight_scales == layer.weight_scales


@pytest.mark.parametrize("source", ["ncnn", "trt", "qdq"])
def test_what_a_format_keeps_is_exact(made, source):
    folder = made.path.parent
    table = table_of(made, source, onto=folder / "neon8", model=made.path)
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
    table = table_of(made, "glow", model=made.path)
    assert neon8.compile_model(made.graph, table)
    assert table.method == "imported"
    assert table.samples == 0
    entry = table.tensors["x"]
    assert (entry.min, entry.max) == (None, None)
    assert entry.reasons == ("imported",)


@pytest.mark.parametrize("name", FORMATS)
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
def test_the_content_does_not_tell(tmp_path, data):
    path = tmp_path / "t"
    path.write_bytes(data)
    with pytest.raises(TableError, match="--from"):
        read(path)


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


def test_weights_only_go_onto_a_table(made, tmp_path):
    path = tmp_path / "w.table"
    path.write_text("conv0_param_0 1 2 3 4 5 6 7 8\n", encoding="utf-8")
    base = made.path.parent / "neon8"
    done = convert(path, "neon8", onto=base)
    table = json_format.loads(done.data.decode())
    assert table.layers["conv0"].weight_scales == tuple(
        float(np.float32(1 / n)) for n in range(1, 9)
    )
    assert table.tensors == made.table.tensors
    assert table.model_digest == made.table.model_digest


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("other_param_0 1", "layer 'other' is not in the table .*--names"),
        ("conv0_param_0 1 2", "has 2 weight scales, the table .* has 8"),
        ("conv0_param_0 0 1 1 1 1 1 1 1", "scale 0 is 0, and the channel has weights"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_layers_that_do_not_fit(made, tmp_path, line, word, whole):
    path = tmp_path / "w.table"
    path.write_text(f"{line}\n", encoding="utf-8")
    model = {"model": made.path} if whole else {}
    word = word if not whole else word.replace("table .* has", "network has")
    word = word.replace("in the table", "in the network") if whole else word
    with pytest.raises(TableError, match=word):
        convert(path, "neon8", onto=made.path.parent / "neon8", **model)


def test_none_of_the_tensors_is_in_the_network(made, tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"TRT-8601-EntropyCalibration2\nfoo: 3c010204\n")
    with pytest.raises(TableError, match=r"none of its 1 tensor is .*--names"):
        convert(path, "neon8", model=made.path)


def test_tensors_of_the_file_alone_are_told(made, tmp_path):
    data = (made.path.parent / "trt").read_bytes() + b"foo: 3c010204\nbar: 0\n"
    path = tmp_path / "c"
    path.write_bytes(data)
    (note,) = convert(path, "neon8", model=made.path).notes
    assert "'foo' and 1 other tensor" in note


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
    table = json_format.loads(
        convert(cache, "neon8", names=back, model=made.path).data.decode()
    )
    assert "r0" in table.tensors


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
def test_maps_that_are_none(tmp_path, text):
    (tmp_path / "m").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=r"m:1: "):
        read_names(tmp_path / "m")


PARAM = """\
7767517
6 6
Input           in0    0 1 in0
Convolution     c_9    1 1 in0 1 0=8 1=3 4=1 5=1 6=216
ConvolutionDepthWise d_1 1 1 1 2 0=8 1=3 4=1 5=1 6=72 7=8
Convolution     c_4    1 1 2 3 0=8 1=1 6=64
Convolution     c_5    1 1 3 4 0=4 1=3 4=1 6=288
InnerProduct    f_0    1 1 4 5 0=10 1=1 2=480
InnerProduct    f_1    1 1 5 6 0=5 1=1 2=50
"""


def test_ncnn_names_both_ways(made, tmp_path):
    param = tmp_path / "net.param"
    param.write_text(PARAM.replace("6 6", "7 7"), encoding="utf-8")
    folder = made.path.parent
    done = convert(folder / "neon8", "ncnn", ncnn_param=param, model=made.path)
    path = tmp_path / "t.table"
    path.write_bytes(done.data)
    entries = ncnn.loads(done.data)
    assert list(entries.weights) == ["c_9", "d_1", "c_4", "c_5", "f_0", "f_1"]
    assert list(entries.inputs) == list(entries.weights)
    back = convert(path, "ncnn", ncnn_param=param, source_format="ncnn")
    assert back.data == done.data
    for options in ({"model": made.path}, {}):
        own = convert(path, "neon8", ncnn_param=param, onto=folder / "neon8", **options)
        table = json_format.loads(own.data.decode())
        for name, layer in made.table.layers.items():
            assert table.layers[name].weight_scales == layer.weight_scales
    with pytest.raises(TableError, match="nothing without the network"):
        convert(path, "trt", ncnn_param=param)
    param.write_text(
        PARAM.replace("6 6", "7 7").replace("6=72", "6=73"), encoding="utf-8"
    )
    with pytest.raises(TableError, match=r"net.param:5: .*another order"):
        convert(folder / "neon8", "ncnn", ncnn_param=param, model=made.path)


def test_weights_with_names_and_folded_ones(tmp_path):
    rng = np.random.default_rng(1)
    f = np.float32
    model = net(
        [
            node("Conv", "x w0", "c0", "conv0"),
            node("BatchNormalization", "c0 s b m v", "n0", "norm0"),
            node("Relu", "n0", "r0", "relu0"),
            node("MatMul", "r1 w1", "y", "fc"),
            node("Flatten", "r0", "r1", "flat"),
        ],
        {"x": (1, 2, 2, 2)},
        "y",
        {
            "w0": rng.normal(0, 1, (3, 2, 1, 1)).astype(f),
            "w1": rng.normal(0, 1, (12, 4)).astype(f),
            **{name: rng.uniform(1, 2, 3).astype(f) for name in "sbmv"},
        },
    )
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:3], nodes[4], nodes[3]])
    made = case(tmp_path, model)
    neon8.save_table(made.table, tmp_path / "t.json")
    done = convert(tmp_path / "t.json", "ort-overrides", model=made.path)
    assert any("1 layer are" in note and "'conv0'" in note for note in done.notes)
    root = json.loads(done.data)
    assert "w0" not in root
    assert [channel["scale"] for channel in root["w1"]] == list(
        made.table.layers["fc"].weight_scales
    )
    assert root["w1"][0]["axis"] == 1
    (tmp_path / "o.json").write_bytes(done.data)
    table = convert(tmp_path / "o.json", "neon8", model=made.path).data.decode()
    layers = json_format.loads(table).layers
    assert layers["fc"].weight_scales == made.table.layers["fc"].weight_scales


def test_dead_channels_and_tensors(tmp_path):
    model = mixed()
    for index, item in enumerate(model.graph.initializer):
        if item.name == "w2":
            array = onnx.numpy_helper.to_array(item).copy()
            array[3] = 0
            new = onnx.numpy_helper.from_array(array, "w2")
            model.graph.initializer[index].CopyFrom(new)
    made = case(tmp_path, model)
    dead = replace(made.table.tensors["k3"], scale=1 / 127, reasons=("dead",),
                   zero_point=0, scheme="symmetric")  # fmt: skip
    tensors = {**made.table.tensors, "k3": dead}
    base = tmp_path / "t.json"
    neon8.save_table(replace(made.table, tensors=tensors), base)
    assert "dead:3" in made.table.layers["pw2"].reasons
    text = convert(base, "ncnn").data.decode()
    line = next(line for line in text.split("\n") if line.startswith("pw2_param_0"))
    assert line.split()[4] == "0"
    (tmp_path / "t.table").write_text(text, encoding="utf-8")
    back = convert(tmp_path / "t.table", "neon8", onto=base).data.decode()
    layer = json_format.loads(back).layers["pw2"]
    assert layer.weight_scales == made.table.layers["pw2"].weight_scales
    assert layer.reasons == ("dead:3", "imported")
    cache = convert(base, "trt").data
    assert b"\nk3: 0\n" in cache
    (tmp_path / "c").write_bytes(cache)
    back = convert(tmp_path / "c", "neon8", onto=base).data.decode()
    entry = json_format.loads(back).tensors["k3"]
    assert entry.reasons == ("dead", "imported")
    assert entry.scale == float(np.float32(1 / 127))
    with pytest.raises(TableError, match="'k3': is all zero"):
        convert(base, "ort-overrides")


def test_int16_is_for_our_format_only(made, tmp_path):
    entry = replace(made.table.tensors["x"], bits=16, zero_point=0, scheme="symmetric")
    path = tmp_path / "t.json"
    neon8.save_table(
        replace(made.table, tensors={**made.table.tensors, "x": entry}), path
    )
    with pytest.raises(TableError, match="'x': has 16 bits"):
        convert(path, "trt")


def test_the_command(made, tmp_path, capsys):
    folder = made.path.parent
    out = tmp_path / "c"
    words = [str(folder / "neon8"), "--to", "trt", "--trt-version", "10.3.0", "-o"]
    assert main(["convert", *words, str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{out}: format trt, from neon8"
    assert "  the weight scales are left out" in said[-1]
    assert out.read_bytes().startswith(b"TRT-100300-EntropyCalibration2\n")
    words = [str(out), "--from", "trt", "--to", "glow", "-o", str(tmp_path / "g")]
    assert main(["convert", *words]) == 0
    assert "hash" in capsys.readouterr().out
    words = [str(out), "--from", "glow", "--to", "trt", "-o", str(tmp_path / "h")]
    assert main(["convert", *words]) == 2
    assert not (tmp_path / "h").exists()
