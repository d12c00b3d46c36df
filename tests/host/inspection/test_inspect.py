# SPDX-License-Identifier: Apache-2.0
"""What inspect says, and that a damaged file gets an error instead."""

import contextlib
import re
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neon8
from neon8 import text
from neon8.calibrate import calib_file
from neon8.calibrate.run import journal
from neon8.errors import ModelError, Neon8Error, SetupError
from neon8.inspection import elf, model_file
from neon8.inspection.describe import describe

ROOT = Path(__file__).resolve().parents[3]
NATIVE = ROOT / "build" / "native"
AARCH64 = ROOT / "build" / "aarch64"
KERNEL_ROWS = re.findall(
    r"^N8_KERNEL\((\w+), (\w+)\)",
    (ROOT / "runtime" / "kernels.inc").read_text(),
    re.MULTILINE,
)


def test_a_model_shows_its_ends_steps_and_proofs(tiny):
    said = neon8.inspect_file(tiny.n8_int8)
    with neon8.Model.open(tiny.n8_int8) as model:
        scale, zero = model.inputs["image"].scale, model.inputs["image"].zero_point
        steps = model.steps
    image = next(line for line in said.splitlines() if line.split()[:1] == ["image"])
    assert image.split()[:5] == ["image", "int8", "1x3x8x8", f"{scale:.6g}", str(zero)]
    for step in steps:
        assert step.kernel in said
        assert str(step.macs) in said
    assert f"{8 * 64 * 27 + 6 * 8} MACs a run" in said
    assert "sha256 " + neon8.load_graph(tiny.onnx).digest in said


def test_a_model_shows_the_kernels_of_another_machine(tiny):
    said = describe(tiny.n8, target="aarch64", cpu="cortex-a53")
    assert "kernels for    aarch64, cortex-a53" in said
    assert "_neon" in said
    assert "_neon" not in describe(tiny.n8, target="aarch64", isa="c")


def test_the_proofs_are_those_of_the_weights(tiny):
    from neon8.compile.lower import lower

    program = lower(neon8.load_graph(tiny.onnx), neon8.load_table(tiny.table))
    contents = model_file.load(tiny.n8)
    assert [op.name for op in contents.ops] == [op.name for op in program.ops]
    for op, source in zip(contents.ops, program.ops, strict=True):
        if op.operation == "conv2d":
            weights = np.abs(source.weights.astype(np.int64)).reshape(
                len(source.weights), -1
            )
            bias = np.abs(source.bias.astype(np.int64))
            assert op.acc_bound == (weights.sum(1) * 128 + bias).max()
            assert op.int16_depth >= 2


def test_a_table_of_16_bits(tiny, tmp_path):
    observation = neon8.observe_model(tiny.onnx, tiny.data)
    table = neon8.solve_observation(observation, bits=16)
    neon8.save_table(table, tmp_path / "t.json")
    assert "image" in neon8.inspect_file(tmp_path / "t.json")


def test_a_table_shows_every_entry(tiny):
    table = neon8.load_table(tiny.table)
    said = neon8.inspect_file(tiny.table).splitlines()
    for name, entry in table.tensors.items():
        line = next(line.split() for line in said if line.split()[:1] == [name])
        assert line[1:4] == [
            entry.scheme,
            f"{entry.scale:.6g}",
            str(entry.zero_point),
        ]
    for name in table.layers:
        assert any(line.split()[:1] == [name] for line in said)


@pytest.mark.parametrize(
    ("library", "machine", "isas"),
    [
        (NATIVE / "libneon8.so", None, {"c"}),
        (NATIVE / "libneon8.a", None, {"c"}),
        (AARCH64 / "libneon8.so", "AArch64", {"c", "neon"}),
        (AARCH64 / "libneon8.a", "AArch64", {"c", "neon"}),
    ],
    ids=["native-so", "native-a", "aarch64-so", "aarch64-a"],
)
def test_a_library_shows_exports_and_kernels(library, machine, isas):
    facts = elf.read(str(library), library.read_bytes())
    header = (ROOT / "runtime" / "include" / "neon8.h").read_text()
    declared = set(re.findall(r"^N8_API[^;(]*?\b(n8_\w+)\(", header, re.MULTILINE))
    assert set(facts.exports) == declared
    assert facts.machine == machine or machine is None
    assert not facts.executable_stack
    if facts.kernels is not None:
        assert set(facts.kernels) == isas
        rows = {(slot, isa) for isa, slots in facts.kernels.items() for slot in slots}
        assert rows == {(slot, isa) for slot, isa in KERNEL_ROWS if isa in isas}
    if library.suffix == ".so":
        assert facts.alignment >= 4096
        assert any(name.startswith("libc.") for name in facts.needed)
    assert all(name in neon8.inspect_file(library) for name in declared)


def test_kernels_of_a_stripped_library_are_unknown(tmp_path):
    stripped = tmp_path / "libneon8.so"
    subprocess.run(["strip", "-o", stripped, NATIVE / "libneon8.so"], check=True)
    facts = elf.read("x", stripped.read_bytes())
    assert facts.kernels is None
    assert facts.exports == elf.read("x", (NATIVE / "libneon8.so").read_bytes()).exports
    assert "stripped" in neon8.inspect_file(stripped)


def test_a_model_cut_off_anywhere_is_refused(tiny):
    data = tiny.n8.read_bytes()
    for size in [*range(400), *range(400, len(data), 97)]:
        with pytest.raises(ModelError, match=r"^cut:"):
            model_file.read("cut", data[:size])


def test_a_model_with_any_word_damaged_never_gets_further_than_an_error(tiny):
    """The checksum is made right again, so that it is the other checks that decide."""
    data = tiny.n8.read_bytes()
    refused = 0
    for offset in range(8, min(len(data), 4000) - 4, 4):
        for word in (0xFFFFFFFF, 0x80000000, 0x10000):
            spoilt = bytearray(data)
            struct.pack_into("<I", spoilt, offset, word)
            if offset != 12:
                struct.pack_into("<I", spoilt, 12, zlib.crc32(spoilt[16:]))
            try:
                model_file.read("spoilt", bytes(spoilt))
            except ModelError:
                refused += 1
    assert refused > 100


@given(st.data())
def test_a_damaged_library_never_gets_further_than_an_error(data):
    original = (NATIVE / "libneon8.a").read_bytes()
    spoilt = bytearray(original[: data.draw(st.integers(8, 30_000))])
    for _ in range(data.draw(st.integers(0, 8))):
        at = data.draw(st.integers(8, len(spoilt) - 1)) if len(spoilt) > 8 else 0
        spoilt[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SetupError):
        elf.read("spoilt", bytes(spoilt))


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (9999, "9999 bytes"),
        (10_000, "10.0 kB (10000 bytes)"),
        (1_234_567, "1.2 MB (1234567 bytes)"),
    ],
)
def test_sizes(count, said):
    assert text.size(count) == said


def test_columns_align_numbers_to_the_right_and_tame_names():
    lines = text.columns(
        [("a\x1b[2J", "1"), ("long name", "1000")], header=("name", "n")
    )
    assert lines == ["  name          n", "  a\\x1b[2J      1", "  long name  1000"]


@pytest.fixture(scope="module")
def seen(tiny, tmp_path_factory):
    """What was observed for the small network, and its files."""
    folder = tmp_path_factory.mktemp("seen")
    observation = neon8.observe_model(tiny.onnx, tiny.data)
    calib_file.save(observation, folder / "net.calib")
    entry = journal.Entry(settings={}, observation=observation, names={}, points=[])
    journal.save(journal.journal_of(folder / "net.calib"), entry)
    return observation, folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [("net.calib", "calibration file"), ("net.calib.journal", "journal")],
)
def test_what_was_observed(seen, name, kind):
    observation, folder = seen
    said = neon8.inspect_file(folder / name).splitlines()
    assert said[0].startswith(f"{kind} ")
    samples = ["samples", str(len(observation.samples))]
    assert any(line.split() == samples for line in said)
    assert any(observation.model_digest in line for line in said)
    for tensor, facts in observation.tensors.items():
        line = next(line.split() for line in said if line.split()[:1] == [tensor])
        assert int(line[1]) == facts.histogram.total
        assert line[2:4] == [
            f"{facts.histogram.minimum:.6g}",
            f"{facts.histogram.maximum:.6g}",
        ]
    for layer, facts in observation.layers.items():
        shape = "x".join(map(str, facts.weight_shape))
        assert any(line.split()[:3] == [layer, facts.input, shape] for line in said)


@pytest.mark.parametrize("name", ["net.calib", "net.calib.journal"])
def test_what_was_observed_and_is_damaged(seen, tmp_path, name):
    data = (seen[1] / name).read_bytes()
    for size in (10, len(data) // 2, len(data) - 1):
        (tmp_path / name).write_bytes(data[:size])
        with pytest.raises(Neon8Error, match=re.escape(f"{tmp_path / name}: ")):
            neon8.inspect_file(tmp_path / name)


def test_nothing_else_is_inspected(tmp_path):
    (tmp_path / "x").write_bytes(b"hello")
    with pytest.raises(Neon8Error, match="neither a model"):
        describe(tmp_path / "x")
