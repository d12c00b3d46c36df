# SPDX-License-Identifier: Apache-2.0
"""neon8 convert: ncnn's names, folded weights, what is dead, the command line."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest

import neon8
from neon8.cli.main import main
from neon8.errors import TableError
from neon8.formats import ncnn
from neon8.formats.conversion import convert_table as convert
from neon8.formats.conversion import read
from neon8.formats.foreign_table import params_of
from neon8.ir.groups import scale_groups
from neon8.quant import table_json as json_format
from neon8.quant.grid import at_bits
from neon8.rewrite.bits import in_float32, with_wide_weights
from onnx_nets import net, node
from table_nets import case, mixed, own_table

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
        options |= {"ncnn_param": param, "onto": folder / "neon8"}
        table = own_table(path, **options)
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
            node("Flatten", "r0", "r1", "flat"),
            node("MatMul", "r1 w1", "y", "fc"),
        ],
        {"x": (1, 2, 2, 2)},
        "y",
        {
            "w0": rng.normal(0, 1, (3, 2, 1, 1)).astype(f),
            "w1": rng.normal(0, 1, (12, 4)).astype(f),
            **{name: rng.uniform(1, 2, 3).astype(f) for name in "sbmv"},
        },
    )
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
    layers = own_table(tmp_path / "o.json", model=made.path).layers
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
    layer = own_table(tmp_path / "t.table", onto=base).layers["pw2"]
    assert layer.weight_scales == made.table.layers["pw2"].weight_scales
    assert layer.reasons == ("dead:3", "imported")
    cache = convert(base, "trt").data
    assert b"\nk3: 0\n" in cache
    (tmp_path / "c").write_bytes(cache)
    entry = own_table(tmp_path / "c", onto=base).tensors["k3"]
    assert entry.reasons == ("dead", "imported")
    assert entry.scale == float(np.float32(1 / 127))
    with pytest.raises(TableError, match="'k3': is all zero"):
        convert(base, "ort-overrides")


@pytest.fixture
def wide(made, tmp_path):
    """The table with 16 bits, solved or not it does not matter here, in a file."""
    tensors = {
        name: replace(
            entry,
            bits=16,
            scale=float(np.float32(entry.scale / 256)),
            zero_point={"symmetric": 0, "unsigned": -32768}.get(entry.scheme, 1000),
        )
        for name, entry in made.table.tensors.items()
    }
    path = tmp_path / "wide.json"
    neon8.save_table(replace(made.table, tensors=tensors), path)
    return path


@pytest.mark.parametrize("to", ["ncnn", "trt", "qdq"])
def test_16_bits_where_a_format_has_8(made, wide, to):
    text = "wide.json: .* holds 8 bits only, tensor '.*' has 16; calibrate with"
    text += " --plain, without --precision and --bits"
    for options in ({"model": made.path}, {"onto": wide, "model": made.path}):
        with pytest.raises(TableError, match=text):
            convert(wide, to, **options)


def refuses(made, table, path, texts):
    """Each of these formats says why, and our own has it all."""
    neon8.save_table(table, path)
    for to, text in texts.items():
        with pytest.raises(TableError, match=f"{path.name}: {to} {text}"):
            convert(path, to, model=made.path)
    assert convert(path, "neon8").data == path.read_bytes()


@pytest.mark.parametrize(
    ("bits", "remedy"),
    [
        (7, "without --fast and with --bits 8"),
        (14, "with --plain, without --precision and --bits"),
    ],
)
def test_one_tensor_of_other_bits(made, tmp_path, bits, remedy):
    tensors = made.table.tensors | {"r0": at_bits(made.table.tensors["r0"], bits)}
    path = tmp_path / "other.json"
    said = f"bits only, tensor 'r0' has {bits}; calibrate {remedy}"
    held = {"ncnn": "8", "qdq": "8", "ort-overrides": "8 or 16"}
    texts = {to: f"holds {each} {said}" for to, each in held.items()}
    refuses(made, replace(made.table, tensors=tensors), path, texts)
    assert f"1 tensor of {bits} bits" in convert(path, "ort").notes[0]


def test_a_tensor_in_float32(made, tmp_path):
    path = tmp_path / "float.json"
    groups = scale_groups(made.graph)
    text = "quantizes all tensors, and 'r0' is float32; calibrate with --plain, without"
    texts = dict.fromkeys(("trt", "ncnn", "ort", "ort-overrides", "glow"), text)
    refuses(made, in_float32(made.table, groups, [groups["r0"]]), path, texts)
    model = onnx.load_model_from_string(convert(path, "qdq", model=made.path).data)
    rounded = {n.input[0] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    assert rounded > {"l1", "r2"}
    assert not rounded & {"x", "r0", "p0"}  # before conv0 and after it


def test_a_layer_with_weights_of_16_bits(made, tmp_path):
    """What says how weights are refuses it, what does not tells of it."""
    path = tmp_path / "wide.json"
    name = next(iter(made.table.layers))
    table = with_wide_weights(made.table, made.graph, [name])
    assert table.layers[name].bits == 16
    text = f"holds weights of 8 bits only, layer '{name}' has 16; calibrate without "
    text += f"--precision weights16:{name}"
    texts = dict.fromkeys(("ncnn", "ort-overrides", "qdq"), text)
    refuses(made, table, path, texts)
    said = "1 layer with weights of 16 bits will have others"
    assert any(said in note for note in convert(path, "trt").notes)


@pytest.mark.parametrize("to", ["ncnn", "ort-overrides"])
@pytest.mark.parametrize(
    ("rounding", "levels", "said"),
    [
        ("lattice", b"", "1 layer on the lattice"),
        ("chosen", b"\x01", "1 layer with levels chosen by --thorough"),
    ],
)
def test_another_rounding_is_told(made, tmp_path, to, rounding, levels, said):
    """Other tools round the same weights with the same scales to others."""
    path = tmp_path / "t.json"
    name, layer = next(iter(made.table.layers.items()))
    layer = replace(layer, rounding=rounding, levels=levels)
    layers = made.table.layers | {name: layer}
    json_format.save(replace(made.table, layers=layers), path)
    notes = convert(path, to, model=made.path).notes
    assert any(said in note for note in notes)
    same = convert(path, "neon8")
    assert same.data == path.read_bytes()
    assert not any(said in note for note in same.notes)


def test_16_bits_stay(made, wide, tmp_path):
    """In our own format, through overrides, and where another table has nothing."""
    data = wide.read_bytes()
    assert convert(wide, "neon8").data == data
    assert convert(wide, "neon8", model=made.path).data == data
    table = json_format.loads(data.decode())
    path = tmp_path / "o"
    path.write_bytes(convert(wide, "ort-overrides", model=made.path).data)
    for name, entry in own_table(path, model=made.path).tensors.items():
        want = table.tensors[name]
        assert entry.bits == 16
        assert params_of(entry) == params_of(want)
    path.write_bytes(b"TRT-8601-EntropyCalibration2\nx: 3d418306\n")
    mixed = own_table(path, onto=wide)
    assert mixed.tensors["x"].bits == 8
    assert {**mixed.tensors, "x": None} == {**table.tensors, "x": None}


@pytest.mark.parametrize("to", ["glow", "ort", "ort-cache"])
def test_ranges_of_16_bits(made, wide, tmp_path, to):
    done = convert(wide, to)
    count = len(made.table.tensors)
    assert f"{to} has ranges, not bits: {count} tensors of 16 bits" in done.notes[0]
    path = tmp_path / "ranges"
    path.write_bytes(done.data)
    span = read(path)[0].tensors["r0"]
    entry = json_format.load(wide).tensors["r0"]
    levels = 32767 - entry.zero_point
    assert span.hi == pytest.approx(entry.scale * levels, rel=1e-7)


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
