# SPDX-License-Identifier: Apache-2.0
"""What neon8 package makes for Android, as Prefab and Gradle read it, and on a JVM."""

import io
import json
import re
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from elftools.elf.elffile import ELFFile
from models import GOLDEN, compiled, package

from neon8.package import android
from neon8.package.wrapper import describe
from neon8.prebuilt import prebuilt_file
from processes import ran

ROOT = Path(__file__).resolve().parents[2]
MODULE = "prefab/modules/neon8"
ANDROID = "{http://schemas.android.com/apk/res/android}"
MACHINES = {"arm64-v8a": "EM_AARCH64", "armeabi-v7a": "EM_ARM"}


@pytest.fixture(scope="session")
def aar():
    return zipfile.ZipFile(io.BytesIO(android.aar(android.TARGETS)))


def elf(aar, name):
    return ELFFile(io.BytesIO(aar.read(name)))


def strict(aar, name, required, optional=()):
    """An object of JSON, of which Prefab refuses one that has other keys."""
    found = json.loads(aar.read(name))
    assert required <= found.keys() <= required | set(optional)
    return found


def test_layout(aar):
    names = aar.namelist()
    assert names == sorted(names)
    for abi in MACHINES:
        library = f"{MODULE}/libs/android.{abi}"
        assert [n for n in names if n.startswith(f"{library}/")] == [
            f"{library}/abi.json",
            f"{library}/libneon8.so",
        ]
        assert f"jni/{abi}/libneon8_jni.so" in names
    assert {n for n in names if n.startswith(f"{MODULE}/include/")} == {
        f"{MODULE}/include/neon8.h",
        f"{MODULE}/include/neon8.hpp",
    }
    assert {n.partition("/")[0] for n in names} == {
        *("AndroidManifest.xml", "R.txt", "classes.jar", "proguard.txt"),
        *("jni", "prefab"),
    }
    manifest = ET.fromstring(aar.read("AndroidManifest.xml"))  # noqa: S314
    assert manifest.find("uses-sdk").attrib == {f"{ANDROID}minSdkVersion": "21"}
    assert manifest.attrib == {"package": "dev.neon8"}
    classes = zipfile.ZipFile(io.BytesIO(aar.read("classes.jar"))).namelist()
    assert {"dev/neon8/Model.class", "dev/neon8/Bitmaps.class"} <= set(classes)


def test_what_prefab_reads(aar):
    keys = {"schema_version", "name", "dependencies"}
    package = strict(aar, "prefab/prefab.json", keys, ["version"])
    assert (package["schema_version"], package["name"]) == (1, "neon8")
    assert package["dependencies"] == []
    assert re.fullmatch(r"\d+(\.\d+){0,3}", package["version"])
    optional = ["export_libraries", "library_name", "android"]
    assert strict(aar, f"{MODULE}/module.json", set(), optional) == {
        "export_libraries": []
    }
    for abi in MACHINES:
        path = f"{MODULE}/libs/android.{abi}/abi.json"
        told = strict(aar, path, {"abi", "api", "ndk", "stl"})
        assert (told["abi"], told["api"], told["stl"]) == (abi, 21, "none")
        assert isinstance(told["ndk"], int)


def test_libraries_have_their_names(aar):
    for abi, machine in MACHINES.items():
        for name in (
            f"{MODULE}/libs/android.{abi}/libneon8",
            f"jni/{abi}/libneon8_jni",
        ):
            library = elf(aar, f"{name}.so")
            assert library["e_machine"] == machine
            tags = library.get_section_by_name(".dynamic").iter_tags("DT_SONAME")
            assert [tag.soname for tag in tags] == [f"{name.rpartition('/')[2]}.so"]


def test_methods_are_those_that_java_declares(aar):
    source = (ROOT / "runtime/java/src/dev/neon8/Native.java").read_text()
    declared = set(re.findall(r"static native \S+ (\w+)\(", source))
    assert len(declared) == 8
    for abi in MACHINES:
        symbols = elf(aar, f"jni/{abi}/libneon8_jni.so").get_section_by_name(".dynsym")
        exported = {
            s.name for s in symbols.iter_symbols() if s["st_shndx"] != "SHN_UNDEF"
        }
        assert exported - {""} == {f"Java_dev_neon8_Native_{name}" for name in declared}


def test_the_rule_keeps_what_c_finds_by_name(aar):
    code = (ROOT / "runtime/java/neon8_jni.c").read_text()
    assert re.findall(r'GetStaticMethodID\(env, native, "(\w+)"', code) == ["fail"]
    assert b"-keep class dev.neon8.Native { *; }" in aar.read("proguard.txt")


def test_the_same_bytes_again():
    one = android.aar(["android-aarch64"])
    assert one == android.aar(["android-aarch64"])
    assert len(one) < len(android.aar(android.TARGETS))


def compile_strictly(folder, classes):
    """The sources of a package, with every warning of the compiler."""
    command = ["javac", "--release", "8", "-Xlint:all,-options", "-Werror"]
    sources = [*folder.rglob("*.java")]
    jar = prebuilt_file("java", "neon8.jar")
    subprocess.run([*command, "-cp", jar, "-d", classes, *sources], check=True)


@pytest.mark.parametrize("options", [{}, {"io": "int8"}, {"image": True}])
def test_packages(capsys, tmp_path, options):
    labels = tmp_path / "labels.txt"
    labels.write_text('cat\ndog \\u0022 "??/\nÄöß\N{GRINNING FACE}\n\\\nfive\n')
    more = ["--labels", labels, "--preprocess", tmp_path / "p.toml", "--name", "string"]
    model = compiled(tmp_path, source="wait", result="notify", **options)
    folder = tmp_path / "net"
    said = package(capsys, model, folder, "android", *more)
    assert said.count("the bytes of this PC") == 2
    compile_strictly(folder, tmp_path)


def test_open_dimensions_and_another_model(capsys, tmp_path):
    folder = tmp_path / "net"
    said = package(capsys, GOLDEN / "open.n8", folder, "android", "--name", "shapes")
    assert said.count("the bytes of this PC") == 2
    compile_strictly(folder, tmp_path)
    (folder / "assets/shapes.n8").write_bytes((GOLDEN / "small.n8").read_bytes())
    paths = f"{prebuilt_file('java', 'neon8.jar')}:{tmp_path}"
    library = prebuilt_file("linux-x86_64", "libneon8_jni.so")
    words = ["-cp", paths, f"-Ddev.neon8.library={library}", "Example", folder]
    done = ran("java", *words)
    assert done.returncode == 1
    assert (
        "IllegalArgumentException: a model with other inputs or outputs" in done.stderr
    )


def test_more_labels_than_a_method_holds(tmp_path):
    labels = tuple(f"label {number}" for number in range(7000))
    wrapper = replace(describe(GOLDEN / "small.n8"), labels=labels)
    android.fill(tmp_path, wrapper, android.TARGETS, embed=False)
    compile_strictly(tmp_path, tmp_path)


def test_without_a_jdk(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = package(capsys, GOLDEN / "small.n8", tmp_path / "net", "android")
    assert said.count("not checked: there is no javac and no java here") == 2
