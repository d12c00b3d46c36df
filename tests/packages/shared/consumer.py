# SPDX-License-Identifier: Apache-2.0
"""Programs that use an installed or embedded neon8, and what they must write."""

import re
import subprocess
from pathlib import Path

import make_golden
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from neon8.runtime import Model

ROOT = Path(__file__).resolve().parents[3]
CONSUMER = ROOT / "tests" / "packages" / "consumer"
MODEL = make_golden.model("small")


def run(*command: object, **options: object) -> str:
    """What a command prints; all of it in the error if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}"
    return done.stdout


def newest(name: str) -> str:
    """The newest compiler of a name, as "clang++-19"; without a number, the name."""
    numbers = [
        int(found[1])
        for path in Path("/usr/bin").iterdir()
        if (found := re.fullmatch(rf"{re.escape(name)}-(\d+)", path.name))
    ]
    return f"{name}-{max(numbers)}" if numbers else name


def assert_runs(folder: Path, *command: object, **options: object) -> None:
    """Let a program run the golden model on its inputs; its bytes are the library's."""
    inputs = make_golden.inputs()
    given, out = folder / "in", folder / "out"
    given.write_bytes(b"".join(array.tobytes() for array in inputs.values()))
    out.unlink(missing_ok=True)
    run(*command, MODEL, given, out, **options)
    with Model.open(MODEL) as model:
        results = model.session(1).run(inputs)
    assert out.read_bytes() == b"".join(each.tobytes() for each in results.values())


def symbol_versions(library: Path) -> set[str]:
    """The versions of symbols that it needs, as GLIBC_2.17."""
    with library.open("rb") as file:
        return {
            version.name
            for section in ELFFile(file).iter_sections()
            if isinstance(section, GNUVerNeedSection)
            for _, versions in section.iter_versions()
            for version in versions
        }
