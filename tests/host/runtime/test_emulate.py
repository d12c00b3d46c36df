# SPDX-License-Identifier: Apache-2.0
"""The same bytes from the oracle, on the PC and on the emulated ARM core."""

import copy
import gc
import platform
import shutil
import signal
import sys

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
    assert process.returncode == 0
    assert repr(emulated) == f"<EmulatedModel {str(path)!r}, closed>"
    forgotten = EmulatedModel(path)
    process = forgotten._process
    del forgotten
    gc.collect()
    assert process.returncode == 0


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
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("N8_SYSROOT", "/none", "/none is missing; correct N8_SYSROOT"),
        (
            "N8_SYSROOT",
            "/proc",
            "/proc/usr/bin/python3 is missing; run 'make sysroot' again",
        ),
        ("N8_{}_LIBRARY", "/none.so", r"/none\.so is missing; correct N8_{}_LIBRARY"),
        ("PATH", "/none", "qemu-[a-z0-9]+ is not installed; apt-get install qemu-user"),
    ],
)
def test_missing_pieces(monkeypatch, path, target, variable, value, message):
    monkeypatch.setenv(variable.format(target.upper()), value)
    with pytest.raises(SetupError, match=message.replace("{}", target.upper())) as seen:
        EmulatedModel(path, target)
    if variable == "PATH":
        assert EMULATIONS[target].qemu in str(seen.value)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("checkout", [True, False])
def test_nothing_is_built(monkeypatch, path, tmp_path, target, checkout):
    monkeypatch.delenv("N8_SYSROOT", raising=False)
    monkeypatch.setattr(emulate, "BUILD", tmp_path / "build")
    if checkout:
        (tmp_path / "cross").mkdir()
    with pytest.raises(SetupError) as refused:
        EmulatedModel(path, target)
    text = str(refused.value)
    variable = f"N8_{target.upper()}_LIBRARY"
    assert f"run 'make sysroot {target}'" in text
    assert (str(tmp_path) in text) is checkout
    assert ("N8_SYSROOT" in text and variable in text) is not checkout


def test_a_root_of_another_machine(monkeypatch, path):
    monkeypatch.setenv("N8_SYSROOT", str(emulate.BUILD / "sysroot" / "aarch64"))
    with pytest.raises(SetupError, match="Invalid ELF image"):
        EmulatedModel(path, "armv7")


def plant(folder):
    """Modules that must not be imported, though their names are those of others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("json", "numpy", "struct", "random", "neon8", "sitecustomize"):
        text = "raise SystemExit('code of the user ran: ' + __file__)\n"
        (folder / f"{name}.py").write_text(text)


@pytest.mark.parametrize("target", TARGETS)
def test_only_this_package_and_the_packages_of_the_guest(
    monkeypatch, path, program, inputs, tmp_path, target
):
    """Not the working directory, PYTHONPATH, this user's packages, or our folder."""
    version = "{}.{}".format(*sys.version_info)
    user = tmp_path / f"user/lib/python{version}/site-packages"
    for folder in (tmp_path / "here", user, tmp_path / "path", tmp_path / "beside"):
        plant(folder)
    (tmp_path / "beside" / "neon8.py").unlink()
    package = shutil.copytree(emulate.PACKAGE, tmp_path / "beside" / "neon8")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    monkeypatch.setattr(emulate, "PACKAGE", package)
    with EmulatedModel(path, target) as model:
        assert not differing_bytes(model.run(inputs), oracle.run(program, inputs))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
    EmulatedModel(path, target).close()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names this processor")
@pytest.mark.parametrize(
    ("target", "library", "message"),
    [
        ("aarch64", "native", "is for x86-64, this Python runs on AArch64"),
        ("armv7", "native", "is for x86-64, this Python runs on 32-bit ARM"),
        ("aarch64", "armv7", "is for 32-bit ARM, this Python runs on AArch64"),
        ("armv7", "aarch64", "is for AArch64, this Python runs on 32-bit ARM"),
    ],
)
def test_a_library_of_another_machine(monkeypatch, path, target, library, message):
    """dlopen alone would only say that there is no such file."""
    file = emulate.BUILD / library / "libneon8.so"
    monkeypatch.setenv(f"N8_{target.upper()}_LIBRARY", str(file))
    with pytest.raises(SetupError, match=message):
        EmulatedModel(path, target)


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
