# SPDX-License-Identifier: Apache-2.0
"""What inspect says, and that a damaged file gets an error instead."""

import contextlib
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import neon8
from neon8 import text
from neon8.calibrate import calib_file
from neon8.calibrate.run import journal
from neon8.errors import ModelError, Neon8Error, SetupError
from neon8.inspection import elf
from neon8.inspection.describe import inspect_file as describe
from neon8.machines import TARGETS
from neon8.runtime import library
from onnx_nets import chain, save
from processes import ran
from refusals import refused

ROOT = Path(__file__).resolve().parents[3]
NATIVE = ROOT / "build" / "native"
AARCH64 = ROOT / "build" / "aarch64"
ARMV7 = ROOT / "build" / "armv7"


def kernel_rows(*compiler):
    """The rows that kernels.inc has for it: macro, slot and variant, level."""
    macros = ("N8_GEMM", "N8_DEPTHWISE", "N8_WINOGRAD", "N8_PART")
    words = ("-E", "-P", "-x", "c", *(f"-D{name}={name}" for name in macros))
    text = ran(*compiler, *words, ROOT / "runtime" / "kernels.inc", check=True).stdout
    found = re.findall(r"(N8_\w+)\((\w+), (\w+)(?:, (\w*),[^)]*)?\)", text)
    return [(macro, slot + variant, level) for macro, slot, level, variant in found]


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


@pytest.mark.parametrize(("target", "cpu"), [("armv7", "cortex-a9"), ("armv7", "max")])
def test_a_model_shows_the_processor_that_it_was_opened_for(tiny, target, cpu):
    said = describe(tiny.n8, target=target, cpu=cpu)
    assert re.search(rf"^kernels for +{target}, {cpu}$", said, re.MULTILINE)
    assert "_c" in describe(tiny.n8, target=target, isa="c")


@pytest.fixture(scope="module")
def strided(tiny, tmp_path_factory):
    """The network, with a stride that Winograd does not serve, and its scales."""
    path = tmp_path_factory.mktemp("strided") / "net.onnx"
    net = tiny.net()
    net.graph.node[0].attribute.append(helper.make_attribute("strides", [2, 2]))
    onnx.save(net, path)
    return path, neon8.calibrate_model(path, tiny.data, method="minmax")


def eight_channels(folder, kernel):
    """A convolution from 8 channels to 8, and its scales."""
    padded = {"pads": [kernel // 2] * 4}
    net = chain([("Conv", [(8, 8, kernel, kernel)], padded)], (1, 8, 8, 8))
    data = np.random.default_rng(0).standard_normal((4, 8, 8, 8)).astype(np.float32)
    path = save(folder, net)
    return path, neon8.calibrate_model(path, data, method="minmax")


def test_a_model_shows_the_kernels_of_another_machine(tmp_path):
    net = eight_channels(tmp_path, kernel=1)
    neon8.save_model(neon8.compile_model(*net), tmp_path / "net.n8")
    said = describe(tmp_path / "net.n8", target="aarch64", cpu="cortex-a53")
    assert re.search(r"^kernels for +aarch64, cortex-a53$", said, re.MULTILINE)
    assert "_neon" in said
    (row,) = chosen_for(said, "sums four products in int16")
    assert "n8_igemm_s8_f32_neon_4x4_a53" in row.split()
    only_c = describe(tmp_path / "net.n8", target="aarch64", isa="c")
    assert "_neon" not in only_c


def test_a_model_shows_what_fitting_memory_costs(tmp_path):
    path, table = eight_channels(tmp_path, kernel=3)
    model = tmp_path / "net.n8"
    neon8.save_model(neon8.compile_model(path, table, io="int8"), model)

    board = {"target": "aarch64", "cpu": "cortex-a53"}
    said = describe(model, **board)
    assert "given up" not in said
    takes = int(re.search(r"^memory .*\((\d+) bytes\)", said, re.MULTILINE)[1])
    said = describe(model, **board, max_bytes=takes - 1)
    shown = r"^given up +\d+ bytes of weights .* 1 layer of 36864 MACs$"
    assert re.search(shown, said, re.MULTILINE)
    (row,) = chosen_for(said, "of weights that are transformed in each run")
    assert "winograd_gemm_s32_neon" in row


def test_groups_of_products_are_proved(strided, tmp_path):
    neon8.save_model(neon8.compile_model(*strided), tmp_path / "net.n8")
    said = describe(tmp_path / "net.n8", target="armv7", cpu="cortex-a9")
    why = "sums four products in int16 wherever weights and input allow"
    (row,) = chosen_for(said, why)
    assert "n8_igemm_s8_s8_neon" in row.split()


def chosen_for(said, why):
    """The rows of the kernels that were chosen, or not, for this reason."""
    rows = said[said.index("kernels of convolutions") :].splitlines()
    return [row for row in rows if why in row]


@pytest.mark.parametrize("command", ["inspect", "compile"])
def test_memory_that_was_freed_is_not_read(tiny, tmp_path, command):
    """MALLOC_PERTURB_ fills what is freed; a reader of freed structs sees that."""
    arguments = {
        "inspect": [tiny.n8],
        "compile": [tiny.onnx, "--scales", tiny.table, "-o", tmp_path / "net.n8"],
    }
    runs = [
        subprocess.run(
            [sys.executable, "-m", "neon8", command, *arguments[command]],
            env=os.environ | {"MALLOC_PERTURB_": perturbed},
            capture_output=True,
            check=False,
        )
        for perturbed in ("0", "85")
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[1].stderr
    assert runs[0].stdout == runs[1].stdout


def test_a_table_of_16_bits(tiny, tmp_path):
    observation = neon8.observe_model(tiny.onnx, tiny.data)
    last = list(observation.scale_groups)[-1]
    precision = {last: "float"}
    table = neon8.solve_observation(observation, bits=16, precision=precision)
    neon8.save_table(table, tmp_path / "t.json")
    said = neon8.inspect_file(tmp_path / "t.json")
    assert re.search(r"^  image +\w+, 16 bits ", said, re.MULTILINE)
    assert re.search(rf"^  {last} +float32 ", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("library", "machine", "compiler"),
    [
        (folder / f"libneon8.{suffix}", machine, compiler)
        for folder, machine, compiler in (
            (NATIVE, None, ("gcc", "-DN8_VECTOR")),
            (AARCH64, "AArch64", ("aarch64-linux-gnu-gcc",)),
            (ARMV7, "ARM", ("arm-linux-gnueabihf-gcc",)),
        )
        for suffix in ("so", "a")
    ],
    ids=lambda value: "-".join(value.parts[-2:]) if isinstance(value, Path) else "",
)
def test_a_library_shows_exports_and_kernels(library, machine, compiler):
    facts = elf.read(str(library), library.read_bytes())
    header = (ROOT / "runtime" / "include" / "neon8.h").read_text()
    declared = set(re.findall(r"^N8_API[^;(]*?\b(n8_\w+)\(", header, re.MULTILINE))
    assert set(facts.exports) == declared
    assert facts.machine == machine or machine is None
    assert not facts.executable_stack
    if facts.kernels is not None:
        found = kernel_rows(*compiler)
        rows = {(slot, isa) for isa, slots in facts.kernels.items() for slot in slots}
        expected = {row[1:] for row in found}
        if library.suffix == ".so":  # the twins that only checks run are left out
            twins = {row[1:] for row in found if row[::2] == ("N8_PART", "c")}
            expected -= twins - {
                ("winograd_gemm_s32", "c")
            }  # for int16, see dispatch.c
        assert rows == expected
    if library.suffix == ".so":
        assert facts.alignment >= 4096
        assert any(name.startswith("libc.") for name in facts.needed)
    said = neon8.inspect_file(library)
    assert all(name in said for name in declared)


def test_kernels_of_a_stripped_library_are_unknown(tmp_path):
    stripped = tmp_path / "libneon8.so"
    subprocess.run(["strip", "-o", stripped, NATIVE / "libneon8.so"], check=True)
    facts = elf.read("x", stripped.read_bytes())
    assert facts.kernels is None
    assert facts.exports == elf.read("x", (NATIVE / "libneon8.so").read_bytes()).exports
    assert "stripped" in neon8.inspect_file(stripped)


def test_a_damaged_model_is_one_line_of_error(tiny, tmp_path):
    """File, layer, cause; the checksum is made right again."""
    spoilt = bytearray(tiny.n8.read_bytes())
    ops, links = struct.unpack_from("<QQ", spoilt, 88)
    row = library.load().ffi.sizeof("struct n8_file_op")
    kind = next(at for at in range(ops, links, row) if spoilt[at] == 3)
    struct.pack_into("<i", spoilt, kind + 32, 0)  # a stride
    struct.pack_into("<I", spoilt, 12, zlib.crc32(spoilt[16:]))
    path = tmp_path / "spoilt.n8"
    path.write_bytes(spoilt)
    for target in TARGETS:
        said = f"{path}: layer 'c1': a kernel, stride, dilation or pad"
        with refused(ModelError, said):
            describe(path, target=target)


@given(st.data())
def test_a_damaged_library_never_gets_further_than_an_error(data):
    original = (NATIVE / "libneon8.a").read_bytes()
    spoilt = bytearray(original[: data.draw(st.integers(8, 30_000))])
    for _ in range(data.draw(st.integers(0, 8))):
        at = data.draw(st.integers(8, len(spoilt) - 1)) if len(spoilt) > 8 else 0
        spoilt[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SetupError):
        elf.read("spoilt", bytes(spoilt))


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
    entry = journal.Entry(settings={}, observation=observation, names={}, points=())
    journal.save(journal.journal_of(folder / "net.calib"), entry)
    return observation, folder


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


def facts(path):
    """What --json prints, in which nothing but null may stand for NaN."""
    said = neon8.inspect_file(path, json=True)
    assert said == neon8.inspect_file(path, json=True)
    return json.loads(said, parse_constant=pytest.fail)


def test_json_has_the_facts_of_the_text(tiny, seen, tmp_path):
    for kind, name in (("trt", "t.cache"), ("qdq", "q.onnx")):
        made = neon8.convert_table(tiny.table, to=kind, model=tiny.onnx)
        (tmp_path / name).write_bytes(made.data)
    paths = (
        tiny.onnx,
        tiny.n8,
        tiny.table,
        NATIVE / "libneon8.so",
        NATIVE / "libneon8.a",
    )
    made = (seen[1] / "net.calib", seen[1] / "net.calib.journal", *tmp_path.iterdir())
    for path in (*paths, *made):
        said, found = neon8.inspect_file(path), facts(path)
        fields = said.partition("\n\n")[0].splitlines()
        names = [line.split("  ")[0] for line in fields if line[0] != " "]
        assert [*found][: len(names)] == names
        tables = {name: rows for name, rows in found.items() if isinstance(rows, list)}
        assert tables
        for rows in tables.values():
            for row in rows:
                names = row.values() if isinstance(row, dict) else [row]
                assert all(each in said for each in names if isinstance(each, str))


def test_a_table_has_every_entry(tiny):
    table, found = neon8.load_table(tiny.table), facts(tiny.table)
    shown = {
        row["name"]: (row["scheme"], row["scale"], row["zero point"])
        for row in found["tensors"]
    }
    assert shown == {
        name: (entry.scheme, entry.scale, entry.zero_point)
        for name, entry in table.tensors.items()
    }
    assert {row["name"] for row in found["layers"]} == {*table.layers}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("net.calib", "calibration file"), ("net.calib.journal", "journal")],
)
def test_what_was_observed(seen, name, kind):
    observation, folder = seen
    found = facts(folder / name)
    assert next(iter(found)) == kind
    assert found["samples"] == len(observation.samples)
    assert observation.model_digest in found["of"]
    rows = {row.pop("name"): [*row.values()][:3] for row in found["tensors"]}
    assert rows == {
        name: [each.histogram.total, each.histogram.minimum, each.histogram.maximum]
        for name, each in observation.tensors.items()
    }
    layers = {row["name"]: (row["input"], row["weights"]) for row in found["layers"]}
    assert layers == {
        name: (each.input, [*each.weight_shape])
        for name, each in observation.layers.items()
    }


def test_a_model_shows_what_it_takes(tiny):
    found = facts(tiny.n8)
    with neon8.Model.open(tiny.n8) as model:
        memory = model.memory
    for name, size in (
        ("memory", memory.total()),
        ("packed weights", memory.packed),
        ("arena", memory.arena),
        ("scratch", memory.scratch),
        ("size", tiny.n8.stat().st_size),
    ):
        assert found[name] == size
    assert sum(step["MACs"] for step in found["steps"]) == found["work"]
    assert found["inputs"][0]["shape"] == [1, 3, 8, 8]


def test_json_says_null_for_what_is_not_finite_or_known():
    cells = [("-", text.number(np.float32("nan")), text.number(-np.inf), text.UNKNOWN)]
    table = text.Table("rows, all", cells, ("name", "a", "b", ""))
    want = {"rows": [{"name": "-", "a": None, "b": None, "number": None}]}
    assert text.as_json([table, "", " told"]) == json.dumps({**want, "notes": ["told"]})
    assert text.as_text([table]).split("\n")[1:] == [
        "  name  a    b",
        "     -  nan  -inf  -",
    ]


def test_what_the_largest_shapes_take(tiny):
    path = ROOT / "tests" / "golden" / "open.n8"
    usual = json.loads(neon8.inspect_file(path, json=True))
    at = neon8.inspect_file(path, json=True, shapes={"image": (3, 3, 40, 40)})
    largest = json.loads(at)["memory"]
    assert usual["at most"] == json.loads(at)["at most"] == largest > usual["memory"]
    assert "at most" not in facts(tiny.n8)
