# SPDX-License-Identifier: Apache-2.0
"""The same bytes from the oracle, on the PC and on the emulated ARM core."""

import copy
import gc
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.compile import oracle, writer
from neon8.errors import DataError, ModelError, SetupError
from neon8.machines import EMULATIONS
from neon8.runtime import Model, emulate, library
from neon8.runtime.emulate import EmulatedModel
from random_program import differing_bytes, random_inputs, random_program

BUILD = emulate.BUILD
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
    ):
        for turn in range(10):
            arrays = random_inputs(program, seed + turn)
            expected = oracle.run(program, arrays)
            assert differing_bytes(session.run(arrays), expected) == {}
            assert differing_bytes(emulated.run(arrays), expected) == {}


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


def test_nothing_is_left_behind(path):
    emulated = EmulatedModel(path)
    process = emulated._process
    with pytest.raises(TypeError, match="EmulatedModel: cannot be copied"):
        copy.copy(emulated)
    assert repr(emulated) == f"<EmulatedModel {str(path)!r}>"
    emulated.close()
    emulated.close()
    assert process.returncode is not None
    assert repr(emulated) == f"<EmulatedModel {str(path)!r}, closed>"
    forgotten = EmulatedModel(path)
    process = forgotten._process
    del forgotten
    gc.collect()
    assert process.returncode is not None


def test_closed(path, inputs):
    emulated = EmulatedModel(path)
    emulated.close()
    with pytest.raises(
        SetupError, match=r"net\.n8: the emulated model has been closed"
    ):
        emulated.run(inputs)


@pytest.mark.parametrize("target", TARGETS)
def test_crash_shows_what_the_process_said(path, inputs, target):
    with EmulatedModel(path, target) as emulated:
        emulated.run(inputs)  # so that it has begun
        emulated._process.send_signal(signal.SIGSEGV)
        message = r"net\.n8: the emulated process ended with status -11: .*signal 11"
        with pytest.raises(SetupError, match=message):
            emulated.run(inputs)


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
        ({"cpu": "z80"}, "ended with status 1: .*z80"),
        ({"target": "armv7", "cpu": "z80"}, "ended with status 1: .*z80"),
        ({"isa": "mmx"}, "'mmx' is not one of auto, c, .*neon"),
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
    monkeypatch.setattr(emulate, "BUILD", tmp_path / "build")
    (tmp_path / "cross").mkdir()
    message = f"neon8-runner is missing; run 'make {target}'"
    with pytest.raises(SetupError, match=message):
        EmulatedModel(path, target)


@pytest.mark.parametrize("target", TARGETS)
def test_an_installed_package_has_its_own(monkeypatch, path, tmp_path, target):
    monkeypatch.setattr(emulate, "BUILD", tmp_path / "build")
    asked = []

    def prebuilt_file(*names):
        asked.append(names)
        return BUILD / target / "neon8-runner"

    monkeypatch.setattr(emulate, "prebuilt_file", prebuilt_file)
    EmulatedModel(path, target).close()
    assert asked == [(f"linux-{target}", "neon8-runner")]


def test_a_runner_of_another_version(monkeypatch, path):
    monkeypatch.setattr(emulate, "__version__", "9.9.9")
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
    with pytest.raises(ModelError, match=f"on {target}: model: .*this processor"):
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
