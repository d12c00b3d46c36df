# SPDX-License-Identifier: Apache-2.0
"""The Java classes on the JVM of this PC and, emulated, on one for ARM.

java/Check.java runs the committed models, does everything wrong that there is, and
writes what the models gave; the bytes are judged here.
"""

import json
import os
import re
import struct
import subprocess
import zipfile
from pathlib import Path

import make_golden
import numpy as np
import open_golden
import pytest
from PIL import Image

import neon8
from neon8.compile.lower import lower
from neon8.data.preprocess import Preprocess
from onnx_nets import chain, save
from opened_file import File, with_checksum
from processes import ran

ROOT = Path(__file__).resolve().parents[2]
JAVA = ROOT / "runtime" / "java"
JARS = ROOT / "build" / "prebuilt" / "java"
EMOJI = "\N{GRINNING FACE}x"
NO_UTF8 = b"\xc0\xff\xed\xa0\x80"
"""As long as the names whose places these two take."""


def renamed(content: bytes, old: bytes, new: bytes) -> bytes:
    """The file with another name in it, and the checksum of that."""
    fresh = content.replace(b"\0" + old + b"\0", b"\0" + new + b"\0")
    assert fresh != content
    assert len(fresh) == len(content)
    return with_checksum(fresh)


def refused() -> bytes:
    """A file with a right checksum and a wrong layer, "first"."""
    net = make_golden.graph()
    file = File(lower(net, make_golden.table(net)))
    file.damage("first", "stride = 0, 0")
    return file.content()


def photo(folder: Path) -> bytes:
    """A model that takes gray images and gives int8."""
    path = save(folder, chain([("Conv", [(4, 1, 3, 3), (4,)], {})], (1, 1, 9, 7)))
    samples = np.random.default_rng(1).normal(size=(1000, 1, 9, 7))
    table = neon8.calibrate_model(path, samples.astype(np.float32))
    image = Preprocess(color="gray", scale=1 / 64, mean=(2,))
    return neon8.compile_model(path, table, io="int8", image=image)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, bytes]:
    """What Check.java reads, by name."""
    colors = np.random.default_rng(3).integers(0, 256, (63, 4), np.uint8)
    rgb = np.ascontiguousarray(colors[:, 2::-1])
    gray = Image.fromarray(rgb[None]).convert("L").tobytes()
    small = make_golden.model("small").read_bytes()
    bad = refused()
    found = {
        "colors.in": colors.tobytes(),  # blue, green, red, alpha: 0xAARRGGBB
        "colors.RGB": rgb.tobytes(),
        "colors.BGR": rgb[:, ::-1].tobytes(),
        "colors.GRAY": gray,
        "photo.n8": photo(tmp_path_factory.mktemp("photo")),
        "photo.in": gray,
        "open.n8": open_golden.MODEL.read_bytes(),
        "refused.n8": bad,
        "refused-emoji.n8": renamed(bad, b"first", EMOJI.encode()),
        "refused-bytes.n8": renamed(bad, b"first", NO_UTF8),
        "emoji.n8": renamed(small, b"image", EMOJI.encode()),
        "bytes.n8": renamed(small, b"image", NO_UTF8),
    }
    for name in make_golden.NAMES:
        found[f"{name}.n8"] = make_golden.model(name).read_bytes()
        found[f"{name}.in"] = make_golden.inputs()["image"].tobytes()
    for shape in open_golden.SHAPES:
        image = open_golden.inputs(*shape)["image"]
        found[f"open-{'x'.join(map(str, shape))}.in"] = image.tobytes()
    return found


@pytest.fixture
def folder(files, tmp_path) -> Path:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> Path:
    """The folder of Check.class."""
    made = tmp_path_factory.mktemp("classes")
    source = ROOT / "tests/packages/java/Check.java"
    command = ["javac", "--release", "8", "-Xlint:-options", "-cp", JARS / "neon8.jar"]
    subprocess.run([*command, "-d", made, source], check=True)
    return made


def check(java, program, folder, *, build="native", env=None) -> None:
    """Run it, and compare what the models gave with the digests that are committed."""
    library = ROOT / "build" / build / "libneon8_jni.so"
    assert library.exists(), "run `make java` first"
    done = ran(
        *(*java, f"-Ddev.neon8.library={library}"),
        *("-cp", f"{JARS / 'neon8.jar'}:{program}", "Check", folder),
        cwd=folder,  # where a JVM that crashes writes why
        env={**os.environ, **(env or {})},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"\d+ checks, version {neon8.__version__}\n", done.stdout
    )  # -Xcheck:jni warns here
    for name in make_golden.NAMES:
        digests = json.loads(make_golden.digests_of(name).read_text())
        assert digests_of(folder, name) == digests["outputs"]
    digests = json.loads(open_golden.DIGESTS.read_text())["outputs"]
    for shape, wanted in digests.items():
        assert digests_of(folder, f"open-{shape}") == wanted
    with neon8.Model.open(folder / "photo.n8") as model:
        pixels = np.frombuffer((folder / "photo.in").read_bytes(), np.uint8)
        results = model.session().run({"x": pixels.reshape(1, 9, 7, 1)})
    assert (folder / "photo.y.out").read_bytes() == results["y"].tobytes()


def digests_of(folder: Path, name: str) -> dict[str, str]:
    """Those of the outputs that a model gave."""
    return {
        path.name.split(".")[1]: make_golden.digest(
            np.frombuffer(path.read_bytes(), np.uint8)
        )
        for path in folder.glob(f"{name}.*.out")
    }


def test_on_this_pc(program, folder):
    check(["java", "-Xcheck:jni"], program, folder)


def test_under_sanitizers(program, folder):
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    # The JVM has uses of its own for SIGSEGV, and memory that it never gives back.
    options = "handle_segv=0:detect_leaks=0"
    env = {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": options}
    check(["java"], program, folder, build="native-asan", env=env)


def test_on_arm(program, folder):
    (java,) = (ROOT / "build/sysroot/java").glob("usr/lib/jvm/java-17-*/bin/java")
    command = [ROOT / "cross/run-aarch64", java, "-Xint", "-Xcheck:jni"]
    check(command, program, folder, build="aarch64")


def test_what_a_model_is_described_as(program, folder):
    check(["java"], program, folder)
    for name in (*make_golden.NAMES, "photo"):
        with neon8.Model.open(folder / f"{name}.n8") as model:
            wanted = [*model.inputs.items(), *model.outputs.items()]
        lines = (folder / f"{name}.txt").read_text().splitlines()
        for line, (tensor, info) in zip(lines, wanted, strict=True):
            text, dtype, shape, scale, zero_point, lo, hi, size = line.split(" ")
            assert (text, dtype) == (tensor, info.dtype.upper())
            assert tuple(json.loads(shape)) == info.shape
            assert float(scale) == info.scale
            numbers = (info.zero_point, info.lo, info.hi)
            assert (int(zero_point), int(lo), int(hi)) == numbers
            assert int(size) == np.prod(info.shape) * np.dtype(info.dtype).itemsize


def test_bitmaps(folder, tmp_path):
    """With a Bitmap that is no more than what Bitmaps.java asks of it."""
    jar = JARS / "neon8-android.jar"
    source = ROOT / "tests/packages/java/BitmapCheck.java"
    command = ["javac", "--release", "8", "-Xlint:-options", "-d", tmp_path]
    paths = ["-cp", jar, "-sourcepath", JAVA / "stubs"]
    subprocess.run([*command, *paths, source], check=True)
    library = f"-Ddev.neon8.library={ROOT / 'build/native/libneon8_jni.so'}"
    words = ["-cp", f"{jar}:{tmp_path}", "BitmapCheck", folder]
    subprocess.run(["java", library, *words], check=True)
    with neon8.Model.open(folder / "photo.n8") as model:
        pixels = np.frombuffer((folder / "photo.in").read_bytes(), np.uint8)
        results = model.session().run({"x": pixels.reshape(1, 9, 7, 1)})
    assert (folder / "bitmap.out").read_bytes() == results["y"].tobytes()


def test_java_counts_as_c_does():
    """The constants of enums are told by their order."""
    header = (ROOT / "runtime/include/neon8.h").read_text()
    java = JAVA / "src" / "dev" / "neon8"

    def constants(name: str, enum: str) -> list[str]:
        body = (java / name).read_text().partition(f"enum {enum} {{")[2]
        return re.findall(r"^        ([A-Z0-9]+)[(,;\n]", body, re.MULTILINE)

    statuses = dict(re.findall(r"N8_E_([A-Z]+) = (\d+)", header))
    found = constants("Neon8Exception.java", "Status")
    assert statuses == {name: str(at) for at, name in enumerate(found) if at}
    types = dict(re.findall(r"N8_TYPE_([A-Z0-9]+) = (\d+)", header))
    kinds = {"S": "INT", "F": "FLOAT", "U": "UINT"}
    assert {kinds[name[0]] + name[1:]: int(at) for name, at in types.items()} == {
        name: at for at, name in enumerate(constants("TensorInfo.java", "Type"), 1)
    }


def test_jars():
    """The same bytes again, of Java 8, and nothing of Android's in them."""
    with zipfile.ZipFile(JARS / "neon8-android.jar") as jar:
        android = {name: jar.read(name) for name in jar.namelist()}
    with zipfile.ZipFile(JARS / "neon8.jar") as jar:
        plain = {name: jar.read(name) for name in jar.namelist()}
    assert android.keys() - plain.keys() == {"dev/neon8/Bitmaps.class"}
    assert {name: android[name] for name in plain} == plain
    for name, content in android.items():
        assert name.startswith("dev/neon8/")
        assert struct.unpack(">IHH", content[:8]) == (0xCAFEBABE, 0, 52)
