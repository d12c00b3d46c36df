# SPDX-License-Identifier: Apache-2.0
"""Which layers are made faster: what gains most time for the noise that it adds."""

import numpy as np
import pytest

import neon8
from neon8.cli.main import main
from neon8.compile.compiler import compile_model
from neon8.compile.lower import lower
from neon8.data.few import Kept
from neon8.evaluate.network import open_network
from neon8.operators.convolution import convolutions
from neon8.profile.profile import dot_cycles, timer
from neon8.refine.faster import (
    ANY_LOSS_DB,
    DEEP,
    FAST,
    LOSS_DB,
    as_text,
    changed,
    deep_changes,
    fast_changes,
    made_faster,
)
from neon8.rewrite.equalization import equalized
from neon8.settings.stages import ProfileSettings, RefineSettings
from onnx_nets import chain, save

CHANNELS, SIZE, COUNT = 32, 14, 30
LOUD = "t3"
"""A tensor with a channel much larger than the others: its input cannot spare a bit."""


def network():
    """Three 3x3 convolutions that Winograd makes faster, and one of few pixels."""
    rng = np.random.default_rng(3)
    first, second, third, fourth = (
        rng.normal(0, 0.08, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
        for _ in range(4)
    )
    second[0] *= 20
    third[:, 0] /= 20
    pads = {"pads": [1] * 4}
    steps = [
        ("Conv", [first], pads),
        ("Relu", [], {}),
        ("Conv", [second], pads),
        ("Relu", [], {}),
        ("Conv", [third], pads),
        ("Relu", [], {}),
        ("MaxPool", [], {"kernel_shape": [7, 7], "strides": [7, 7]}),
        ("Conv", [fourth], pads),
    ]
    return chain(steps, (1, CHANNELS, SIZE, SIZE))


SAMPLES = (
    np.random.default_rng(1)
    .normal(0, 1, (COUNT, CHANNELS, SIZE, SIZE))
    .astype(np.float32)
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return solved(save(tmp_path_factory.mktemp("faster"), network()))


def solved(path):
    """Path, graph, the plain table, that of `solve --fast`, and what was seen."""
    seen = neon8.observe_model(path, SAMPLES)
    # Without factors, which would serve the tensor with the loud channel.
    plain, fast = (
        neon8.solve_observation(
            seen, path, plain=True, fast=each, max_sqnr_loss=ANY_LOSS_DB
        )
        for each in (False, True)
    )
    return path, neon8.load_graph(path), plain, fast, seen


def found(made, *, times=dot_cycles, sparing=False, deep=False, **goal):
    path, graph, plain, fast, seen = made
    kept = [Kept(f"{at:064x}", {"x": x[np.newaxis]}) for at, x in enumerate(SAMPLES)]
    possible = [*fast_changes(graph, plain, fast)]
    possible += deep_changes(graph, plain, seen) if deep else ()
    return made_faster(
        open_network(path),
        plain,
        possible,
        kept,
        RefineSettings(**goal),
        times=times,
        sparing=sparing,
    )


def ms_of(made, table, times):
    return sum(times(compile_model(made[1], table)).values())


@pytest.fixture(scope="module")
def a55():
    return timer(ProfileSettings(core="cortex-a55", ghz=1.8))


def test_the_changes_are_all_that_fast_changes(made):
    _, graph, plain, fast, _ = made
    changes = list(fast_changes(graph, plain, fast))
    assert [each.to for each in changes] == [FAST] * 3
    assert changed(plain, changes) == fast
    assert changed(plain, ()) == plain
    (one, *_) = changes
    part = changed(plain, [one])
    assert {n for n in plain.layers if part.layers[n] != plain.layers[n]} == {
        *one.layers
    }
    assert one.name in one.tensors


def test_sparing_leaves_what_costs_too_much_or_gains_nothing(made):
    result = found(made, sparing=True)
    plain, *steps = result.steps
    assert plain.change is None
    taken = [step for step in steps if step.taken]
    assert taken
    lost = plain.figures.sqnr_db - taken[-1].figures.sqnr_db
    assert lost <= LOSS_DB
    refused = [step for step in steps if not step.taken]
    assert [step.change.name for step in refused] == [LOUD]
    assert plain.figures.sqnr_db - refused[0].figures.sqnr_db > LOSS_DB
    # The last convolution has four pixels, and is not even tried.
    assert len(steps) == 2
    table = result.table
    roundings = [layer.rounding == "lattice" for layer in table.layers.values()]
    assert sum(roundings) == len(taken)
    assert "fast" in as_text(result)


def test_ranges_are_narrower_where_that_is_sure_to_be_better(made):
    """What is clipped of the loud channel counts for little."""
    for step in found(made, sparing=True).steps[1:]:
        part = 3 / 4 if step.change.name == LOUD else 1
        entry = step.change.tensors[step.change.name]
        before = made[3].tensors[step.change.name]
        assert entry.scale == pytest.approx(part * before.scale)
        ends = [end * part for end in before.threshold]
        assert entry.threshold == pytest.approx(ends)
        assert FAST in entry.reasons


def test_a_target_in_place_of_the_usual_loss(made):
    plain = found(made).steps[0].figures.sqnr_db
    result = found(made, sparing=True, target_sqnr=plain + 3)
    assert result.table == made[2]
    result = found(made, sparing=True, target_sqnr=plain - 20)
    assert sum(step.taken for step in result.steps) == 3  # the first is the plain one


def test_milliseconds_take_what_they_need(made, a55):
    """The change of least noise first, and none that the limit does not ask for."""
    slow = ms_of(made, made[2], a55)
    fastest = found(made, times=a55, max_ms=slow).fastest
    assert fastest < 0.95 * slow
    assert found(made, times=a55, max_ms=slow).table == made[2]
    limit = slow - 0.4 * (slow - fastest)
    half = found(made, times=a55, max_ms=limit)
    (one,) = (step for step in half.steps if step.change)
    assert one.taken
    assert one.figures.ms == pytest.approx(ms_of(made, half.table, a55))
    assert one.figures.ms <= limit
    assert one.change.name != LOUD
    whole = found(made, times=a55, max_ms=fastest * 1.0001)
    assert [step.taken for step in whole.steps] == [True] * 3
    assert whole.steps[-1].change.name == LOUD


def test_nothing_is_lost_for_a_limit_out_of_reach(made, a55):
    fastest = found(made, times=a55, max_ms=1e3).fastest
    result = found(made, times=a55, max_ms=fastest / 2)
    assert result.table == made[2]
    # What costs little is worth it all the same, where it is asked for.
    sparing = found(made, times=a55, max_ms=fastest / 2, sparing=True)
    assert any(each.rounding == "lattice" for each in sparing.table.layers.values())


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Many weights of about the same size leave no room in int16."""
    rng = np.random.default_rng(2)
    sizes = [(64, CHANNELS, 1, 1), (32, 64, 1, 1)]
    first, second = (rng.uniform(-1, 1, size).astype(np.float32) for size in sizes)
    steps = [("Conv", [first], {}), ("Relu", [], {}), ("Conv", [second], {})]
    net = chain(steps, (1, CHANNELS, SIZE, SIZE))
    return solved(save(tmp_path_factory.mktemp("full"), net))


def test_deeper_sums_where_there_are_no_dot_products(full):
    times = timer(ProfileSettings(core="cortex-a53", ghz=1.4))
    slow = ms_of(full, full[2], times)
    fastest = found(full, times=times, deep=True, max_ms=slow).fastest
    assert fastest < 0.98 * slow
    result = found(full, times=times, deep=True, max_ms=fastest * 1.0001)
    taken = [step.change for step in result.steps if step.change]
    assert {change.to for change in taken} == {DEEP}
    deep = {name for change in taken for name in change.layers}
    entries = result.table.layers.items()
    assert deep == {name for name, entry in entries if DEEP in entry.reasons}
    before, after = (
        {op.name: op.int16_depth for op in lower(full[1], each).ops if op.name in deep}
        for each in (full[2], result.table)
    )
    assert set(before.values()) == {2}
    assert set(after.values()) == {4}


def test_deeper_sums_have_corrections_of_their_own(full):
    path, graph, *_, seen = full
    table = neon8.solve_observation(seen, path)
    changes = list(deep_changes(graph, table, seen))
    assert changes
    nodes = {node.name: node for node in convolutions(equalized(graph, table))}
    for (name, entry), *none in (each.layers.items() for each in changes):
        assert not none
        assert entry.reasons == (*table.layers[name].reasons, DEEP)
        source, node = table.tensors[entry.input], nodes[name]
        assert not source.offsets
        mean = seen.channels[entry.input].mean() / np.array(source.factors or 1.0)
        scales = np.array(entry.weight_scales)[:, None]
        weight = node.weight[:, :, 0, 0].astype(np.float64)
        lost = (weight - np.rint(weight / scales) * scales) @ mean
        np.testing.assert_allclose(entry.bias_correction, lost, rtol=1e-4, atol=1e-7)


def test_from_the_command_line(made, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", x=SAMPLES)
    line = ["calibrate", str(made[0]), "--data", str(tmp_path / "x.npz"), "--plain"]
    line += ["-o"]
    assert main([*line, str(tmp_path / "f.json"), "--fast"]) == 0
    said = capsys.readouterr().out
    assert "fast: 1 layer on the lattice of int8 Winograd" in said
    assert f"faster: measured on {COUNT - COUNT // 3} samples" in said
    table = neon8.load_table(tmp_path / "f.json")
    assert table == neon8.calibrate_model(made[0], SAMPLES, plain=True, fast=True)
    core = ["--core", "cortex-a55", "--ghz", "1.8", "--max-ms"]
    assert main([*line, str(tmp_path / "m.json"), *core, "1e-6"]) == 3
    said = capsys.readouterr()
    assert "whatever it loses; take a smaller network" in said.err
    assert main([*line, str(tmp_path / "p.json")]) == 0
    plain = (tmp_path / "p.json").read_bytes()
    assert main([*line, str(tmp_path / "e.json"), *core, "1000"]) == 0
    assert b'"lattice"' not in plain + (tmp_path / "e.json").read_bytes()
    assert main([*line, str(tmp_path / "o.json"), "--fast", "--limit", "1"]) == 0
    assert "faster: measured on 1 sample;" in capsys.readouterr().out
