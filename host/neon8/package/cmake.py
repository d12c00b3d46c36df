# SPDX-License-Identifier: Apache-2.0
"""A folder for CMake: library, model, wrappers, examples and their test."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from neon8.package import builds
from neon8.package.templates import raw_samples, render, write
from neon8.package.wrapper import Wrapper
from neon8.prebuilt import prebuilt_file

TARGETS = builds.LINUX


def fill(
    folder: Path, wrapper: Wrapper, targets: Sequence[str], *, embed: bool
) -> None:
    """Write the package into `folder`."""
    name = wrapper.name
    made: dict[str, str | bytes] = {
        f"{name}.h": render("wrapper.h", wrapper, embed=embed),
        f"{name}.c": render("wrapper.c", wrapper, embed=embed),
        f"{name}.hpp": render("wrapper.hpp", wrapper, embed=embed),
        "example.cpp": render("example.cpp", wrapper, embed=embed),
        "example.c": render("example.c", wrapper, embed=embed),
        "CMakeLists.txt": render("CMakeLists.txt", wrapper, embed=embed),
        "README.md": render("README.md", wrapper, embed=embed, targets=targets),
        ".clang-format": render("clang-format", wrapper),
        **{
            f"include/{header}": prebuilt_file("include", header).read_bytes()
            for header in ("neon8.h", "neon8.hpp")
        },
        **raw_samples(wrapper),
    }
    if embed:
        made[f"{name}_model.c"] = render("model.c", wrapper)
    else:
        made[f"{name}.n8"] = wrapper.model
    for target in targets:
        library = prebuilt_file(target, "libneon8.a").read_bytes()
        made[f"lib/{target}/libneon8.a"] = library
    write(folder, made)


def check(folder: Path, wrapper: Wrapper, targets: Sequence[str]) -> Iterator[str]:
    """Build the example for each target, and run it where that can be done here."""
    del wrapper
    for target in targets:
        lack = builds.lack(target, "cmake", builds.compiler(target))
        if lack:
            yield f"{target}: not checked: {lack}"
            continue
        with tempfile.TemporaryDirectory() as build:
            options = _options(target)
            builds.run(target, "cmake", "-S", folder, "-B", build, *options)
            builds.run(target, "cmake", "--build", build)
            builds.run(target, "ctest", "--test-dir", build, "--output-on-failure")
        yield f"{target}: built by {builds.compiler(target)}; {builds.SAME}"


def _options(target: str) -> list[str]:
    options = [f"-DCMAKE_C_COMPILER={builds.compiler(target)}"]
    emulator = builds.emulator(target)
    if emulator:
        processor = target.rpartition("-")[2]
        options += [
            "-DCMAKE_SYSTEM_NAME=Linux",
            f"-DCMAKE_SYSTEM_PROCESSOR={processor}",
            f"-DCMAKE_CROSSCOMPILING_EMULATOR={';'.join(emulator)}",
        ]
    return options
