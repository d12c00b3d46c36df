# SPDX-License-Identifier: Apache-2.0
"""Every command's good path, through main() and through a process of its own."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import neon8
from command_lines import process, succeed
from neon8.cli.main import COMMANDS, main
from neon8.machines import EMULATIONS


def test_the_whole_line_in_processes(tiny, tmp_path):
    table, n8, out = (tmp_path / name for name in ("t.json", "m.n8", "y.npy"))
    x = np.load(tiny.data)["x"]
    np.save(tmp_path / "x.npy", x)
    data = ("--data", tiny.data)
    for words in (
        ("calibrate", tiny.onnx, *data, "--method", "minmax", "-o", table),
        ("compile", tiny.onnx, "--scales", table, "-o", n8),
        ("run", n8, "--input", tmp_path / "x.npy", "-o", out),
    ):
        done = process(*words, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(str(words[-1]))
    assert table.read_bytes() == tiny.table.read_bytes()
    assert n8.read_bytes() == tiny.n8.read_bytes()
    assert np.load(out).shape == (24, 6)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"m.n8", "t.json", "x.npy", "y.npy"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    out, err = capsys.readouterr()
    assert (stopped.value.code, err) == (0, "")
    assert f"\n  neon8 {command} " in out, "no example"
    assert max(map(len, out.splitlines())) <= 100


def test_version(capsys):
    assert succeed(capsys, "--version") == f"neon8 {neon8.__version__}\n"


def test_accumulator_aware_weights_are_told(tiny, tmp_path, capsys):
    n8 = tmp_path / "m.n8"
    words = ("compile", tiny.onnx, "--scales", tiny.table, "-o", n8)
    out = succeed(capsys, *words, "--accumulator-aware")
    assert n8.read_bytes() == tiny.n8.read_bytes()  # it costs more than 0.1 dB
    assert "accumulator-aware: 0 layers with larger weight scales" in out
    limit = ("--max-sqnr-loss", 30)
    lines = succeed(capsys, *words, "--accumulator-aware", *limit).splitlines()
    first = next(i for i, line in enumerate(lines) if "accumulator-aware" in line)
    rows = [line.split() for line in lines[first + 2 : -1]]
    assert rows
    assert {row[-1] for row in rows} == {"yes"}
    assert f"{len(rows)} layer" in lines[first]
    with neon8.Model.open(n8) as model:
        steps = {step.name: step for step in model.steps if step.macs}
    assert {step.int16_depth for step in steps.values()} <= {4, 8}
    assert {row[0] for row in rows} <= set(steps)


def test_compile_for_images(tiny, tmp_path, capsys):
    settings, n8 = tmp_path / "p.toml", tmp_path / "m.n8"
    settings.write_text("mean = [128]\nstd = [64]\n")
    told = succeed(
        capsys,
        *("compile", tiny.onnx, "--scales", tiny.table, "-o", n8),
        *("--io-image", settings),
    )
    assert "a uint8 image as input, float outputs\n" in told
    with neon8.Model.open(n8) as model:
        _, h, w, c = model.inputs["image"].shape
        pixels = np.random.default_rng(2).integers(0, 256, (1, h, w, c), np.uint8)
        got = model.session().run({"image": pixels})["scores"]
    real = ((pixels - np.float32(128)) / np.float32(64)).transpose(0, 3, 1, 2)
    with neon8.Model.open(tiny.n8) as model:
        wanted = model.session().run({"image": np.ascontiguousarray(real)})["scores"]
    assert (got == wanted).all()
    assert f"image  uint8  1x{h}x{w}x{c}" in " ".join(
        succeed(capsys, "inspect", n8).split("\n")
    ).replace("   ", "  ")


@pytest.mark.parametrize(
    "where",
    [
        ("--target", "native"),
        ("--target", "aarch64", "--cpu", "cortex-a53"),
        ("--target", "armv7", "--cpu", "cortex-a9"),
    ],
    ids=lambda words: words[1],
)
def test_run_gives_the_same_bytes_everywhere(tiny, tmp_path, capsys, where):
    x = np.load(tiny.data)["x"][:3]
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "y.npy"
    succeed(capsys, "run", tiny.n8, "--input", tmp_path / "x.npy", "-o", out, *where)
    with neon8.Model.open(tiny.n8, isa="c") as model, model.session() as session:
        rows = [session.run({"image": image[None]})["scores"] for image in x]
    assert np.load(out).tobytes() == np.concatenate(rows).tobytes()


def test_run_takes_one_sample_without_its_batch_axis(tiny, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.load(tiny.data)["x"][0].astype(np.float64))
    out = succeed(capsys, "run", tiny.n8, "--input", tmp_path / "x.npy", "--isa", "c")
    assert out.splitlines()[0].split()[:2] == ["run", "output"]
    assert out.splitlines()[1].split()[:4] == ["0", "scores", "float32", "1x6"]


def test_run_moves_int8_untouched(tiny, tmp_path, capsys):
    q = np.arange(2 * 192, dtype=np.int64).reshape(2, 3, 8, 8).astype(np.int8)
    np.savez(tmp_path / "x.npz", image=q)
    out = tmp_path / "y.npz"
    succeed(capsys, "run", tiny.n8_int8, "--input", tmp_path / "x.npz", "-o", out)
    with neon8.Model.open(tiny.n8_int8) as model, model.session() as session:
        rows = [session.run({"image": one[None]})["scores"] for one in q]
    assert rows[0].dtype == np.int8
    np.testing.assert_array_equal(np.load(out)["scores"], np.concatenate(rows))


@pytest.mark.parametrize("target", EMULATIONS)
def test_evaluate_prints_one_json_object(tiny, capsys, target):
    out = succeed(
        capsys,
        *("evaluate", tiny.n8, "--data", tiny.labelled, "--json"),
        *("--reference", tiny.onnx, "--target", target, "--limit", 6),
    )
    result = json.loads(out)
    first = ["n", "top1", "top5", "agreement", "sqnr_db"]
    assert list(result)[: len(first)] == first
    assert result["n"] == 6
    assert all(0 <= result[name] <= 100 for name in ("top1", "top5", "agreement"))
    assert result["sqnr_db"] > 20


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_that_the_terminal_cannot_show(tiny, tmp_path, encoding):
    odd = os.fsencode(tmp_path) + "/größe-".encode() + b"\xff.json"
    with Path(os.fsdecode(odd)).open("wb") as file:
        file.write(tiny.table.read_bytes())
    done = process(
        "inspect", os.fsdecode(odd), env=os.environ | {"PYTHONIOENCODING": encoding}
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_every_public_name_is_there():
    assert set(neon8.__all__) <= set(dir(neon8))
    for name in neon8.__all__:
        assert getattr(neon8, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        neon8.nonsense  # noqa: B018
