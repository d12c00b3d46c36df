# SPDX-License-Identifier: Apache-2.0
"""What this machine has of what neon8 needs, and what mends the rest.

Works where packages are missing, and loads numpy and cffi alone to say so.
"""

import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata

from neon8 import text
from neon8.errors import SettingsError, SetupError
from neon8.machines import DEFAULT_CPU, EMULATIONS, NATIVE
from neon8.prebuilt import TARGETS, prebuilt_file
from neon8.settings.fields import meant
from neon8.version import __version__

RUNS = ("numpy", "cffi")
"""What opening and running a model takes."""
CONTRIBUTORS = {"browser", "demo", "test"}
"""Extras that only a checkout has a use for."""
PURPOSES = {"calibrate": "quantize networks, and what else the command does"}
"""What extras are for, where their names do not say it."""
VERSIONS = (*RUNS, "onnx", "onnxruntime", "torch")
"""Packages whose version decides what comes out, if any does."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Why something does not work, and the command that mends it."""

    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Check:
    """What can be asked for.  look: finds what it lacks."""

    purpose: str
    look: Callable[[], Iterable[Lack]]


def version_of(package: str) -> str | None:
    """The version of an installed package, which is not loaded."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _packages(wanted: Iterable[str]) -> Iterator[Lack]:
    """What is not installed of requirements as pip takes them."""
    for each in wanted:
        name = re.split(r"[^\w.-]", each)[0]
        if version_of(name) is None:
            yield Lack(f"{name} is not installed", f"pip install '{each}'")


def _program(name: str, package: str) -> Iterator[Lack]:
    if shutil.which(name) is None:
        yield Lack(f"{name} is not installed", f"apt-get install {package}")


def _board(name: str, package: str) -> Iterator[Lack]:
    yield from _program(name, package)
    yield from _prebuilt("linux-aarch64", "neon8-runner")


def _prebuilt(target: str, name: str) -> Iterator[Lack]:
    try:
        prebuilt_file(target, name)
    except SetupError:
        remedy = "make prebuilt, in a checkout, or install the wheel for a computer"
        yield Lack(f"{name} for {target} is not there", remedy)


def _here() -> Iterator[Lack]:
    from neon8.runtime import library  # noqa: PLC0415 - cffi may be missing

    yield from _refused(library.load)


def _emulated(target: str) -> Iterator[Lack]:
    from neon8.runtime.board import board  # noqa: PLC0415 - numpy may be missing

    yield from _refused(board.link_to, target, DEFAULT_CPU)


def _running(look: Callable[[], Iterable[Lack]]) -> Iterator[Lack]:
    """What running models lacks, and what `look` finds once they can be run."""
    lacks = list(_packages(RUNS))
    yield from lacks or look()


def _refused(function: Callable[..., object], *given: object) -> Iterator[Lack]:
    try:
        function(*given)
    except SetupError as error:
        cause, _, remedy = error.text.rpartition("; ")
        yield Lack(cause or error.text, remedy)


def _extras() -> dict[str, list[str]]:
    """What pip installs with the extras of neon8, by their names."""
    try:
        listed = metadata.requires("neon8") or []
    except metadata.PackageNotFoundError:  # its folder is on the path
        listed = []
    found: dict[str, list[str]] = {}
    for each in listed:
        requirement, _, condition = each.partition(";")
        extra = re.search(r"extra == .([\w-]+)", condition)
        if "python_version" not in condition or sys.version_info < (3, 11):
            found.setdefault(extra[1] if extra else "", []).append(requirement.strip())
    return {name: found[name] for name in found if name and name not in CONTRIBUTORS}


def checks() -> dict[str, Check]:
    """All that can be asked for, by name."""
    found = {NATIVE: Check("run models on this machine", partial(_running, _here))}
    for target in EMULATIONS:
        look = partial(_running, partial(_emulated, target))
        found[target] = Check(f"run them on {target} under qemu", look)
    for extra, wanted in _extras().items():
        purpose = PURPOSES.get(extra, f"what neon8[{extra}] brings")
        found[extra] = Check(purpose, partial(_packages, wanted))
    for target in TARGETS:
        look = partial(_prebuilt, target, "libneon8.so")
        found[target] = Check(f"package models for {target}", look)
    java = partial(_program, "javac", "default-jdk-headless")
    found["java"] = Check("check packages for Android", java)
    ssh = partial(_board, "ssh", "openssh-client")
    found["ssh"] = Check("run models on a board", ssh)
    found["adb"] = Check("run them on Android", partial(_board, "adb", "adb"))
    return found


def examined(names: Iterable[str] = ()) -> tuple[list[text.Part], list[str]]:
    """What works and what is lacking; and a line for each that was asked for and lacks.

    names: what is asked for.  Without any, all is shown, and only running models on
    this machine is asked for.  SettingsError: an unknown name.
    """
    known, asked = checks(), tuple(names)
    for name in asked:
        if name not in known:
            raise SettingsError(f"{name!r} is unknown; {meant(name, known)}")
    lacks = {name: list(known[name].look()) for name in asked or known}
    rows = [
        (name, text.Shown("no" if found else "yes", not found), known[name].purpose)
        for name, found in lacks.items()
    ]
    missing = [
        (name, each.cause, each.remedy) for name in lacks for each in lacks[name]
    ]
    parts: list[text.Part] = [
        *installed(),
        "",
        text.Table("works", rows, ("name", "ready", "for")),
    ]
    if missing:
        header = ("name", "cause", "remedy")
        parts += ["", text.Table("missing", missing, header)]
    failed = [
        f"{name}: {', '.join(each.cause for each in lacks[name])}"
        for name in asked or (NATIVE,)
        if lacks[name]
    ]
    return parts, failed


def installed() -> list[text.Part]:
    """What neon8 and its library are, and which versions of packages they meet."""
    pairs: list[tuple[str, object]] = [
        ("neon8", __version__),
        ("python", f"{platform.python_version()}, {platform.machine()}"),
    ]
    if not list(_packages(RUNS)):
        pairs += _library()
    versions = {name: version_of(name) or text.UNKNOWN for name in VERSIONS}
    return [text.Fields([*pairs, *versions.items()])]


def _library() -> Iterator[tuple[str, object]]:
    from neon8.runtime import library, model  # noqa: PLC0415 - cffi may be missing

    try:
        loaded = library.load()
    except SetupError:
        yield "library", text.UNKNOWN
        return
    version = loaded.ffi.string(loaded.lib.n8_version()).decode()
    yield "library", str(loaded.path)
    yield "library version", version
    usable = model.usable_levels()
    yield "levels that run here", text.Shown(", ".join(usable), usable)
    if version_of("pyelftools") is None or sys.platform != "linux":
        return
    from neon8.inspection import elf  # noqa: PLC0415 - as above

    facts = elf.read(str(loaded.path), loaded.path.read_bytes())
    built = tuple(facts.kernels or ())
    yield "levels built", text.Shown(", ".join(built) or text.UNKNOWN, built or None)
    yield "compiler", facts.compiler or text.UNKNOWN
