# SPDX-License-Identifier: Apache-2.0
"""neon8 package: each kind is built, and its example gives the bytes of the PC."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from models import GOLDEN, compiled, package

import neon8
from neon8.errors import Neon8Error, SetupError
from neon8.package import builds
from neon8.package.wrapper import describe
from neon8.prebuilt import prebuilt_file
from processes import ran

PC = "linux-x86_64"
ARM = ("linux-aarch64", "linux-armv7")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text('cat\ndog "??/\nÄöß\n\\\nfive\n')
    return path


def tried(*command, **more):
    """The output of a command that succeeds."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, check=False, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def warns(folder):
    """GCC has nothing to say of the C in a package, nor clang-format."""
    for source in sorted(folder.glob("*.c")):
        gcc = ("gcc", "-std=c11", *WARNINGS, "-fsyntax-only", "-Iinclude", source)
        tried(*gcc, cwd=folder)
    strict = ("g++", "-std=c++17", *WARNINGS, "-fsyntax-only", "-Iinclude")
    tried(*strict, "example.cpp", cwd=folder)
    formatter = Path(sys.executable).with_name("clang-format")
    files = [*folder.glob("*.[ch]"), *folder.glob("*.[ch]pp")]
    tried(formatter, "--dry-run", "-Werror", *files)


def test_cmake_on_every_target(capsys, tmp_path):
    said = package(capsys, GOLDEN / "small.n8", tmp_path / "net", "cmake")
    assert said.count("the bytes of this PC") == 3


@pytest.mark.parametrize(
    ("options", "how"),
    [({}, ()), ({"io": "int8"}, ("--embed",)), ({"image": True}, ())],
)
def test_cmake_of_what_models_take(capsys, tmp_path, labels, options, how):
    model, folder = compiled(tmp_path, **options), tmp_path / "net"
    how = ("--labels", labels, "--preprocess", tmp_path / "p.toml", *how)
    said = package(capsys, model, folder, "cmake", "--target", PC, *how)
    assert "the bytes of this PC" in said
    warns(folder)


HOSTILE = ('";\n*/ ??/\\', "../class\u202e")


@pytest.mark.parametrize("kind", ["cmake", "python", "static-binary"])
def test_hostile_names(capsys, tmp_path, kind):
    source, result = HOSTILE
    model, folder = compiled(tmp_path, source=source, result=result), tmp_path / "net"
    target = () if kind == "python" else ("--target", PC)
    said = package(capsys, model, folder, kind, "--name", 'a"\n/b', *target)
    assert "the bytes of this PC" in said
    if kind == "cmake":
        warns(folder)
        assert (folder / "a_b.h").exists()


@pytest.mark.parametrize("embed", [(), ("--embed",)])
def test_cmake_with_open_dimensions(capsys, tmp_path, embed):
    folder, model = tmp_path / "net", GOLDEN / "open.n8"
    np.save(tmp_path / "x.npy", np.ones((2, 3, 6, 14), np.float32))
    sample = ("--input", tmp_path / "x.npy") if embed else ()
    package(capsys, model, folder, "cmake", "--target", PC, *embed, *sample)
    warns(folder)
    assert "int32_t batch, int32_t height," in (folder / "model_open.h").read_text()


CALLER = """
#include <stdio.h>
#include "model_open.h"

int main(int argc, char **argv) {
    static float image[504], odd[792], join[3696], p[20], cubes[1848];
    static float few[462];
    struct model_open net;
    if (argc != 3 || model_open_open(&net, argv[2], 1) != N8_E_ARGUMENT) return 1;
    if (net.model || net.session || net.resized) return 1;
    if (model_open_open(&net, "none", 1) != N8_E_ARGUMENT) return 2;
    if (model_open_open(&net, argv[1], 1) != N8_OK || net.image_size != 108) return 3;
    if (model_open_resize(&net, 2, 7, 14) != N8_E_SHAPE) return 4;
    if (net.image_size != 108 || !net.session) return 4;
    if (model_open_resize(&net, 3, 40, 40) != N8_OK) return 5;
    if (model_open_resize(&net, 2, 6, 14) != N8_OK || net.image_size != 504) return 6;
    if (net.odd_size != 792 || net.join_size != 3696 || net.p_size != 20) return 7;
    if (net.cubes_size != 1848 || net.few_size != 462) return 8;
    if (fread(image, sizeof *image, 504, stdin) != 504) return 9;
    if (model_open_run(&net, image, odd, join, p, cubes, few) != N8_OK) return 10;
    fwrite(join, sizeof *join, net.join_size, stdout);
    model_open_close(&net);
    model_open_close(&net);
    return 0;
}
"""


def test_a_caller_chooses_dimensions(tmp_path):
    folder, model = tmp_path / "net", GOLDEN / "open.n8"
    neon8.package_model(model, "cmake", folder, targets=[PC], check=False)
    (folder / "caller.c").write_text(CALLER)
    gcc = ("gcc", "-std=c11", *WARNINGS, "-Iinclude", "caller.c", "model_open.c")
    sanitized = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    library = (f"lib/{PC}/libneon8.a", "-lm", "-lpthread")
    tried(*gcc, *sanitized, "-o", "caller", *library, cwd=folder)
    image = np.random.default_rng(3).random((2, 3, 6, 14), np.float32)
    models = (folder / "model_open.n8", GOLDEN / "small.n8")
    got = tried(folder / "caller", *models, input=image.tobytes())
    assert got == run_by_name(model, {"image": image})["join"].tobytes()


def run_by_name(model, inputs):
    with neon8.Model.open(model) as opened, opened.session() as session:
        return session.run(inputs)


def test_a_static_program_takes_open_dimensions(capsys, tmp_path):
    folder, model = tmp_path / "net", GOLDEN / "open.n8"
    np.save(tmp_path / "s.npy", np.ones((1, 3, 8, 30), np.float32))
    target = ("--target", PC, "--input", tmp_path / "s.npy")
    package(capsys, model, folder, "static-binary", *target)
    image = np.random.default_rng(3).random((2, 3, 6, 14), np.float32)
    np.save(tmp_path / "x.npy", image)
    wanted = run_by_name(model, {"image": image})
    names = [tmp_path / f"{number}.npy" for number in range(len(wanted))]
    program = folder / f"model_open-{PC}"
    sizes = ("--batch", 2, "--height", 6, "--width", 14)
    outputs = [word for name in names for word in ("-o", name)]
    tried(program, *sizes, tmp_path / "x.npy", *outputs)
    for name, value in zip(names, wanted.values(), strict=True):
        got = np.load(name)
        assert (got.dtype, got.shape) == (value.dtype, value.shape)
        assert got.tobytes() == value.tobytes()


def test_a_static_program_is_the_same_everywhere(capsys, tmp_path):
    model, folder = compiled(tmp_path, io="int8"), tmp_path / "net"
    targets = [word for target in (PC, *ARM) for word in ("--target", target)]
    said = package(capsys, model, folder, "static-binary", *targets)
    assert said.count("the bytes of this PC") == 3
    image = np.arange(108, dtype=np.int8).reshape(1, 3, 6, 6)
    (wanted,) = run_by_name(model, {"image": image}).values()
    raw = image.tobytes()
    for target in (PC, *ARM):
        command = (*builds.emulator(target), folder / f"net-{target}", "-")
        got = np.load(io.BytesIO(tried(*command, "--threads", 2, input=raw)))
        assert got.dtype == np.int8
        assert got.tobytes() == wanted.tobytes()
    first = (folder / f"net-{PC}").read_bytes()
    package(capsys, model, folder, "static-binary", "--target", PC)
    assert (folder / f"net-{PC}").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["a.npy"], "is not {'descr': '|i1', 'fortran_order': False, 'shape': (1, 3"),
        (["b.npy"], "is neither an .npy file of version 1 nor 108 bytes"),
        (["c.npy"], "is larger than"),
        (["none"], "cannot be read"),
        ([], "an input is missing"),
        (["a.npy", "more"], "'more' is not expected"),
        (["--threads", "x", "a.npy"], "--threads takes a number"),
        (["--threads"], "--threads takes a number"),
        (["good.npy", "-o", "/none/x"], "/none/x: cannot be written"),
    ],
)
def test_a_program_refuses(int8_program, tmp_path, words, complaint):
    np.save(tmp_path / "a.npy", np.zeros((1, 3, 6, 6), np.uint8))
    np.save(tmp_path / "good.npy", np.zeros((1, 3, 6, 6), np.int8))
    (tmp_path / "b.npy").write_bytes(bytes(50))
    (tmp_path / "c.npy").write_bytes(bytes(2000))
    done = ran(int8_program, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def int8_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    done = neon8.package_model(
        compiled(folder, io="int8"), "static-binary", folder / "net", targets=[PC]
    )
    assert len(done.checked) == 1
    return folder / "net" / f"net-{PC}"


@pytest.mark.parametrize("embed", [(), ("--embed",)])
def test_deb(capsys, tmp_path, embed, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("DEBFULLNAME", "A\nDepends: b")
    folder, model = tmp_path / "net", GOLDEN / "small.n8"
    target = "linux-armv7" if embed else "linux-aarch64"
    options = ("--target", target, "--release", "2.1", *embed)
    said = package(capsys, model, folder, "deb", *options)
    assert "the bytes of this PC" in said
    (file,) = folder.glob("small_2.1_*.deb")
    first = file.read_bytes()
    depends = tried("dpkg-deb", "--field", file, "Depends").decode()
    assert depends == "libc6 (>= 2.17), libneon8-1\n"
    listed = tried("dpkg-deb", "--contents", file).decode()
    assert "root/root" in listed
    assert "./usr/bin/small" in listed
    assert ("small.n8" in listed) is not bool(embed)
    before = os.umask(0o077)
    try:
        package(capsys, model, folder, "deb", *options, "--no-check")
    finally:
        os.umask(before)
    assert file.read_bytes() == first


def test_python(capsys, tmp_path, labels):
    model, folder = compiled(tmp_path, io="int8"), tmp_path / "net"
    how = ("--labels", labels, "--preprocess", tmp_path / "p.toml")
    assert "the bytes of this PC" in package(capsys, model, folder, "python", *how)
    for source in folder.rglob("*.py"):
        tried(sys.executable, "-m", "ruff", "format", "--check", source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q")
    copy = shutil.copytree(folder, tmp_path / "copy")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path)
    tried(*pip, *offline, copy)
    (wheel,) = tmp_path.glob("net-1.0-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {"net/__init__.py", "net/net.n8", "net/py.typed"} < {*archive.namelist()}
    code = "import numpy as np, net; n = net.Net(); print(n(np.zeros((1,3,6,6), 'b')))"
    code += "; print(net.LABELS)"
    said = tried(sys.executable, "-c", code, env={**os.environ, "PYTHONPATH": wheel})
    assert "Äöß" in said.decode()


def test_python_of_several_outputs(capsys, tmp_path):
    for number, model in enumerate((GOLDEN / "small.n8", GOLDEN / "open.n8")):
        folder = tmp_path / str(number)
        assert "bytes of this PC" in package(capsys, model, folder, "python")
        for source in folder.rglob("*.py"):
            tried(sys.executable, "-m", "ruff", "format", "--check", source)
    where = {**os.environ, "MYPYPATH": f"src:{GOLDEN.parents[1] / 'host'}"}
    mypy = (sys.executable, "-m", "mypy", "--strict", "src/model_open")
    tried(*mypy, cwd=folder, env=where)


def test_what_differs_is_not_written(tmp_path, monkeypatch):
    described = describe(GOLDEN / "small.n8")
    described.outputs[0].sample[0, 0, 0, 0] += 1
    monkeypatch.setattr("neon8.package.package.describe", lambda *_, **__: described)
    folder = tmp_path / "net"
    with pytest.raises(SetupError, match="the package was not written") as caught:
        neon8.package_model("small.n8", "cmake", folder, targets=[PC])
    assert "sum.raw: DIFFERENT" in str(caught.value)
    assert not folder.exists()
    neon8.package_model("small.n8", "cmake", folder, targets=[PC], check=False)
    assert folder.exists()


def test_a_program_refuses_another_model(tmp_path):
    made = {}
    for name in ("small", "indexed"):
        folder, path = tmp_path / name, GOLDEN / f"{name}.n8"
        neon8.package_model(path, "deb", folder, targets=[PC], check=False)
        tried("dpkg-deb", "--extract", *folder.glob("*.deb"), folder)
        (made[name],) = folder.glob("usr/bin/*")
    library = prebuilt_file(PC, "libneon8.so")
    (tmp_path / "libneon8.so.1").symlink_to(library)
    for name, other in (("indexed", "small"), ("small", "open")):
        command = (made[name], "--selftest", "--model", GOLDEN / f"{other}.n8")
        where = {"LD_LIBRARY_PATH": str(tmp_path)}
        done = subprocess.run(command, env=where, capture_output=True, check=False)
        assert done.returncode == 2
        assert b"has other inputs or outputs" in done.stderr


def test_the_same_bytes_each_time(tmp_path):
    def made(name):
        neon8.package_model(GOLDEN / "small.n8", "cmake", tmp_path / name, check=False)
        return (tmp_path / name / "neon8-package.json").read_bytes()

    assert made("one") == made("two")


def test_a_static_program_without_zig(tmp_path, monkeypatch):
    monkeypatch.setattr(builds.importlib.util, "find_spec", lambda _: None)
    done = neon8.package_model(
        GOLDEN / "small.n8", "static-binary", tmp_path / "net", targets=[PC, ARM[0]]
    )
    assert all("the bytes of this PC" in line for line in done.checked)


def test_what_is_not_here_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(builds.shutil, "which", lambda _: None)
    done = neon8.package_model(GOLDEN / "small.n8", "cmake", tmp_path / "net")
    assert "not checked: there is no cmake and no cc" in done.checked[0]
    assert len(done.checked) == 3
    monkeypatch.setattr(builds.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="pip install ziglang, or install"):
        neon8.package_model(GOLDEN / "small.n8", "static-binary", tmp_path / "two")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"targets": ["linux-x86_64"]}, "is none of --for python"),
        ({"kind": "names"}, "'names' is unknown"),
        ({"embed": True}, "a Python package has its model as a file"),
        ({"embed": True, "kind": "android"}, "which is an asset there; leave it out"),
        ({"labels": "three.txt"}, "has 3 lines, one for each class"),
        ({"labels": "bytes.txt"}, "is not UTF-8"),
        ({"release": "1.0-x"}, "is no version"),
        ({"sample": "x.npy"}, "x.npy"),
    ],
)
def test_refused(tmp_path, monkeypatch, options, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three.txt").write_text("a\nb\nc\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\n")
    np.save(tmp_path / "x.npy", np.zeros((5, 5), np.float32))
    chosen = {"kind": "python", "output": "net", **options}
    with pytest.raises(Neon8Error, match=complaint):
        neon8.package_model(GOLDEN / "small.n8", **chosen)
    assert not (tmp_path / "net").exists()


def test_a_sample_of_yours(capsys, tmp_path):
    image = np.random.default_rng(4).random((2, 3, 9, 7), np.float32)
    np.save(tmp_path / "x.npy", image)
    folder = tmp_path / "net"
    model, options = GOLDEN / "small.n8", ("--input", tmp_path / "x.npy")
    package(capsys, model, folder, "python", *options)
    assert np.load(folder / "tests/image.npy").tobytes() == image.tobytes()
