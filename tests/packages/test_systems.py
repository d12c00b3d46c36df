# SPDX-License-Identifier: Apache-2.0
"""macOS and Windows on ARM, where nothing of this has run: what Clang says of it."""

import re
import subprocess
from pathlib import Path

import pytest
import ziglang
from consumer import ROOT, newest, run

RUNTIME = ROOT / "runtime"
ZIG = Path(ziglang.__file__).parent
ASSEMBLY = sorted((ROOT / "asm" / "aarch64").glob("*.S"))
ROOMS = ("cpu", "move", "conv", "model", "memory", "exec", "ops", "ref")
INCLUDES = ("-I", RUNTIME, "-I", RUNTIME / "include", '-DN8_VERSION="0"')
STRICT = (
    *[
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Wconversion",
        "-Werror",
    ],
)
OTHERS = ("arm64-apple-macos11", "aarch64-windows-gnu")
CALL, CALLS = 0b100101 << 26, 0b111111 << 26


def sources() -> list[Path]:
    folders = (RUNTIME, *(RUNTIME / room for room in ROOMS))
    return sorted(path for folder in folders for path in folder.glob("*.c"))


def code(folder: Path, target: str, *files: Path) -> dict[str, list[int]]:
    """What Clang makes of assembly, but for where calls go: linkers fill that in."""
    folder.mkdir()
    clang = (ZIG / "zig", "clang", f"--target={target}", "-c", *INCLUDES)
    subprocess.run([*clang, *files], cwd=folder, check=True)
    objects = sorted(path.name for path in folder.iterdir())
    dump = subprocess.check_output(
        [newest("llvm-objdump"), "-d", *objects], cwd=folder, text=True
    )
    found: dict[str, list[int]] = {}
    for line in dump.splitlines():
        if file := re.match(r"(\S+):\s+file format", line):
            words = found.setdefault(file[1], [])
        elif word := re.match(r"\s*[0-9a-f]+: ([0-9a-f]{8})\s", line):
            value = int(word[1], 16)
            words.append(CALL if value & CALLS == CALL else value)
    return found


@pytest.mark.parametrize("target", OTHERS)
def test_the_assembly_is_the_same(target, tmp_path):
    """Its audits (tests/elf), such as of register x18, so hold there, too."""
    expected = code(tmp_path / "linux", "aarch64-linux-gnu", *ASSEMBLY)
    assert len(expected) == len(ASSEMBLY)
    assert min(map(len, expected.values())) > 20
    assert code(tmp_path / "other", target, *ASSEMBLY) == expected


def test_c_compiles_for_windows():
    headers = ("-isystem", ZIG / "lib" / "include")
    system = ("-isystem", ZIG / "lib" / "libc" / "include" / "any-windows-any")
    clang = (ZIG / "zig", "clang", "--target=aarch64-windows-gnu", "-fsyntax-only")
    release = "-D_WIN32_WINNT=0x0a00"
    run(*clang, *STRICT, *INCLUDES, "-nostdinc", *headers, *system, release, *sources())


def test_the_library_links_for_macos(tmp_path):
    """The linker finds what C and assembly call of each other and of the system."""
    library = tmp_path / "libneon8.dylib"
    zig = (ZIG / "zig", "cc", "--target=aarch64-macos.11.0", "-shared", "-O0", "-g0")
    alone = ("-fno-sanitize=undefined", "-rtlib=none")  # nothing that Zig would make
    run(*zig, *alone, *STRICT, *INCLUDES, *sources(), *ASSEMBLY, "-o", library)
    symbols = run(newest("llvm-objdump"), "--macho", "--exports-trie", library)
    assert "_n8_model_open" in symbols
