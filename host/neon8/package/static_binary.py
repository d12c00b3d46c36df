# SPDX-License-Identifier: Apache-2.0
"""A program for each target, with library and model in it, that any Linux runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from neon8.package import builds
from neon8.package.templates import render, write
from neon8.package.wrapper import Wrapper

TARGETS = builds.LINUX


def fill(
    folder: Path, wrapper: Wrapper, targets: Sequence[str], *, embed: bool
) -> None:
    """Write the package into `folder`; the model is always in the code."""
    del embed
    files = {
        "program.c": render("program.c", wrapper, embed=True),
        "data.c": render("data.c", wrapper, embed=True),
    }
    for target in targets:
        builds.program(files, target, folder / name(wrapper, target), static=True)
    readme = render("README-program.md", wrapper, targets=targets)
    write(folder, {"README.md": readme})


def name(wrapper: Wrapper, target: str) -> str:
    """The name of the program for a target."""
    return f"{wrapper.name}-{target}"


def check(folder: Path, wrapper: Wrapper, targets: Sequence[str]) -> Iterator[str]:
    """Run the test that is in each program."""
    for target in targets:
        lack = builds.lack(target)
        if lack:
            yield f"{target}: not checked: {lack}"
            continue
        program = folder / name(wrapper, target)
        builds.run(target, *builds.emulator(target), program, "--selftest")
        yield f"{target}: {program.stat().st_size} bytes; {builds.SAME}"
