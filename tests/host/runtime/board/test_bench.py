# SPDX-License-Identifier: Apache-2.0
"""`neon8 bench`, what it stores, and what `neon8 profile --measured` makes of it."""

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from neon8 import text
from neon8.cli.main import main
from neon8.errors import SettingsError, TableError
from neon8.inspection.bench import described
from neon8.profile import measured
from neon8.profile.bench import bench_model, evicted, kinds_of, ways_of
from neon8.profile.measured import Kind
from neon8.profile.profile import predicted, pricer, profile_model
from neon8.runtime import Model
from neon8.settings.stages import ProfileSettings

ROOT = Path(__file__).resolve().parents[4]
SMALL, OPEN = (ROOT / "tests" / "golden" / f"{name}.n8" for name in ("small", "open"))
QUICK = {"seconds": 0.05, "most_runs": 5}


@pytest.fixture(scope="module")
def bench():
    """This machine, which says that it is a Raspberry Pi 4."""
    found = bench_model(SMALL, threads=(1,), **QUICK)
    kind = Kind(name="cortex-a72", cpus=(0, 1, 2, 3), mhz=1500.0)
    rows = tuple(replace(row, kind=kind.name) for row in found.rows)
    return replace(found, board="Raspberry Pi 4", kinds=(kind,), rows=rows)


def test_this_machine(tmp_path, capsys):
    path = tmp_path / "net.bench.json"
    words = ["--seconds", "0.1", "--most-runs", "7", "-o", str(path), "--json"]
    assert main(["bench", str(SMALL), *words]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = measured.load(path)
    assert measured.dumps(found) == path.read_bytes()
    assert (found.target, found.emulated, found.complete) == ("native", False, True)
    cpus = sum(len(kind.cpus) for kind in found.kinds)
    assert cpus >= len(os.sched_getaffinity(0))
    with Model.open(SMALL) as model:
        names = ["inputs", *(step.name for step in model.steps), "outputs"]
        assert [part.name for part in found.parts] == names
        for row in found.rows:
            assert list(row.kernels) == [step.kernel for step in model.steps]
            assert 3 <= row.runs <= 7
            assert bool(row.counts) != bool(row.uncounted)
    assert {row.cold for row in found.rows} == {False, True}
    assert len(shown["runs"]) == len(found.rows)
    assert len(shown["layers"]) == len(names)
    assert shown["runs"][0]["median_ms"] == found.rows[0].total.median


def test_emulated_time_is_no_time(tmp_path, capsys):
    path = tmp_path / "net.bench.json"
    words = ["--target", "armv7", "--cpu", "cortex-a9", "--threads", "1"]
    words += ["--seconds", "0.01", "-o", str(path)]
    assert main(["bench", str(SMALL), *words]) == 0
    assert "emulated: qemu keeps no time" in capsys.readouterr().out
    with pytest.raises(SettingsError, match="emulated, and emulated time is no time"):
        profile_model(SMALL, measured=path)


def test_open_dimensions(adb_board):
    shapes = {"image": (2, 3, 6, 14)}
    options = {"shapes": shapes, "target": adb_board.target, "threads": (2,)}
    found = bench_model(OPEN, **options, **QUICK)
    assert [(row.threads, row.cold) for row in found.rows] == [(2, False), (1, True)]


def test_board_beside_the_prediction(bench, tmp_path, capsys):
    path = tmp_path / "net.bench.json"
    path.write_bytes(measured.dumps(bench))
    found = profile_model(SMALL, measured=path)
    row = bench.row("cortex-a72")
    assert row is not None
    assert found.ms == pytest.approx(row.total.median)
    assert found.span == pytest.approx((row.total.least, row.total.p95))
    alone = profile_model(SMALL, core="cortex-a72", ghz=1.5)
    assert found.scaled == pytest.approx(row.total.median / alone.ms)
    slower = profile_model(SMALL, measured=path, ghz=0.75)
    assert row.total.median < slower.ms <= 2.01 * row.total.median
    assert main(["profile", str(SMALL), "--measured", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "to take what was measured; the range is that of the measured runs" in shown
    assert "Raspberry Pi 4, measured (native)" in shown


def test_layers_that_differ_most(bench):
    predict = partial(predicted, SMALL.read_bytes(), bench)
    shown = text.as_text(described(bench, predict))
    assert "predicted_ms" in shown
    assert "differs most from `neon8 profile`" in shown
    assert "cortex-a72 at 1500 MHz" in shown


def test_interrupt_keeps_what_was_measured(tmp_path, monkeypatch, capsys):
    def watch(done, _total):
        if done == 1:
            raise KeyboardInterrupt

    found = bench_model(SMALL, watch=watch, **QUICK)
    assert (len(found.rows), found.complete) == (1, False)
    with pytest.raises(KeyboardInterrupt):
        bench_model(SMALL, watch=lambda *_: watch(1, 1), **QUICK)
    monkeypatch.setattr("neon8.profile.bench.bench_model", lambda *_a, **_k: found)
    path = tmp_path / "net.bench.json"
    assert main(["bench", str(SMALL), "-o", str(path)]) == 3
    assert "interrupted before all was measured" in capsys.readouterr().err
    assert measured.load(path) == found


def test_measured_is_of_this_model(bench, tmp_path):
    path = tmp_path / "net.bench.json"
    path.write_bytes(measured.dumps(bench))
    with pytest.raises(SettingsError, match=r"with another model, small\.n8") as e:
        profile_model(OPEN, measured=path)
    assert "\n" not in str(e.value)
    for options, said in (
        (
            {"core": "cortex-a53"},
            "no run by one thread of cortex-a53; it has cortex-a72",
        ),
        ({"board": "rpi4"}, "says the board: leave --board out"),
    ):
        with pytest.raises(SettingsError, match=said):
            profile_model(SMALL, measured=path, **options)
    with pytest.raises(SettingsError, match=r"is of one \.n8 file; a search"):
        pricer(ProfileSettings(core="cortex-a72", ghz=1.5, measured=path))
    silent = replace(bench, kinds=(replace(bench.kinds[0], mhz=0.0),))
    path.write_bytes(measured.dumps(silent))
    with pytest.raises(SettingsError, match="told no clock: give --ghz"):
        profile_model(SMALL, measured=path)
    assert profile_model(SMALL, measured=path, ghz=1.5).ms is not None
    foreign = replace(silent, kinds=(), rows=())
    path.write_bytes(measured.dumps(foreign))
    with pytest.raises(SettingsError, match="no run by one thread of one --core"):
        profile_model(SMALL, measured=path)


@pytest.fixture(scope="module")
def stored(bench):
    """With counts, wherever these tests run."""
    counts = measured.Counts(counter="cycles", parts=(1.0,) * len(bench.parts))
    row = replace(bench.rows[0], counts=(counts,))
    return json.loads(measured.dumps(replace(bench, rows=(row,))))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("format",), "neon8.calib", ":1: is no file of `neon8 bench`"),
        (("version",), 2, "version 2 of a .bench.json; this neon8 reads 1"),
        (("more",), 1, "'more' is unknown"),
        (("digest",), None, "digest: expected a text"),
        (("emulated",), 1, "emulated: expected a bool"),
        (("kinds",), {}, "kinds: expected a list"),
        (("kinds", 0), 3, "kinds 0: expected an object"),
        (("kinds", 0, "cpus", 0), -1, "cpus 0: -1 is not a whole number"),
        (("kinds", 0, "cpus", 0), True, "cpus 0: True is not a whole number"),
        (("kinds", 0, "mhz"), "fast", "mhz: 'fast' is not a number"),
        (("rows", 0, "total", "least"), 1e9, "rows 0: times are not in order"),
        (("rows", 0, "total", "least"), -1, "rows 0: times are not in order"),
        (("rows", 0, "parts", 1, "p95"), -1, "rows 0: times are not in order"),
        (("rows", 0, "parts"), [], "rows 0: has another number of parts"),
        (("rows", 0, "kernels"), [], "rows 0: has another number of parts"),
        (("rows", 0, "counts", 0, "parts"), [1], "rows 0: has another number of part"),
        (("rows", 0, "before", "mhz"), float("nan"), "mhz"),
        (("parts",), [], "rows 0: has another number of parts"),
    ],
)
def test_damaged_files(stored, tmp_path, place, value, said):
    path = tmp_path / "net.bench.json"
    path.write_text(json.dumps(stored))
    measured.load(path)
    changed = json.loads(json.dumps(stored))
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    path.write_text(json.dumps(changed))
    with pytest.raises(TableError, match=said) as seen:
        measured.load(path)
    assert str(seen.value).startswith(f"{path}:")
    assert "\n" not in str(seen.value)


def test_every_key_is_needed(stored, tmp_path):
    path = tmp_path / "net.bench.json"
    for name in stored:
        path.write_text(json.dumps({n: v for n, v in stored.items() if n != name}))
        with pytest.raises(TableError):
            measured.load(path)
    for said in ("", "[]", "{", '{"format": "neon8.bench", "format": 1}', "\xff"):
        path.write_text(said, encoding="latin-1")
        with pytest.raises(TableError):
            measured.load(path)


def test_kinds_of_cores():
    little = {"midr": "0x410fd034", "max_khz": "1800000"}
    big = {"midr": "0x410fd082", "max_khz": "2000000"}
    cores = [{"cpu": n, **(little if n < 4 else big)} for n in range(6)]
    cores.append({"cpu": 6, **big, "online": "0"})
    kinds = kinds_of({"machine": "aarch64", "cores": cores})
    assert kinds == (
        Kind(name="cortex-a53", cpus=(0, 1, 2, 3), mhz=1800.0),
        Kind(name="cortex-a72", cpus=(4, 5), mhz=2000.0),
    )
    assert [(kind.name, *rest) for kind, *rest in ways_of(kinds, None)] == [
        ("cortex-a53", 1, False),
        ("cortex-a53", 2, False),
        ("cortex-a53", 4, False),
        ("cortex-a53", 1, True),
        ("cortex-a72", 1, False),
        ("cortex-a72", 2, False),
        ("cortex-a72", 1, True),
        ("all", 6, False),
    ]


def test_kinds_of_old_kernels():
    """They tell in /proc/cpuinfo alone."""
    told = [["processor", "0"], ["CPU implementer", "0x41"], ["CPU part", "0xc07"]]
    told += [["processor", "1"], ["CPU implementer", "0x51"], ["CPU part", "0x800"]]
    facts = {"machine": "armv7l", "cores": [{"cpu": n} for n in range(3)]}
    kinds = kinds_of(facts | {"cpuinfo": told})
    assert [kind.name for kind in kinds] == ["cortex-a7", "core 0x51:0x800", "armv7l"]


def test_same_cores_at_two_clocks():
    cores = [
        {"cpu": n, "midr": "0x410fd034", "max_khz": khz}
        for n, khz in enumerate(("1400000", "1000000"))
    ]
    kinds = kinds_of({"machine": "aarch64", "cores": cores})
    names = ["cortex-a53 at 1000 MHz", "cortex-a53 at 1400 MHz"]
    assert [kind.name for kind in kinds] == names


def test_caches_are_filled_twice():
    def size(*sizes):
        return evicted({"cores": [{"caches": [{"size": s} for s in sizes]}]})

    assert size() == size("32K", "512K") == 8 << 20
    assert size("32K", "16M", "x", "") == 32 << 20
    assert size("4G") == 1 << 28
