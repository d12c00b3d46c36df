# SPDX-License-Identifier: Apache-2.0
"""The same bytes from the oracle, on the PC and on the emulated ARM core."""

import copy
import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.compile import oracle, writer
from neon8.errors import DataError, ModelError, SetupError
from neon8.machines import EMULATIONS
from neon8.runtime import Model, library
from neon8.runtime.board import board, model
from neon8.runtime.emulate import EmulatedModel
from random_program import differing_bytes, random_inputs, random_program

TARGETS = sorted(EMULATIONS)
CORES = [
    ("aarch64", "cortex-a53"),
    ("aarch64", "neoverse-n1"),
    ("aarch64", "max"),
    ("armv7", "cortex-a9"),
    ("armv7", "max"),
]


@pytest.fixture(scope="module")
def program():
    return random_program(9)  # which has a GEMM and a pool


@pytest.fixture(scope="module")
def path(program, tmp_path_factory):
    file = tmp_path_factory.mktemp("emulate") / "net.n8"
    file.write_bytes(writer.dumps(program))
    return file


@pytest.fixture
def inputs(program):
    return random_inputs(program, 1)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), core=st.sampled_from(CORES))
def test_oracle_native_emulated(tmp_path_factory, seed, core):
    target, cpu = core
    program = random_program(seed)
    file = tmp_path_factory.mktemp("net") / "net.n8"
    file.write_bytes(writer.dumps(program))
    with (
        Model.open(file) as native,
        native.session() as session,
        EmulatedModel(file, target, cpu) as emulated,
        ThreadPoolExecutor(10) as pool,
    ):
        samples = [random_inputs(program, seed + turn) for turn in range(10)]
        for arrays, there in zip(samples, pool.map(emulated.run, samples), strict=True):
            expected = oracle.run(program, arrays)
            assert differing_bytes(session.run(arrays), expected) == {}
            assert differing_bytes(there, expected) == {}


@pytest.mark.parametrize("target", TARGETS)
def test_is_the_arm_library(path, target):
    with EmulatedModel(path, target) as emulated, Model.open(path) as native:
        assert emulated.inputs == native.inputs
        assert emulated.outputs == native.outputs
        kernels = {step.kernel for step in emulated.steps}
        assert any(kernel.endswith("_neon") for kernel in kernels)
        assert [step.name for step in emulated.steps] == [
            step.name for step in native.steps
        ]
    with EmulatedModel(path, target, isa="c") as emulated:
        kernels = {step.kernel for step in emulated.steps}
        assert not any(kernel.endswith("_neon") for kernel in kernels)


@pytest.mark.parametrize("target", TARGETS)
def test_refused_inputs_leave_it_usable(program, path, inputs, target):
    with EmulatedModel(path, target) as emulated:
        with pytest.raises(DataError, match="no input 'other'"):
            emulated.run(inputs | {"other": np.zeros(1)})
        with pytest.raises(DataError, match="is missing"):
            emulated.run({})
        expected = oracle.run(program, inputs)
        assert differing_bytes(emulated.run(inputs), expected) == {}


def place(emulated):
    """The folder of the runner."""
    return Path(emulated._model._board._folder)


def test_nothing_is_left_behind(path, inputs):
    emulated = EmulatedModel(path)
    folder = place(emulated)
    assert folder.is_dir()
    with pytest.raises(TypeError, match="EmulatedModel: cannot be copied"):
        copy.copy(emulated)
    assert repr(emulated) == f"<EmulatedModel {str(path)!r}>"
    emulated.close()
    emulated.close()
    assert not folder.exists()
    assert repr(emulated) == f"<EmulatedModel {str(path)!r}, closed>"
    with pytest.raises(SetupError, match=r"net\.n8: .* has been closed"):
        emulated.run(inputs)
    forgotten = EmulatedModel(path)
    folder = place(forgotten)
    del forgotten
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("target", TARGETS)
def test_refused_file(tmp_path, target):
    file = tmp_path / "bad.n8"
    file.write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"bad\.n8: not a neon8 model"):
        EmulatedModel(file, target)
    with pytest.raises(ModelError, match=r"none\.n8: No such file"):
        EmulatedModel(tmp_path / "none.n8", target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "mips"}, "target 'mips' is not one of aarch64, armv7, which qemu"),
        ({"cpu": "z80"}, "aarch64: .*neon8-runner does not run there: .*z80"),
        ({"isa": "mmx"}, "aarch64: --isa mmx: unknown"),
    ],
)
def test_refused_options(path, options, message):
    with pytest.raises(SetupError, match=message):
        EmulatedModel(path, **options)


@pytest.mark.parametrize("target", TARGETS)
def test_no_qemu(monkeypatch, path, target):
    monkeypatch.setenv("PATH", "/none")
    qemu = EMULATIONS[target].qemu
    with pytest.raises(SetupError, match=f"{qemu} is not installed; apt-get install"):
        EmulatedModel(path, target)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_built(monkeypatch, path, tmp_path, target):
    monkeypatch.setattr(board, "CHECKOUT", tmp_path)
    (tmp_path / "cross").mkdir()
    message = f"neon8-runner is missing; run 'make {target}'"
    with pytest.raises(SetupError, match=message):
        EmulatedModel(path, target)


@pytest.mark.parametrize("target", TARGETS)
def test_an_installed_package_has_its_own(monkeypatch, path, tmp_path, target):
    built = board.CHECKOUT / "build" / target / "neon8-runner"
    monkeypatch.setattr(board, "CHECKOUT", tmp_path)
    asked = []

    def prebuilt_file(*names):
        asked.append(names)
        return built

    monkeypatch.setattr(board, "prebuilt_file", prebuilt_file)
    EmulatedModel(path, target).close()
    assert asked == [(f"linux-{target}", "neon8-runner")]


def test_a_runner_of_another_version(monkeypatch, path):
    monkeypatch.setattr(model, "__version__", "9.9.9")
    message = "for aarch64 is of version .*, this package of 9.9.9; build it again"
    with pytest.raises(SetupError, match=message):
        EmulatedModel(path)


@pytest.mark.parametrize("target", TARGETS)
def test_what_only_the_processor_refuses(path, target):
    message = (
        rf"net\.n8: on {target}: model: takes \d+ bytes .* the limit of 100; raise"
    )
    with pytest.raises(ModelError, match=message):
        EmulatedModel(path, target, max_bytes=100)
    with pytest.raises(ModelError, match=f"{target}: model: .*this processor: it has"):
        EmulatedModel(path, target, isa="avx2")


@pytest.mark.parametrize(
    ("name", "wide", "machine"),
    [
        ("aarch64", True, "AArch64"),
        ("aarch64", False, "32-bit ARM"),  # as Raspberry Pi OS of 32 bits says
        ("armv7l", False, "32-bit ARM"),
        ("armv8l", False, "32-bit ARM"),
        ("x86_64", True, "x86-64"),
        ("x86_64", False, "x86"),
        ("AMD64", True, "x86-64"),
        ("s390x", True, None),
    ],
)
def test_the_machine_of_a_python(name, wide, machine):
    assert library.python_machine(name, wide=wide) == machine
