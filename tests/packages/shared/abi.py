# SPDX-License-Identifier: Apache-2.0
"""The binary interface that neon8.h promises, against that of the last release.

    .venv/bin/python tests/packages/shared/abi.py    # stores this one: `make abi`

Every function of the header is defined and compiled with debugging information, from
which abidw writes all that a caller was compiled to rely on: symbols, signatures,
constants, sizes and fields. abidiff compares two of these. What has come to lie in the
room that the last release reserved at the end of a struct is left out of both.
"""

import gzip
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "runtime" / "include" / "neon8.h"
COMPILERS = {"aarch64": "aarch64-linux-gnu-gcc", "armv7": "arm-linux-gnueabihf-gcc"}
DUMP = "--no-corpus-path --no-comp-dir-path --no-show-locs --no-parameter-names"


def stored(machine: str) -> Path:
    """The file of the last release."""
    return ROOT / "tests" / "packages" / "abi" / f"{machine}.xml.gz"


def soname() -> str:
    """That of the library."""
    text = (ROOT / "runtime" / "CMakeLists.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"^set\(N8_ABI (\d+)\)", text, re.MULTILINE)
    return f"libneon8.so.{version}"


def dump(header: str, machine: str) -> bytes:
    """What abidw says of a library with this header."""
    code = re.sub(r"(?m)^N8_API ([^;]+);", r"N8_API \1 { __builtin_trap(); }", header)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "libneon8.so")
        options = ["-g", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname()}"]
        subprocess.run(
            [COMPILERS[machine], *options, "-x", "c", "-", "-o", library],
            input=code.encode(),
            check=True,
        )
        return subprocess.run(
            ["abidw", *DUMP.split(), library], stdout=subprocess.PIPE, check=True
        ).stdout


def structs(tree: ET.Element) -> dict[str, ET.Element]:
    """The public structs that have fields, by name."""
    return {
        each.attrib["name"]: each
        for each in tree.iter("class-decl")
        if each.get("is-declaration-only") is None
    }


def room(tree: ET.Element, struct: ET.Element) -> tuple[int, int]:
    """The first bit of what is reserved at its end, and the one after."""
    *_, last = struct.iter("data-member")
    (variable,) = last.iter("var-decl")
    kind = tree.find(f".//array-type-def[@id='{variable.attrib['type-id']}']")
    if variable.attrib["name"] != "reserved" or kind is None:
        raise ValueError(f"{struct.attrib['name']} does not end in reserved[]")
    first = int(last.attrib["layout-offset-in-bits"])
    return first, first + int(kind.attrib["size-in-bits"])


def changes(old: bytes, new: bytes) -> str:
    """What of `new` programs that were compiled for `old` cannot bear, or nothing."""
    before, after = (ET.fromstring(each) for each in (old, new))  # noqa: S314
    now = structs(after)
    complaints = []
    for name, struct in structs(before).items():
        first, end = room(before, struct)
        rows = [struct]
        if name in now:
            rows.append(now[name])
            if room(after, now[name])[1] > end:
                complaints.append(f"{name} has more than fitted into its room")
            now[name].attrib["size-in-bits"] = struct.attrib["size-in-bits"]
        for row in rows:
            for field in row.findall("data-member"):
                if int(field.attrib["layout-offset-in-bits"]) >= first:
                    row.remove(field)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("old.xml", "new.xml")]
        for path, tree in zip(paths, (before, after), strict=True):
            ET.ElementTree(tree).write(path)
        done = subprocess.run(
            ["abidiff", "--no-added-syms", *paths],
            stdout=subprocess.PIPE,
            check=False,
            text=True,
        )
    return "\n".join([*complaints, *([done.stdout] if done.returncode else [])])


def main() -> None:
    """Store the interface as it is."""
    for machine in COMPILERS:
        text = dump(HEADER.read_text(encoding="utf-8"), machine)
        stored(machine).write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main()
