# SPDX-License-Identifier: Apache-2.0
"""What Android asks of the libraries that Clang builds for it without an NDK."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from audits import executable_stack, small_pages, text_relocations, wrong_machine
from consumer import symbol_versions
from elftools.elf.elffile import ELFFile
from machines import AARCH64, ARMV7

from neon8.prebuilt import prebuilt_file
from processes import ran

ROOT = Path(__file__).resolve().parents[2]
PAGE = 16384
"""The page of 64-bit Android from release 15 on."""
NEEDED = {"libc.so", "libm.so", "libdl.so"}
VERSIONS = {"LIBC"}
BEFORE_23 = {"DT_HASH", "DT_GNU_HASH"}
"""API levels below 23 read the first, later ones the second."""
PACKED = ("DT_RELR", "DT_ANDROID_REL", "DT_ANDROID_RELA")
"""Relocations that API level 21 does not read."""


def dynamic(path: Path):
    with path.open("rb") as file:
        yield from ELFFile(file).get_section_by_name(".dynamic").iter_tags()


def foreign(path: Path, _) -> list[str]:
    """Libraries and versions of symbols that Android does not have."""
    libraries = {tag.needed for tag in dynamic(path) if tag["d_tag"] == "DT_NEEDED"}
    return sorted((libraries - NEEDED) | (symbol_versions(path) - VERSIONS))


def wrong_name(path: Path, _) -> list[str]:
    """The package manager of Android installs lib*.so only."""
    names = [tag.soname for tag in dynamic(path) if tag["d_tag"] == "DT_SONAME"]
    return [] if names == [path.name] else [f"the name is {names}"]


def unread(path: Path, _) -> list[str]:
    """Tables that the loader of API level 21 misses or does not know."""
    tags = {tag["d_tag"] for tag in dynamic(path)}
    return [f"no {tag}" for tag in sorted(BEFORE_23 - tags)] + [
        f"{tag}" for tag in PACKED if tag in tags
    ]


CASES = {
    "aarch64": ("aarch64-linux-android21", replace(AARCH64, page=PAGE)),
    "armv7": ("armv7a-linux-androideabi21", replace(ARMV7, page=PAGE)),
}
AUDITS = [
    wrong_machine,
    executable_stack,
    small_pages,
    text_relocations,
    foreign,
    wrong_name,
    unread,
]


@pytest.mark.parametrize("machine", CASES)
@pytest.mark.parametrize("name", ["libneon8.so", "libneon8_jni.so"])
@pytest.mark.parametrize("audit", AUDITS)
def test_library(audit, name, machine):
    library = prebuilt_file(f"android-{machine}", name)
    assert audit(library, CASES[machine][1]) == []


PLAIN = "static int *word = (int *)&word; int *n8_word(void) { return word; }"
CALL = "int n8_other(void); int n8_call(void) { return n8_other(); }"


@pytest.mark.parametrize("machine", CASES)
@pytest.mark.parametrize(
    ("audit", "source", "flags", "complaint"),
    [
        (foreign, CALL, ["-lother"], "libother.so"),
        (foreign, CALL, ["-lother"], "OTHER_1"),
        (wrong_name, PLAIN, ["-Wl,-soname,libneon8.so.1"], "libneon8.so.1"),
        (unread, PLAIN, ["-Wl,--hash-style=gnu"], "no DT_HASH"),
        (unread, PLAIN, ["-Wl,--pack-dyn-relocs=relr"], "DT_RELR"),
        (unread, PLAIN, ["-Wl,--pack-dyn-relocs=android"], "DT_ANDROID_REL"),
    ],
)
def test_audit_sees_a_bad_library(audit, source, flags, complaint, machine, tmp_path):
    triple, expected = CASES[machine]

    def build(source: str, to: Path, *flags: str) -> Path:
        command = [ROOT / "cross" / "zig-cc", f"--target={triple}", "-o", to, *flags]
        (tmp_path / "source.c").write_text(source)
        subprocess.run([*command, tmp_path / "source.c"], check=True)
        return to

    if source == CALL:
        (tmp_path / "versions").write_text("OTHER_1 { global: *; };")
        script = f"-Wl,--version-script={tmp_path / 'versions'}"
        other = "int n8_other(void) { return 1; }"
        build(other, tmp_path / "libother.so", "-shared", script)
    bad = build(source, tmp_path / "bad", "-fPIC", "-shared", f"-L{tmp_path}", *flags)
    assert complaint in " ".join(map(str, audit(bad, expected)))


@pytest.fixture
def configure(tmp_path):
    """Configures one of the presets that use an NDK; returns what CMake said."""

    def configure_(preset: str, ndk: Path) -> str:
        command = ["cmake", "--preset", preset, "-B", tmp_path / "build"]
        env = os.environ | {"ANDROID_NDK_HOME": str(ndk)}
        done = ran(*command, cwd=ROOT / "runtime", env=env)
        assert done.returncode == 1
        return " ".join(done.stderr.split())

    return configure_


def test_a_missing_ndk_is_named(configure, tmp_path):
    said = configure("android-arm64", tmp_path)
    assert "ANDROID_NDK_HOME is not the folder of an NDK" in said
    assert "android-arm64-clang" in said


@pytest.mark.parametrize(
    ("preset", "abi"),
    [("android-arm64", "arm64-v8a"), ("android-armv7", "armeabi-v7a")],
)
def test_an_ndk_is_told_what_to_build(preset, abi, configure, tmp_path):
    """A stand-in for the toolchain file, which is all of an NDK that CMake is given."""
    folder = tmp_path / "build" / "cmake"
    folder.mkdir(parents=True)
    said = 'message(FATAL_ERROR "for ${ANDROID_ABI} ${ANDROID_PLATFORM}")'
    (folder / "android.toolchain.cmake").write_text(said)
    assert f"for {abi} android-21" in configure(preset, tmp_path)
