# SPDX-License-Identifier: Apache-2.0
"""Bad usage and input: status 2, one line that names the culprit, no file left."""

import json
import shlex

import numpy as np
import pytest

from command_lines import refuse

SHAPE = (1, 3, 8, 8)
CALIBRATE = "calibrate {tiny.onnx} --data {tiny.data} -o {new}"
OBSERVE = "observe {tiny.onnx} --data {tiny.data} -o {new}"
COMPILE = "compile {tiny.onnx} --scales {tiny.table} -o {new}"
CASES = {
    "": "COMMAND | --help",
    "nonsense": "nonsense | --help",
    "calibrate": "MODEL.onnx | --help",
    f"{CALIBRATE} --limit 0": "--limit | --help",
    f"{CALIBRATE} --skip -1": "--skip | --help",
    f"{CALIBRATE} --limit {'9' * 5000}": "--limit | --help",
    f"{CALIBRATE} --method luck": "luck | --help",
    f"{CALIBRATE} --max-sqnr-loss 2": "means nothing without --fast: add that",
    f"{COMPILE} --max-sqnr-loss 2": "without --accumulator-aware: add that",
    f"{COMPILE} --max-sqnr-loss 0": "'0' is not a number | --help",
    f"{COMPILE} --max-sqnr-loss nan": "'nan' is not | --help",
    f"{COMPILE} --io int4": "int4 | --help",
    "run {tiny.n8} --input {zeros} --cpu z80": "z80 | --help",
    "convert {tiny.table} --to stone -o {new}": "stone | --help",
    "inspect a b": "b | --help",
    "run {tiny.n8} --max-bytes 1000 --input {zeros}": "1000 | --max-bytes | tiny.n8",
    "run {tiny.n8} --max-bytes 1000 --input {zeros} --target aarch64": "1000 | tiny.n8",
    "run {tiny.n8} --max-bytes 1000 --input {zeros} --target armv7": "1000 | tiny.n8",
    "evaluate {tiny.n8} --max-bytes 1000 --data {tiny.data}": "1000 | tiny.n8",
    "inspect {tiny.n8} --max-bytes 1000": "1000 | tiny.n8",
    "inspect {tiny.n8} --max-bytes 1000 --target aarch64": "1000 | tiny.n8",
    "inspect {tiny.n8} --max-bytes 1000 --target armv7": "1000 | tiny.n8",
    "calibrate {tiny.onnx} --data '' -o {new}": "argument --data: is empty | variable",
    "calibrate {rubbish} --data {tiny.data} -o {new}": "rubbish",
    "calibrate {empty} --data {tiny.data} -o {new}": "empty",
    "calibrate {missing} --data {tiny.data} -o {new}": "missing",
    "calibrate {folder} --data {tiny.data} -o {new}": "folder",
    "calibrate {dynamic} --data {tiny.data} -o {new}": "a1 | DynamicQuantizeLinear",
    "calibrate {tiny.onnx} --data {nan} -o {new}": "nan.npy | NaN",
    "calibrate {tiny.onnx} --data {infinite} -o {new}": "infinite.npy",
    "calibrate {tiny.onnx} --data {wide} -o {new}": "wide.npy | [3, 8, 9]",
    "calibrate {tiny.onnx} --data {folder} -o {new}": "folder",
    "calibrate {tiny.onnx} --data {missing} -o {new}": "missing",
    "calibrate {tiny.onnx} --data {pickle} -o {new}": "pickle.npy",
    f"{CALIBRATE} --skip 24": "train.npz | 24",
    f"{CALIBRATE} --preprocess {{half_toml}}": "half_toml",
    f"{CALIBRATE} --preprocess {{other_key}}": "other_key | mena",
    "calibrate {tiny.onnx} --data {tiny.data} --preprocess {toml} -o {toml}": (
        "toml: is an input"
    ),
    "compile {tiny.onnx} --scales {scale_0} -o {new}": "scale_0 | image | scale",
    "compile {tiny.onnx} --scales {scale_inf} -o {new}": "scale_inf",
    "compile {tiny.onnx} --scales {scale_negative} -o {new}": "image | scale",
    "compile {seed_9} --scales {tiny.table} -o {new}": "another",
    "compile {tiny.onnx} --scales {half_json} -o {new}": "half_json",
    "convert {surrogate} --to ncnn -o {new}": "surrogate",
    "compile {tiny.onnx} --scales {missing} -o {new}": "missing",
    "compile {tiny.onnx} --scales {tiny.table} -o {tiny.onnx}": "tiny.onnx | input",
    "compile {tiny.onnx} --scales {tiny.table} -o {new}/m.n8": "m.n8 | folder",
    "compile {tiny.onnx} --scales {tiny.table} -o {folder}": "folder",
    "run {cut} --input {tiny.data}": "cut",
    "run {tiny.onnx} --input {tiny.data}": "tiny.onnx | .n8",
    "run {tiny.n8} --input {missing}": "missing",
    "run {tiny.n8} --input {wide}": "wide.npy | [1, 3, 8, 8]",
    "run {tiny.n8} --input {nothing}": "nothing.npy",
    "run {tiny.n8_int8} --input {zeros}": "zeros.npy | float32 | int8",
    "run {tiny.n8} --input {nan} -o {new}": "nan.npy | NaN",
    "run {tiny.n8} --input {zeros} --cpu max": "add --target aarch64 or armv7",
    "run {tiny.n8} --input {zeros} --cpu cortex-a9": "cortex-a9 | add --target armv7",
    "run {tiny.n8} --input {zeros} --cpu cortex-a9 --target aarch64": (
        "a core of armv7, not of aarch64 | cortex-a53, neoverse-n1, max"
    ),
    "run {tiny.n8} --input {zeros} --cpu cortex-a53 --target armv7": (
        "a core of aarch64, not of armv7 | cortex-a9, cortex-a15, max"
    ),
    "run {tiny.n8} --input {zeros} --isa neon": "tiny.n8",
    "evaluate {tiny.onnx} --data {tiny.data} --target aarch64": "tiny.onnx | aarch64",
    "evaluate {tiny.n8} --data {tiny.data} --reference {photo}": "photo | image",
    "calibrate {tiny.onnx} --data {missing}.npz -o {new}": "No such file or directory",
    "run {tiny.n8} --input {missing}.npy": "No such file or directory",
    "diagnose {seed_9} {tiny.table} --data {tiny.data}": "of another model",
    "diagnose {tiny.onnx} {tiny.table} --data {tiny.data} --plot {tiny.table}": (
        "is an input"
    ),
    f"{OBSERVE} --shard 0/3": "is not a whole number of 1 or more",
    f"{OBSERVE} --shard 4/3": "there is no piece 4 of 3",
    f"{OBSERVE} --shard 1": "not of the form i/n",
    f"{OBSERVE} --workers 0": "is not a whole number of 1 or more",
    f"{OBSERVE} --engine ray://x:1": "of the form dask://HOST:PORT",
    f"{OBSERVE} --engine dask://x": "of the form dask://HOST:PORT",
    f"{OBSERVE} --engine dask://x:1 --workers 2": "--engine for a cluster",
    f"{OBSERVE} --until-stable 0": "not a percentage",
    f"{OBSERVE} --until-stable nan": "not a percentage",
    f"{OBSERVE} --until-stable net.onnx": "'net.onnx' is not a percentage",
    f"{OBSERVE} --until-stable": "--until-stable: expected one argument",
    f"{OBSERVE} --report {{new}}": "is to be written twice",
    "inspect {rubbish}": "rubbish",
    "inspect {library}": "library",
    "inspect {archive}": "archive",
    "convert {missing} --to ncnn -o {new}": "missing",
}
"""By command line, parts of what it says."""


def scaled(tiny, scale: float) -> bytes:
    """The table with another scale of tensor 'image'."""
    data = json.loads(tiny.table.read_text())
    data["tensors"]["image"]["scale"] = scale
    return json.dumps(data).encode()


@pytest.fixture(scope="module")
def files(tiny, tmp_path_factory):
    """The paths that the command lines name."""
    folder = tmp_path_factory.mktemp("bad")
    dynamic = tiny.net()
    dynamic.graph.node[1].op_type = "DynamicQuantizeLinear"
    photo = tiny.net()
    photo.graph.input[0].name = photo.graph.node[0].input[0] = "photo"
    contents = {
        "rubbish": b"\x00\xff rubbish",
        "empty": b"",
        "dynamic": dynamic.SerializeToString(),
        "seed_9": tiny.net(seed=9).SerializeToString(),
        "photo": photo.SerializeToString(),
        "half_toml": b"size = [8,",
        "other_key": b"mena = [1]",
        "toml": b'color = "rgb"',
        "half_json": b"{oops",
        "scale_0": scaled(tiny, 0),
        "scale_inf": scaled(tiny, float("inf")),
        "scale_negative": scaled(tiny, -0.5),
        "surrogate": tiny.table.read_bytes().replace(b'"image"', b'"\\ud800"'),
        "cut": tiny.n8.read_bytes()[:-1],
        "library": b"\x7fELF\x02\x01\x01" + b"\xff" * 90,
        "archive": b"!<arch>\n" + b"x" * 70,
        "pickle.npy": b"\x80\x04\x95.",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    one_odd = np.zeros((3, *SHAPE[1:]), np.float32)
    arrays = {"zeros": np.zeros(SHAPE, np.float32), "wide": np.zeros((2, 3, 8, 9))}
    arrays["nothing"] = arrays["wide"][:0]
    for name, value in (("nan", np.nan), ("infinite", -np.inf)):
        arrays[name] = one_odd.copy()
        arrays[name][1, 2, 3, 4] = value
    for name, array in arrays.items():
        np.save(folder / name, array.astype(np.float32))
    (folder / "folder").mkdir()
    paths = {path.name.removesuffix(".npy"): path for path in folder.iterdir()}
    return {"tiny": tiny, "missing": folder / "missing", **paths}


@pytest.mark.parametrize("line", CASES, ids=lambda line: line[:90])
def test_bad_input_gives_one_line(files, tmp_path, capsys, line):
    words = shlex.split(line.format(**files, new=tmp_path / "new"))
    said = refuse(capsys, *words)
    for part in CASES[line].split(" | "):
        assert part in said
    assert list(tmp_path.iterdir()) == []
