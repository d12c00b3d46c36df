# SPDX-License-Identifier: Apache-2.0
"""A folder for Android: the library as an AAR, the model as an asset, Java for it.

The AAR has the Java classes with libneon8_jni.so, in which the library is, and for C
and C++ libneon8.so as a Prefab package. An app loads one of the two, or uses both.
"""

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from neon8.errors import SettingsError
from neon8.package import builds, names
from neon8.package.templates import raw_samples, render, write
from neon8.package.wrapper import Value, Wrapper
from neon8.prebuilt import HEADERS, JARS, prebuilt_file
from neon8.version import __version__

TARGETS = ("android-aarch64", "android-armv7")
ABIS = {"android-aarch64": "arm64-v8a", "android-armv7": "armeabi-v7a"}
JVMS = ("linux-x86_64", "linux-aarch64")
LEAST_API = 21
NDK = 26
"""Prefab asks for the NDK that built a library, and looks at it to choose among several
of one ABI and API level; no NDK built these."""
_CLASSES = """
ArrayList Arrays AutoCloseable ByteBuffer Collections Error Example Files IOException
IllegalArgumentException List Model Override Path Paths Pixels RuntimeException Session
String System TensorInfo
"""
TAKEN = frozenset(_CLASSES.split())
"""Classes that generated code uses."""
EPOCH = (1980, 1, 1, 0, 0, 0)
MANIFEST = f"""\
<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" \
package="dev.neon8">
    <uses-sdk android:minSdkVersion="{LEAST_API}" />
</manifest>
"""
RULES = """\
# libneon8_jni.so finds these by their names.
-keep class dev.neon8.Native { *; }
"""


def fill(
    folder: Path, wrapper: Wrapper, targets: Sequence[str], *, embed: bool
) -> None:
    """Write the package into `folder`."""
    if embed:
        text = "code for Android cannot hold a model, which is an asset there"
        raise SettingsError(f"--embed: {text}; leave it out")
    known = {
        "java": _java(wrapper),
        "methods": _methods(wrapper.values),
        "abis": [ABIS[target] for target in targets],
    }
    write(
        folder,
        {
            "neon8.aar": aar(targets),
            f"assets/{wrapper.name}.n8": wrapper.model,
            _source(wrapper): render("Wrapper.java", wrapper, **known),
            "Example.java": render("Example.java", wrapper, **known),
            "README.md": render("README-android.md", wrapper, **known),
            **raw_samples(wrapper),
        },
    )


def check(folder: Path, wrapper: Wrapper, targets: Sequence[str]) -> Iterator[str]:
    """Run the example on the JVM of this machine: one for Android runs on Android."""
    here = next((each for each in JVMS if builds.native(each)), None)
    if here is None:
        lack = "no library for a JVM of this machine is made"
    else:
        lack = builds.lack(here, "javac", "java")
    if here is not None and not lack:
        library = prebuilt_file(here, "libneon8_jni.so")
        jar = prebuilt_file(JARS, "neon8.jar")
        with tempfile.TemporaryDirectory() as classes:
            place = Path(classes)  # where a JVM that crashes writes why
            sources = (folder / _source(wrapper), folder / "Example.java")
            options = ("--release", "8", "-Xlint:-options", "-cp", jar, "-d", classes)
            builds.run("the example", "javac", *options, *sources)
            path = ("-cp", f"{jar}:{classes}")
            native = f"-Ddev.neon8.library={library}"
            words = ("java", native, *path, "Example", folder.resolve())
            builds.run("the example", *words, cwd=place)
    for target in targets:
        if lack:
            yield f"{target}: not checked: {lack}"
        else:
            yield f"{target}: not run; with the library of {here}, {builds.SAME}"


def aar(targets: Sequence[str]) -> bytes:
    """The library for these targets; the same bytes each time."""
    module = "prefab/modules/neon8"
    package = {
        "schema_version": 1,
        "name": "neon8",
        "version": __version__,
        "dependencies": [],
    }
    files = {
        "AndroidManifest.xml": MANIFEST.encode(),
        "R.txt": b"",
        "classes.jar": prebuilt_file(JARS, "neon8-android.jar").read_bytes(),
        "proguard.txt": RULES.encode(),
        "prefab/prefab.json": _json(package),
        f"{module}/module.json": _json({"export_libraries": []}),
    }
    for name in ("neon8.h", "neon8.hpp"):
        header = prebuilt_file(HEADERS, name).read_bytes()
        files[f"{module}/include/{name}"] = header
    for target in targets:
        abi = ABIS[target]
        told = {"abi": abi, "api": LEAST_API, "ndk": NDK, "stl": "none"}
        place = f"{module}/libs/android.{abi}"
        files[f"{place}/abi.json"] = _json(told)
        shared = prebuilt_file(target, "libneon8.so").read_bytes()
        files[f"{place}/libneon8.so"] = shared
        java = prebuilt_file(target, "libneon8_jni.so").read_bytes()
        files[f"jni/{abi}/libneon8_jni.so"] = java
    return _zipped(files)


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, indent=4).encode() + b"\n"


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """A ZIP file of them, without the time or anything else of this machine."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return made.getvalue()


def _java(wrapper: Wrapper) -> str:
    """The name of the class."""
    return f"{wrapper.camel}Net" if wrapper.camel in TAKEN else wrapper.camel


def _source(wrapper: Wrapper) -> str:
    return f"java/dev/neon8/models/{_java(wrapper)}.java"


def _methods(values: Sequence[Value]) -> dict[str, str]:
    """What the methods of each are called after "get" and "set", no two alike."""
    found: dict[str, str] = {}
    for value in values:
        name = names.camel(value.identifier)
        while name in found.values():
            name += "_"
        found[value.identifier] = name
    return found
