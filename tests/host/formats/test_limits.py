# SPDX-License-Identifier: Apache-2.0
"""neon8 convert: what one format can hold and the next one cannot; options in vain."""

import numpy as np
import pytest

import neon8
from neon8.errors import TableError
from neon8.formats import ncnn
from neon8.formats.conversion import convert_table as convert
from neon8.formats.conversion import read
from neon8.quant import table_json as json_format
from onnx_nets import chain
from table_nets import case, in_every_format, own_table

TENSORS = ("trt", "glow", "ort", "ort-cache", "ort-overrides")
"""Formats of tensors that need no network."""
CACHE = "TRT-8601-EntropyCalibration2\nx: {}\n"
RANGE = '{{"x": {{"CLS": "TensorData", "lowest": {}, "highest": {}}}}}'
GRID = '{{"x": [{{"quant_type": "QInt8", "scale": {}, "zero_point": {}}}]}}'
SOURCES = {
    "largest step": CACHE.format("7f7fffff"),
    "smallest step": CACHE.format("1"),
    "smallest normal step": CACHE.format("800000"),
    "dead": CACHE.format("0"),
    "widest range": RANGE.format(-3.4028e38, 3.4e38),
    "range that is 0 in float32": RANGE.format(-1e-300, 5e-324),
    "range of subnormal numbers": RANGE.format(-1e-44, 0),
    "largest unsigned": GRID.format(3e38, -128),
    "least grid": GRID.format(1e-30, 3),
}
WEIGHTS = "conv0_param_0 1 2 3 4 5 6 7 8\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return in_every_format(tmp_path_factory.mktemp("formats"), symmetric=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", TENSORS)
@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
def test_what_is_written_can_be_read(written, text, target):
    """Or is refused by the name of the tensor."""
    try:
        done = convert(written(text), target)
    except TableError as error:
        assert "tensor 'x': " in str(error)  # noqa: PT017
    else:
        table, _ = read(written(done.data.decode()), source_format=target)
        assert table.tensors.keys() == {"x"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", ["neon8", "ncnn"])
@pytest.mark.parametrize("bits", ["7f7fffff", "1", "7effffff", "200000"])
def test_scales_at_the_ends_of_float32(made, written, bits, target):
    """Our own table has the range too, ncnn the inverse."""
    path = written(CACHE.format(bits))
    done = None
    try:
        done = convert(path, target, onto=made.path.parent / "neon8")
    except TableError as error:
        assert "'x'" in str(error) or "layer" in str(error)  # noqa: PT017
    if done and target == "neon8":
        lo, hi = json_format.loads(done.data.decode()).tensors["x"].threshold
        assert np.isfinite([lo, hi]).all()
    elif done:
        read(written(done.data.decode()), source_format=target)


def test_each_tool_has_a_version_of_its_own(written):
    profile = convert(written(CACHE.format("3c010204")), "glow").data.decode()
    assert "GlowToolsVersion: ''" in profile
    data = convert(written(profile), "trt").data
    assert data.decode() == CACHE.format("3c010204")


@pytest.mark.parametrize(
    ("target", "option", "word"),
    [
        ("ort", {"trt_version": "8.6.1"}, "--trt-version has no use from trt to ort"),
        ("ort", {"ncnn_param": "no.param"}, "--ncnn-param has no use from trt to ort"),
        ("trt", {"trt_version": ""}, "--trt-version '' is no version"),
    ],
)
def test_options_in_vain(written, target, option, word):
    with pytest.raises(TableError, match=word):
        convert(written(CACHE.format("1")), target, **option)


@pytest.mark.parametrize("option", ["onto", "model"])
def test_tensors_that_the_network_does_not_have(made, written, option):
    folder = made.path.parent
    options = {option: {"onto": folder / "neon8", "model": made.path}[option]}
    strange = CACHE.format("3c010204").replace("x:", "strange:")
    with pytest.raises(TableError, match=r"none of its 1 tensor is .*--names"):
        convert(written(strange), "neon8", **options)
    more = (folder / "trt").read_text(encoding="utf-8") + "strange: 3c010204\nbar: 0\n"
    (note,) = convert(written(more), "neon8", **options).notes
    assert "'strange' and 1 other tensor" in note


def test_weights_alone_are_no_strangers(made, written):
    onto = made.path.parent / "neon8"
    assert convert(written(WEIGHTS), "neon8", onto=onto).notes == ()


@pytest.mark.parametrize("option", ["onto", "model"])
def test_a_scale_that_is_made_up_is_told(made, written, option):
    """Where the file has 0; a table of ours says it by its reason code."""
    folder = made.path.parent
    cache = (folder / "trt").read_text(encoding="utf-8").splitlines()
    cache = [
        f"{line.rpartition(': ')[0]}: 0" if line.startswith(("x:", "r0:")) else line
        for line in cache
    ]
    path = written("\n".join([*cache, "elsewhere: 0", ""]))
    options = {"onto": folder / "neon8", "model": made.path}
    done = convert(path, "neon8", **{option: options[option]})
    table = json_format.loads(done.data.decode())
    zero = [name for name, t in table.tensors.items() if "dead" in t.reasons]
    assert {"x", "r0"} <= set(zero)
    (note,) = (note for note in done.notes if "made up" in note)
    assert note.endswith("reason code dead: 'x' and 1 other tensor")
    own = written(done.data.decode())
    assert convert(own, "neon8", onto=own).notes == ()


def test_a_table_and_a_network_that_are_strangers(made, tmp_path):
    other = tmp_path / "other.json"
    json = (made.path.parent / "neon8").read_text(encoding="utf-8")
    other.write_text(json.replace(made.table.model_digest, "0" * 64), encoding="utf-8")
    with pytest.raises(TableError, match=r"other.json: .*another network"):
        convert(made.path.parent / "trt", "neon8", model=made.path, onto=other)


@pytest.fixture
def grouped(tmp_path):
    """A convolution of two groups and one of one."""
    steps = [("Conv", [(8, 2, 3, 3)], {"group": 2}), ("Conv", [(3, 8, 1, 1)], {})]
    return case(tmp_path, chain(steps, (1, 4, 6, 6)), symmetric=True)


def test_ncnn_has_one_scale_for_each_group(grouped, tmp_path, written):
    """The network tells, or our table; a table from ncnn goes back as it came."""
    made, (first, other) = grouped, grouped.table.layers
    text = f"{first}_param_0 2 4\n{other}_param_0 1 2 3\n{first} 1\n{other} 1\n"
    done = convert(written(text), "ncnn", model=made.path)
    assert done.data.decode() == text
    path = tmp_path / "t.json"
    path.write_text(json_format.dumps(made.table), encoding="utf-8")
    scales = made.table.layers[first].weight_scales
    largest = [max(scales[:4]), max(scales[4:])]
    assert len(set(scales)) == 8
    (tmp_path / "q.onnx").write_bytes(convert(path, "qdq", model=made.path).data)
    for source in (path, tmp_path / "q.onnx"):
        for options in ({}, {"model": made.path}, {"onto": path}):
            done = convert(source, "ncnn", **options)
            weights = ncnn.loads(done.data).weights
            assert weights[first] == pytest.approx(largest)
            assert len(weights[other]) == 3
            (note,) = (note for note in done.notes if "for each group" in note)
            assert note.endswith(f"the largest, for 1 layer, as for {first!r}")
    there = written(done.data.decode())
    for options in ({"onto": path}, {"onto": path, "model": made.path}):
        back = own_table(there, **options)
        found = np.reshape(back.layers[first].weight_scales, (2, 4))
        assert found == pytest.approx(np.repeat(largest, 4).reshape(2, 4), rel=1e-6)


def test_a_table_says_how_many_groups(grouped, tmp_path):
    """As observed, as bound to the network, and through its file."""
    np.savez(tmp_path / "x.npz", x=np.concatenate([s["x"] for s in grouped.samples]))
    seen = neon8.observe_model(grouped.path, tmp_path / "x.npz")
    for table in (grouped.table, neon8.solve_observation(seen)):
        back = json_format.loads(json_format.dumps(table))
        assert [layer.groups for layer in back.layers.values()] == [2, 1]
