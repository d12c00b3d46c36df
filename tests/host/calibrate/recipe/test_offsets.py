# SPDX-License-Identifier: Apache-2.0
"""A constant on linear channels, taken back by biases, costs nothing."""

import numpy as np
import pytest
from onnx import numpy_helper

import neon8
from neon8.errors import TableError
from neon8.formats.conversion import convert_table as convert
from onnx_nets import net, node, save
from recipe_kits import CHANNELS, SAMPLES, SHAPE, sqnr

F = np.float32
SHIFT = np.array([30, -30, 30, 30, -30, 30, -30, -30])


def network(shift=None, *, operator="", pad=0, kernel=1):
    """x -> conv -> any activation -> conv -> relu -> conv -> y.

    shift: (CHANNELS,), what is added to the channels between the first two.
    """
    rng = np.random.default_rng(2)
    weights = {
        "w1": rng.normal(0, 0.3, (CHANNELS, 3, 3, 3)),
        "b1": rng.normal(0, 0.3, CHANNELS),
        "w2": rng.normal(0, 0.3, (CHANNELS, CHANNELS, kernel, kernel)),
        "b2": rng.normal(0, 0.3, CHANNELS),
        "w3": rng.normal(0, 0.3, (5, CHANNELS, 1, 1)),
    }
    if shift is not None:
        weights["b1"] = weights["b1"] + shift
        weights["b2"] = weights["b2"] - weights["w2"].sum(axis=(2, 3)) @ shift
    nodes = [node("Conv", "x w1 b1", "s1" if operator else "t1", "c1", pads=[1] * 4)]
    if operator:
        nodes.append(node(operator, "s1", "t1", "a1"))
    nodes += [
        node("Conv", "t1 w2 b2", "s2", "c2", pads=[pad] * 4),
        node("Relu", "s2", "t2"),
        node("Conv", "t2 w3", "y", "c3"),
    ]
    return net(nodes, {"x": SHAPE}, "y", weights)


def calibrated(folder, *args, plain=False, **options):
    settings = {key: options.pop(key) for key in ("scheme",) if key in options}
    path = save(folder, network(*args, **options))
    return path, neon8.calibrate_model(path, SAMPLES, plain=plain, **settings)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("scheme", "least"), [("auto", 0.5), ("symmetric", 1.5)])
def test_shifted_biases_cost_nothing(kernel, scheme, least, tmp_path):
    """But the room that is left above values seen in so few samples.

    Symmetric, half of the range of a lopsided channel is empty besides.
    """
    options = {"kernel": kernel, "scheme": scheme}
    usual = sqnr(*calibrated(tmp_path, **options))
    lost = sqnr(*calibrated(tmp_path, SHIFT, plain=True, **options))
    path, table = calibrated(tmp_path, SHIFT, **options)
    assert sqnr(path, table) > usual - least
    assert lost < usual - 6
    made = {name for name, each in table.tensors.items() if each.offsets}
    assert made == {"t1"}
    entry = table.tensors["t1"]
    assert entry.reasons[0] == "absorbed"
    assert np.array(entry.offsets) == pytest.approx(SHIFT, abs=3)
    assert entry.factors == ()


def test_offsets_and_factors(tmp_path):
    """Channels of all sizes that are shifted as well have both."""
    sizes = np.exp2([0, -8, -3, -6, 0, -1, -7, -4])
    model = network()
    usual = sqnr(*calibrated(tmp_path))
    arrays = {t.name: numpy_helper.to_array(t).astype(float) for t in
              model.graph.initializer}  # fmt: skip
    shift = SHIFT * sizes
    arrays["w1"] = arrays["w1"] * sizes[:, None, None, None]
    arrays["b1"] = arrays["b1"] * sizes + shift
    arrays["w2"] = arrays["w2"] / sizes[:, None, None]
    arrays["b2"] = arrays["b2"] - arrays["w2"][:, :, 0, 0] @ shift
    for tensor in model.graph.initializer:
        tensor.raw_data = arrays[tensor.name].astype(F).tobytes()
    path = save(tmp_path, model)
    table = neon8.calibrate_model(path, SAMPLES)
    entry = table.tensors["t1"]
    assert entry.offsets
    assert entry.factors
    assert entry.reasons[:2] == ("equalized", "absorbed")
    assert sqnr(path, table) > usual - 1.5


@pytest.mark.parametrize("options", [{}, {"operator": "Relu"}, {"pad": 1}])
def test_other_networks_have_no_offsets(options, tmp_path):
    """Without need, after an activation, in front of padding."""
    shift = None if not options else SHIFT
    _, table = calibrated(tmp_path, shift, **options)
    assert not any(each.offsets for each in table.tensors.values())


def test_all_channels_on_one_side_of_zero(tmp_path):
    """The tensor was unsigned; less its means it is not."""
    _, table = calibrated(tmp_path, np.abs(SHIFT))
    entry = table.tensors["t1"]
    assert entry.scheme == "asymmetric"
    assert entry.min < 0 < entry.max
    path, plain = calibrated(tmp_path, np.abs(SHIFT), scheme="symmetric_with_uint8")
    assert plain.tensors["t1"].scheme == "symmetric"
    assert sqnr(path, plain) > 25


def test_the_users_ranges_and_wide_tensors_stay(tmp_path):
    path = save(tmp_path, network(SHIFT))
    ranges = tmp_path / "own.json"
    ranges.write_text('{"tensors": {"t1": {"min": -40, "max": 40}}}')
    own = neon8.calibrate_model(path, SAMPLES, overrides=ranges)
    wide = neon8.calibrate_model(path, SAMPLES, precision={"t1": "int16"})
    assert own.tensors["t1"].offsets == wide.tensors["t1"].offsets == ()


def test_corrections_are_those_of_the_moved_network(tmp_path):
    """Means of inputs are near 0, so rounding the weights moves next to nothing."""
    _, table = calibrated(tmp_path, SHIFT)
    _, plain = calibrated(tmp_path)
    moved = np.abs(table.layers["c2"].bias_correction).max()
    assert moved < np.abs(plain.layers["c2"].bias_correction).max() + 1e-3


def test_tables(tmp_path):
    """JSON keeps offsets, refuses wrong ones; formats without a place refuse them."""
    path, table = calibrated(tmp_path, SHIFT)
    file = tmp_path / "t.json"
    neon8.save_table(table, file)
    assert neon8.load_table(file) == table
    assert "absorbed" in file.read_text()
    for to in ("ncnn", "trt"):
        with pytest.raises(TableError, match=f"{to} has no offsets of channels, .*t1"):
            convert(file, to, model=path)
    text = file.read_text()
    first = text.index('"offsets": [') + len('"offsets": [')
    for wrong in ("1e99, ", '"a", ', "NaN, ", "null, "):
        file.write_text(text[:first] + wrong + text[first:])
        with pytest.raises(TableError):
            neon8.load_table(file)
    file.write_text(text.replace('"offsets": [', '"offsets": [], "reasons2": ['))
    with pytest.raises(TableError):
        neon8.load_table(file)


def test_diagnosis_and_levels_know_offsets(tmp_path):
    """What is told of the shifted network is what is told of the other one."""
    path, table = calibrated(tmp_path, SHIFT)
    found = neon8.diagnose_model(path, table, SAMPLES[:6], top=1)
    tensor = next(each for each in found.tensors if each.name == "t1")
    assert tensor.sqnr_db > 40
    assert found.sqnr_db > 25
    layer = next(each for each in found.layers if each.layer == "c1")
    assert layer.sqnr_db > 40
    thorough = neon8.calibrate_model(path, SAMPLES, thorough=True)
    assert sqnr(path, thorough) > sqnr(path, table) - 0.5
