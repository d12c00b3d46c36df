# SPDX-License-Identifier: Apache-2.0
"""The wheels in build/wheels, which `make wheels` made, each installed and used.

`make test` makes one for each machine and C library; others are tested where they are.
"""

import functools
import json
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import make_golden
import numpy as np
import pytest
from consumer import CONSUMER, MODEL, ROOT, assert_runs, run

from neon8.prebuilt import HEADERS, TARGETS
from processes import ran

WHEELS = ROOT / "build" / "wheels"
ALWAYS = ("manylinux_2_17_x86_64", "manylinux_2_17_armv7l", "musllinux_1_2_aarch64")
OTHERS = ("manylinux_2_17_aarch64", "musllinux_1_2_x86_64")
PLATFORMS = (*ALWAYS, *(name for name in OTHERS if [*WHEELS.glob(f"*{name}.whl")]))
HERE = [name for name in PLATFORMS if "many" in name]
"""For those with musl there is no Python here."""
ENOUGH = ("numpy", "cffi", "_cffi_backend", "pycparser")
"""All that is beside neon8 in an environment that runs models."""
DIGESTS = json.loads(make_golden.digests_of("small").read_text())["outputs"]
PACKAGES = Path(np.__file__).parents[1]


def wheel_of(platform: str) -> Path:
    found = [*WHEELS.glob(f"*{platform}.whl")]
    assert len(found) == 1, "run `make wheels`"
    return found[0]


def machine_of(platform: str) -> str:
    return platform.split("_", 3)[3].replace("armv7l", "armv7")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """environment(platform): what starts its Python, which has the wheel and ENOUGH."""

    def make(platform: str) -> list[str]:
        folder = tmp_path_factory.mktemp(platform)
        install = ("-m", "pip", "--disable-pip-version-check", "install", "--no-index")
        if platform.endswith("x86_64"):
            run(sys.executable, "-m", "venv", "--without-pip", folder)
            (packages,) = folder.glob("lib/python3*/site-packages")
            for name in ENOUGH:
                for path in PACKAGES.glob(f"{name}*"):
                    (packages / path.name).symlink_to(path)
            python = folder / "bin" / "python"
            pip = [sys.executable, "-m", "pip", "--python", python, *install[2:]]
            run(*pip, wheel_of(platform))  # with --no-index: nothing else is needed
            return [str(python)]
        machine = machine_of(platform)
        accepted = ("--platform", platform, "--only-binary=:all:", "--no-deps")
        run(
            *(sys.executable, *install, *accepted, "--target", folder),
            wheel_of(platform),
        )
        python = ROOT / "build" / "sysroot" / machine / "usr" / "bin" / "python3"
        here = ("env", f"PYTHONPATH={folder}", ROOT / "cross" / f"run-{machine}")
        return [*map(str, here), str(python)]

    return functools.cache(make)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_models_need_numpy_and_cffi_alone(platform):
    with zipfile.ZipFile(wheel_of(platform)) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith("/METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    requires = metadata.get_all("Requires-Dist")
    needed = [each for each in requires if "extra ==" not in each]
    assert sorted(each.partition(">")[0] for each in needed) == ["cffi", "numpy"]
    assert any("onnxruntime" in each and "calibrate" in each for each in requires)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_has_what_its_machine_does(platform):
    """Computers calibrate, estimate and make packages; boards run models."""
    with zipfile.ZipFile(wheel_of(platform)) as wheel:
        names = set(wheel.namelist())
    shared = {name.partition("/data/share/")[2] for name in names}
    assert {"man/man1/neon8-run.1", "zsh/site-functions/_neon8"} <= shared
    libraries = {name for name in names if name.startswith("neon8/lib")}
    prebuilt = {
        name.split("/")[2] for name in names if name.startswith("neon8/prebuilt/")
    }
    if machine_of(platform) == "armv7":
        assert (libraries, prebuilt) == ({"neon8/libneon8.so"}, set())
    else:
        stems = ("neon8", "neon8_calibrate", "neon8_trace")
        assert libraries == {f"neon8/lib{stem}.so" for stem in stems}
        assert prebuilt >= {*TARGETS, HEADERS}


@pytest.mark.parametrize("platform", HERE)
def test_runs_a_model(platform, environment, tmp_path):
    python = environment(platform)
    image = make_golden.inputs()["image"]
    np.save(tmp_path / "image.npy", image)
    program = (
        "import sys, numpy, neon8\n"
        "from neon8.runtime.library import find\n"
        "with neon8.Model.open(sys.argv[1]) as model, model.session() as session:\n"
        "    outputs = session.run({'image': numpy.load(sys.argv[2])})\n"
        "numpy.savez(sys.argv[3], **outputs)\n"
        "print(find())\n"
        "print(sorted({'onnx', 'onnxruntime', 'PIL', 'yaml'} & {*sys.modules}))\n"
    )
    out = tmp_path / "out.npz"
    said = run(*python, "-c", program, MODEL, tmp_path / "image.npy", out, cwd=tmp_path)
    library, foreign = said.split("\n", 1)
    assert "build/native" not in library
    assert foreign == "[]\n"
    with np.load(out) as outputs:
        digests = {name: make_golden.digest(outputs[name]) for name in outputs.files}
    assert digests == DIGESTS


@pytest.mark.parametrize("platform", HERE)
def test_commands(platform, environment, tmp_path):
    neon8 = [*environment(platform), "-m", "neon8"]
    assert "conv2d" in run(*neon8, "inspect", MODEL, cwd=tmp_path)
    image = make_golden.inputs()["image"]
    np.save(tmp_path / "x.npy", image)
    run(*neon8, "run", MODEL, "--input", "x.npy", "-o", "y.npz", cwd=tmp_path)
    with np.load(tmp_path / "y.npz") as outputs:
        assert make_golden.digest(outputs["p"]) == DIGESTS["p"]
    done = ran(
        *neon8, "calibrate", MODEL, "--data", "x.npy", "-o", "t.json", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'neon8[calibrate]'" in done.stderr


@pytest.mark.parametrize("platform", [each for each in PLATFORMS if each not in HERE])
def test_the_library_runs_with_musl(platform, tmp_path):
    """A program in C uses it."""
    machine = machine_of(platform)
    with zipfile.ZipFile(wheel_of(platform)) as wheel:
        library = wheel.extract("neon8/libneon8.so", tmp_path)
    program = tmp_path / "program"
    run(
        *(
            ROOT / "cross" / "zig-cc",
            f"--target={machine}-linux-musl",
            "-dynamic",
            "-O2",
        ),
        *("-I", ROOT / "runtime" / "include", CONSUMER / "main.c", library),
        *("-o", program),
    )
    (loader,) = (ROOT / "build" / "sysroot" / f"musl-{machine}").glob(
        "usr/lib/*-musl/libc.so"
    )
    qemu = ["qemu-aarch64"] if machine == "aarch64" else []
    start = (loader, "--library-path", Path(library).parent, program)
    assert_runs(tmp_path, *qemu, *start)
