# SPDX-License-Identifier: Apache-2.0
"""neon8 observe, merge and solve, and what calibrate has of them."""

import json
from functools import partial

import numpy as np
import pytest

import neon8
from calib_nets import branchy, images
from command_lines import refuse, succeed, written
from neon8.cli.main import main
from onnx_nets import chain, save

COUNT = 40


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calib")
    np.savez(folder / "x.npz", x=images(COUNT))
    save(folder, branchy())
    observe(folder, "whole.calib")
    return folder


def line(folder, output, *options, command="observe"):
    words = [command, folder / "net.onnx", "--data", folder / "x.npz", *options]
    return [str(word) for word in (*words, "-o", folder / output)]


def observe(folder, output, *options):
    assert main(line(folder, output, *options)) == 0
    return (folder / output).read_bytes()


@pytest.mark.parametrize(
    ("batch", "taken", "said"), [(4, 8, ", 4 at once"), ("N", 9, "")]
)
def test_every_command_counts_samples(tmp_path, capsys, batch, taken, said):
    """Single ones, however many of them the network takes at once."""
    steps = [("Conv", [(3, 2, 3, 3)], {}), ("GlobalAveragePool", [], {})]
    steps.append(("Flatten", [], {}))
    path = save(tmp_path, chain(steps, (batch, 2, 5, 5)))
    x = np.random.default_rng(0).normal(0, 1, (14, 2, 5, 5)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x, y=np.arange(14) % 3)
    np.save(tmp_path / "x.npy", x[:12])
    told = partial(succeed, capsys, warned=True)  # of what does not fill a batch
    part = ("--data", tmp_path / "x.npz", "--skip", 3, "--limit", 9)
    out = told("observe", path, *part, "-o", tmp_path / "a.calib")
    assert f"seen in {taken} samples{said}\n" in out
    table, n8 = tmp_path / "t.json", tmp_path / "net.n8"
    told("calibrate", path, *part, "-o", table)
    told("compile", path, "--scales", table, "-o", n8)
    for model in (path, n8):
        out = told("evaluate", model, *part, "--reference", path)
        assert out.splitlines()[0].endswith(f"{taken} samples")
    rows = tmp_path / "y.npy"
    told("run", n8, "--input", tmp_path / "x.npy", "-o", rows)
    assert np.load(rows).shape == (12, 3)


@pytest.mark.parametrize("count", [1, 3, 41])
def test_shards_merge_to_the_whole(files, tmp_path, capsys, count):
    """Also when there are more shards than samples."""
    shards = []
    for index in range(1, count + 1):
        shards.append(tmp_path / f"{index}.calib")
        assert main(line(files, shards[-1], "--shard", f"{index}/{count}")) == 0
    order = np.random.default_rng(count).permutation(count)
    capsys.readouterr()
    words = [shards[index] for index in order]
    out = succeed(capsys, "merge", *words, "-o", tmp_path / "all.calib")
    assert (tmp_path / "all.calib").read_bytes() == (files / "whole.calib").read_bytes()
    assert "40 samples of" in out


OWN = '{"tensors": {"a?": {"method": "eq"}}}'


@pytest.mark.parametrize(
    "options",
    [["--method", "kl", "--scheme", "symmetric", "--bits", 16], ["--override", OWN]],
)
def test_solve_is_the_second_half_of_calibrate(files, tmp_path, capsys, options):
    """Methods of the user's own have what they read, too."""
    if OWN in options:
        options = ["--override", written(tmp_path, "own.json", OWN.encode())]
    words = line(files, tmp_path / "a.json", *options, command="calibrate")
    succeed(capsys, *words)
    table, model = tmp_path / "b.json", files / "net.onnx"
    succeed(capsys, "solve", files / "whole.calib", model, *options, "-o", table)
    assert table.read_bytes() == (tmp_path / "a.json").read_bytes()


def test_overlap_and_other_models_are_refused_by_name(files, tmp_path, capsys):
    first, second = tmp_path / "1.calib", tmp_path / "2.calib"
    third, other = tmp_path / "3.calib", tmp_path / "other.calib"
    observe(files, first, "--limit", "5")
    observe(files, second, "--skip", "5", "--limit", "5")
    observe(files, third, "--skip", "9", "--limit", "5")
    model = branchy()
    model.doc_string = "another"
    path = save(tmp_path, model, "other.onnx")
    words = ["observe", path, "--data", files / "x.npz", "--skip", "20"]
    assert main([*map(str, words), "-o", str(other)]) == 0
    capsys.readouterr()
    out = tmp_path / "out.calib"
    error = refuse(capsys, "merge", first, second, third, "-o", out)
    assert f"{second} and {third}: both hold the sample with digest" in error
    error = refuse(capsys, "merge", first, other, "-o", out)
    assert f"{first} and {other}: the model's digest is" in error
    assert not out.exists()
    error = refuse(capsys, "merge", first, files / "x.npz", "-o", out)
    assert "x.npz: is not a .calib file" in error
    error = refuse(capsys, "merge", first, second, "-o", first)
    assert "is an input" in error


def test_the_report(files, tmp_path, capsys):
    report = tmp_path / "r.json"
    for count in ("1", "2"):
        options = ["--report", report, "--workers", count]
        out = succeed(capsys, *line(files, "r.calib", *options))
        assert (files / "r.calib").read_bytes() == (files / "whole.calib").read_bytes()
        value = json.loads(report.read_text())
        assert value["samples"] == [8, 16, 32, 40]
        doubled = max(group["moved"][1] for group in value["groups"].values())
        assert value["stable"] is (doubled <= 0.01)
        assert value["moved"][1] == doubled
        largest = value["tensors"]["x"]["largest"]
        x = images(COUNT)
        at = np.unravel_index(x.argmax(), x.shape)
        assert largest["sample"] == f"{files / 'x.npz'}[{at[0]}]"
        assert (largest["channel"], largest["value"]) == (at[1], float(x.max()))
        for group in value["groups"].values():
            assert (len(group["threshold"]), len(group["moved"])) == (4, 3)
        lines = out.splitlines()
        assert lines[1].startswith("samples")
        assert [text.split()[0] for text in lines[2:6]] == ["8", "16", "32", "40"]
        assert any(largest["sample"] in text for text in lines)
    last = value["groups"]["x"]["threshold"][-1]
    whole = neon8.solve_observation(neon8.load_observation(files / "whole.calib"))
    assert tuple(last) == whole.tensors["x"].threshold


def test_fast_says_which_layers_and_at_what_price(tmp_path, capsys):
    steps = [
        ("Conv", [(4, 3, 3, 3)], {}),
        ("Relu", [], {}),
        ("Conv", [(4, 4, 3, 3)], {}),
    ]
    save(tmp_path, chain(steps, (1, 3, 8, 8)))
    np.savez(tmp_path / "x.npz", x=images(COUNT))
    observe(tmp_path, "x.calib")
    words = ["solve", tmp_path / "x.calib", tmp_path / "net.onnx", "-o"]
    plain = succeed(capsys, *words, tmp_path / "p.json")
    assert "fast:" not in plain
    words = [*words, tmp_path / "f.json", "--fast", "--max-sqnr-loss"]
    out = succeed(capsys, *words, "50")
    assert "\nfast: 1 layer on the lattice of int8 Winograd\n" in out
    row = out.splitlines()[-1].split()
    (layer,) = (
        layer
        for layer in neon8.load_table(tmp_path / "f.json").layers.values()
        if layer.rounding == "lattice"
    )
    assert row[1:] == ["lattice", layer.input, f"{layer.sqnr_loss:.2f}"]
    shown = succeed(capsys, "inspect", tmp_path / "f.json")
    (row,) = (line for line in shown.splitlines() if "lattice" in line)
    assert f"{layer.sqnr_loss:.2f}" in row.split()
    out = succeed(capsys, *words, "0.001")
    assert out.endswith("\nfast: 0 layers on the lattice of int8 Winograd\n")
    same = (tmp_path / "f.json").read_bytes() == (tmp_path / "p.json").read_bytes()
    assert same


def test_until_stable_stops_by_itself(tmp_path, capsys):
    """On samples that all have the same distribution."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", x=rng.uniform(-1, 1, (300, 3, 8, 8)).astype("f4"))
    save(tmp_path, branchy())
    words = line(tmp_path, "s.json", "--until-stable", "8", command="calibrate")
    out = succeed(capsys, *words)
    samples = json.loads((tmp_path / "s.json").read_text())["samples"]
    assert samples in (16, 32, 64, 128)
    assert "\nstable: the limit is 8 %" in out
    out = succeed(capsys, *line(tmp_path, "s.calib", "--until-stable", "1e-9"))
    assert len(neon8.load_observation(tmp_path / "s.calib").samples) == 300
    assert "\nnot stable: the limit is 1e-09 %" in out


@pytest.mark.parametrize("options", [[], ["--workers", "2"], ["--until-stable", "1"]])
def test_a_shard_without_samples(files, tmp_path, capsys, options):
    """It says so, and is nothing to merge."""
    empty = tmp_path / "empty.calib"
    assert main(line(files, empty, "--shard", "1/1000", *options)) == 0
    out, error = capsys.readouterr()
    assert "seen in 0 samples" in out
    (warning,) = (text for text in error.splitlines() if "warning" in text)
    assert "shard 1/1000: has no sample" in warning
    succeed(capsys, *line(files, "one.calib", "--shard", "40/40"))
    parts = [str(empty), str(files / "whole.calib"), "-o", str(tmp_path / "a.calib")]
    succeed(capsys, "merge", *parts)
    assert (tmp_path / "a.calib").read_bytes() == (files / "whole.calib").read_bytes()


def test_solve_says_what_it_left_out(files, tmp_path, capsys):
    calib, table = files / "whole.calib", tmp_path / "t.json"
    out = succeed(capsys, "solve", calib, "-o", table)
    assert "need the network" in out
    assert "corrected" not in out.splitlines()[0]
    model = files / "net.onnx"
    out = succeed(capsys, "solve", calib, model, "-o", table)
    assert "need the network" not in out
    assert "biases of 4 layers corrected" in out.splitlines()[0]
    out = succeed(capsys, "solve", calib, model, "--plain", "-o", table)
    assert "need the network" not in out
    assert "corrected" not in out
    other = save(tmp_path, chain([("Relu", [], {})], (1, 3, 8, 8)))
    assert "of another model" in refuse(capsys, "solve", calib, other, "-o", table)


def test_the_functions_do_what_the_commands_do(files, tmp_path, capsys):
    """Whether the samples are in a file, in a list or come from a generator."""
    options = ["--limit", "20", "--skip", "3", "--until-stable", "100"]
    ranges = tmp_path / "ranges.json"
    ranges.write_text('{"tensors": {"x": {"min": -2, "max": 2}}}')
    more = ["--override", ranges, "--report", tmp_path / "want.json", "--bits", "16"]
    words = line(files, tmp_path / "a.json", *options, *more, command="calibrate")
    succeed(capsys, *words)
    x = images(COUNT)
    for number, data in enumerate((files / "x.npz", list(x), iter(x))):
        output, report = tmp_path / f"{number}.json", tmp_path / f"{number}.report"
        table = neon8.calibrate_model(
            files / "net.onnx",
            data,
            limit=20,
            skip=3,
            until_stable=1.0,
            bits=16,
            overrides=ranges,
            output=output,
            report=report,
            workers=1 + number,
        )
        assert output.read_bytes() == (tmp_path / "a.json").read_bytes()
        assert table == neon8.load_table(output)
        value, want = map(
            json.loads, (p.read_text() for p in (report, tmp_path / "want.json"))
        )
        for tensor in (*value["tensors"].values(), *want["tensors"].values()):
            for end in ("smallest", "largest"):
                tensor[end]["sample"] = None  # a file, or "sample 7"
        assert value == want


def test_pieces_of_what_cannot_be_counted(files):
    with pytest.raises(neon8.errors.DataError, match="give a list"):
        neon8.observe_model(files / "net.onnx", iter(images(COUNT)), shard=(1, 3))
