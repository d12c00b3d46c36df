# SPDX-License-Identifier: Apache-2.0
"""`neon8 profile`: counts that are exact without an emulator, and published times."""

import json

import numpy as np
import onnx
import pytest

import neon8
from bench.kernels import flow, inorder, parts, report
from bench.kernels.assembly import Step
from bench.kernels.cores import IN_ORDER
from bench.kernels.costs import NAMES
from bench.networks import catalogue, samples, weights
from neon8.cli.main import main
from neon8.errors import SettingsError
from neon8.profile import boards, costs, loops
from neon8.profile.profile import PROCESSORS, profile_model
from neon8.profile.trace import trace
from neon8.runtime.emulate import EmulatedModel

UNSEEN = (
    ("mobilenet_v2", 0.5, 96),
    ("squeezenet1_1", 0.5, 95),
    ("googlenet", 0.25, 96),
)
"""Networks, widths and sizes; no table was made of them."""
MOST_INSTRUCTIONS, MOST_CYCLES = 0.01, 0.03
"""By which a table may be off the exact count, and off the models of all loops."""


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    """The .n8 files of UNSEEN."""
    folder = tmp_path_factory.mktemp("unseen")
    made = []
    for name, width, size in UNSEEN:
        net = catalogue.draw(name, width=width, size=size)
        path = folder / f"{name}.onnx"
        onnx.save(weights.model(net, weights.draw(net)), path)
        data = samples.inputs(net, 2, seed=1)
        table = neon8.calibrate_model(path, data, method="minmax", plain=True)
        made.append(path.with_suffix(".n8"))
        neon8.save_model(neon8.compile_model(path, table), made[-1])
    return made


@pytest.mark.parametrize("core", ["cortex-a53", "cortex-a55"])
def test_is_what_an_emulator_counts(unseen, core, tmp_path):
    bench = report.build([NAMES[core]], tmp_path)
    for path in unseen:
        measured = parts.measure(bench, NAMES[core], path, tmp_path, {})
        profile = profile_model(path, core=core)
        assert profile.missing == ()
        exact = costs.Spent()
        for spent in (each for part in measured for each in part.values()):
            exact += spent
        assert profile.instructions == pytest.approx(
            exact.instructions, rel=MOST_INSTRUCTIONS
        )
        assert profile.cycles == pytest.approx(exact.cycles, rel=MOST_CYCLES)


@pytest.mark.parametrize("core", PROCESSORS)
def test_no_core_does_more_than_it_can(unseen, core):
    for path in unseen:
        profile = profile_model(path, core=core)
        assert profile.missing == ()
        assert profile.macs < PROCESSORS[core].limit * profile.cycles
        assert profile.ms is None


def test_plans_as_the_core_does(unseen):
    """The kernels that the emulated library chooses for the same core."""
    for path in unseen:
        with EmulatedModel(path, "aarch64", "cortex-a53") as emulated:
            there = [step.kernel for step in emulated.steps]
        traced = trace(path.read_bytes(), PROCESSORS["cortex-a53"])
        assert [part.step.kernel for part in traced if part.step] == there
        for part in traced:
            kernels = {call.kernel for call in part.calls}
            if part.step and part.step.operation == "conv2d":
                assert part.step.kernel in kernels


def test_a_trace_is_the_same_again(unseen):
    content = unseen[0].read_bytes()
    for processor in PROCESSORS.values():
        assert trace(content, processor) == trace(content, processor)


RESIDUALS = {
    "rpi3b+": (0.95, 1.05),
    "ax630c": (0.94, 1.08),
    "uno-q": (0.96, 1.07),
    "rk3399-a53": (0.97, 1.03),
    "rk3228h": (0.96, 1.03),
    "msm8916": (0.92, 1.07),
    "rk3566": (0.95, 1.09),
    "station-m2": (0.88, 1.13),
    "rpi4": (0.85, 1.21),
    "rk3399-a72": (0.87, 1.12),
    "rpi5": (0.84, 1.22),
    "sd855+": (0.96, 1.07),
    "station-m3": (0.75, 1.53),
    "rock-5b": (0.73, 1.18),
    "cobalt100": (0.93, 1.06),
}
"""Between which a published time lies of what the board's other times say of it."""


@pytest.mark.parametrize("name", boards.boards())
def test_published_times_are_met_as_well_as_before(name):
    board, (low, high) = boards.boards()[name], RESIDUALS[name]
    assert low <= board.fit.low <= 1 <= board.fit.high <= high
    assert 0.8 < board.fit.factor < 1.8
    assert board.core in PROCESSORS


def test_times_are_a_line_in_cycles_and_lines():
    rng = np.random.default_rng(0)
    cycles, lines = rng.uniform(1, 9, (2, 7))
    factor, line = boards.solve(cycles, lines, 1.5 * cycles + 20 * lines)
    assert (factor, line) == pytest.approx((1.5, 20))
    assert boards.solve(cycles, lines, cycles - 0.1 * lines)[1] == 0


def test_a_board_says_milliseconds(unseen):
    slow = profile_model(unseen[0], board="rpi3b+")
    low, high = slow.span
    assert low < slow.ms < high
    half = profile_model(unseen[0], board="rpi3b+", ghz=0.7)
    assert slow.ms < half.ms < 2.001 * slow.ms  # memory is as fast as before
    usual = profile_model(unseen[0], core="cortex-a53", ghz=1.4)
    assert usual.span[0] < slow.ms < usual.span[1]
    assert sum(layer.ms for layer in slow.layers) == pytest.approx(slow.ms)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "--core or --board"),
        ({"core": "cortex-a57"}, "did you mean"),
        ({"board": "rpi"}, "no board 'rpi'"),
        ({"board": "rpi5", "core": "cortex-a53"}, "rpi5 has cortex-a76"),
        ({"core": "cortex-a53", "ghz": 0.0}, "ghz"),
    ],
)
def test_nothing_is_said_of_what_nobody_measured(unseen, options, words):
    with pytest.raises(SettingsError, match=words):
        profile_model(unseen[0], **options)


def test_the_command(unseen, capsys):
    assert main(["profile", str(unseen[0]), "--board", "rpi4"]) == 0
    text = capsys.readouterr().out
    assert "Raspberry Pi 4B" in text
    assert "estimated" in text
    assert main(["profile", str(unseen[0]), "--board", "rpi4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found["range_ms"]
    assert low < found["ms"] < high
    assert sum(row["share_%"] for row in found["layers"]) == pytest.approx(100)


def test_what_is_no_model_is_refused(tmp_path, capsys):
    path = tmp_path / "x.n8"
    path.write_bytes(b"no model")
    assert main(["profile", str(path), "--board", "rpi4"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line


def test_parts_of_a_count_are_a_circulation():
    """The reader of the plugin's file keeps parts apart, and `whole` joins them."""
    a, b = flow.Block(4, 2), flow.Block(8, 3)
    first = {(flow.OUTSIDE, a): 1, (a, flow.OUTSIDE): 1}
    second = {(flow.OUTSIDE, a): 2, (a, b): 2, (b, flow.OUTSIDE): 2}
    joined = flow.whole([first, second])
    assert flow.instructions(joined) == 3 * 2 + 2 * 3
    assert flow.unbalanced(joined) == []


def test_a_kernel_is_shown_cycle_by_cycle(tmp_path, capsys):
    picture = tmp_path / "loop.svg"
    options = ["--kernel", "winograd_gemm_s32_neon", "--core", "cortex-a53"]
    assert main(["profile", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    cycles = [row["cycle"] for row in found["loop"]]
    assert cycles == sorted(cycles)
    assert found["cycles"] == pytest.approx(cycles[-1], abs=3)
    assert max(cycles.count(cycle) for cycle in cycles) <= 2
    assert main(["profile", *options, "-o", str(picture)]) == 0
    assert picture.read_text().count("<rect") == 1 + len(cycles)


def test_loads_and_multiplies_are_told_apart(unseen):
    """In 107 cycles of this loop a load has 11 for itself; no other issues are none."""
    vectors, loaded = loops.busy("cortex-a53")["n8_winograd_gemm_s32_neon"]
    assert (vectors, loaded) == (96 / 107, 11 / 107)
    for core in loops.cores():
        assert all(sum(each) <= 1 for each in loops.busy(core).values())
    bound = {
        core: {layer.bound for layer in profile_model(unseen[0], core=core).layers}
        for core in PROCESSORS
    }
    assert "multiplies" in bound["cortex-a53"]
    assert not {"multiplies", "loads"} & bound["cortex-a76"]


@pytest.mark.parametrize("core", ["cortex-a53", "cortex-a55"])
def test_every_loop_is_what_the_model_says(core):
    for loop in loops.loops(core).values():
        steps = [Step(line.text) for line in loop.lines]
        again = inorder.timeline(steps, IN_ORDER[NAMES[core]])
        assert [line.units for line in loop.lines] == [each.units for each in again]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kernel", "winograd_gemm_s32_neo", "--core", "cortex-a53"], "did you mean"),
        (
            ["--kernel", "winograd_gemm_s32_neon", "--core", "cortex-a76"],
            "in their order",
        ),
        (["--kernel", "winograd_gemm_s32_neon"], "--core"),
    ],
)
def test_a_kernel_that_is_not_there_is_refused(options, words, capsys):
    assert main(["profile", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
