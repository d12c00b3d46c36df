# SPDX-License-Identifier: Apache-2.0
"""Makes build/wheels: the package for every Linux that it can be installed on.

    python cross/wheels.py                 # all
    python cross/wheels.py musllinux_1_2_x86_64

What is compiled comes from cross/zig-cc, in build folders that are kept. auditwheel
sees to it that a wheel asks no more of its C library than its name says. Wheels of 64
bits are for computers, which calibrate and make packages for boards: they carry
build/prebuilt, too, which auditwheel is not shown, since it is for other machines.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WHEELS = ROOT / "build" / "wheels"
PREBUILT = ROOT / "build" / "prebuilt"


@dataclass(frozen=True)
class Platform:
    """A Linux.

    name: as wheels call it.  zig: as cross/zig-cc does.  computer: it has 64 bits.
    prebuilt: the target of build/prebuilt that has the same library.
    """

    name: str
    zig: str
    computer: bool = True
    prebuilt: str | None = None

    @property
    def machine(self) -> str:
        """What comes after the version of the C library in its name."""
        return self.name.split("_", 3)[3]


PLATFORMS = (
    Platform("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17", prebuilt="linux-x86_64"),
    Platform("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17"),
    Platform(
        "manylinux_2_17_armv7l",
        "arm-linux-gnueabihf.2.17",
        computer=False,
        prebuilt="linux-armv7",
    ),
    Platform("musllinux_1_2_x86_64", "x86_64-linux-musl"),
    Platform("musllinux_1_2_aarch64", "aarch64-linux-musl"),
)


class StepError(Exception):
    """A command failed.  The text ends with what it printed."""


def run(*command: str | Path, **env: str) -> None:
    """Runs a command of .venv, silently unless it fails."""
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join((scripts, os.environ["PATH"]))
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PATH": path} | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    if done.returncode:
        raise StepError(f"{' '.join(map(str, command))}\n{done.stdout}")


def build(platform: Platform, work: Path) -> Path:
    """A wheel as scikit-build-core makes it, for a Linux without a version."""
    on = "ON" if platform.computer else "OFF"
    library = PREBUILT / platform.prebuilt / "libneon8.so" if platform.prebuilt else ""
    options = (
        f"-DN8_BUILT={library}",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cross' / 'zig.cmake'}",
        f"-DN8_ZIG_TARGET={platform.zig}",
        f"-DN8_VECTOR={on}",
        f"-DN8_COMPUTER={on}",
    )
    run(
        *(sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check"),
        *("--no-deps", "--no-build-isolation", "--wheel-dir", work / "built", "."),
        f"-Cbuild-dir={ROOT / 'build' / f'wheel-{platform.name}'}",
        f"-Ccmake.args={';'.join(options)}",
        _PYTHON_HOST_PLATFORM=f"linux-{platform.machine}",
    )
    (built,) = (work / "built").iterdir()
    return built


def repack(wheel: Path, work: Path, change: Callable[[Path], None]) -> None:
    """Changes the folder of the package inside a wheel."""
    tool = (sys.executable, "-m", "wheel")
    run(*tool, "unpack", "--dest", work / "unpacked", wheel)
    (folder,) = (work / "unpacked").iterdir()
    change(folder / "neon8")
    wheel.unlink()
    run(*tool, "pack", "--dest-dir", wheel.parent, folder)
    shutil.rmtree(work / "unpacked")


def name_musl(platform: Platform, package: Path) -> None:
    """Names the C library as Alpine does: auditwheel knows no other name."""
    name = f"libc.musl-{platform.machine}.so.1"
    for library in package.glob("lib*.so"):
        run("patchelf", "--replace-needed", "libc.so", name, library)


def audit(platform: Platform, built: Path, work: Path) -> Path:
    """The wheel with the name of the oldest Linux that auditwheel finds it runs on."""
    options = ("--plat", "auto", "--only-plat", "--wheel-dir", work / "audited")
    here = ("--ldpaths", work)  # not among this machine's libraries
    run("auditwheel", "repair", *options, *here, built)
    (audited,) = (work / "audited").iterdir()
    if platform.name not in audited.stem.split("-")[-1].split("."):
        raise StepError(f"{audited.name} is not for {platform.name}")
    return audited


def changed() -> float:
    """When anything that wheels are made of changed last."""
    folders = (ROOT / "host", ROOT / "runtime", ROOT / "asm", HERE)
    files = (path for folder in folders for path in folder.rglob("*"))
    return max(
        path.stat().st_mtime
        for path in (ROOT / "pyproject.toml", ROOT / "README.md", *files)
        if path.is_file() and "__pycache__" not in path.parts
    )


def make(platform: Platform) -> Path:
    """Makes one wheel, in the place of one that may be there, if that is too old."""
    for old in WHEELS.glob(f"*{platform.name}.whl"):
        if old.stat().st_mtime > changed():
            return old
    work = WHEELS / f"{platform.name}.new"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    wheel = build(platform, work)
    if platform.zig.endswith("musl"):
        repack(wheel, work, lambda package: name_musl(platform, package))
    wheel = audit(platform, wheel, work)
    if platform.computer:
        repack(wheel, work, lambda to: shutil.copytree(PREBUILT, to / "prebuilt"))
    for old in WHEELS.glob(f"*{platform.name}.whl"):
        old.unlink()
    made = wheel.replace(WHEELS / wheel.name)
    shutil.rmtree(work)
    return made


def main(names: list[str]) -> int:
    """Makes the wheels of these platforms, or all."""
    known = {platform.name: platform for platform in PLATFORMS}
    if unknown := set(names) - set(known):
        print(f"wheels: {sorted(unknown)} are none of {[*known]}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in names] or PLATFORMS
    try:
        with ThreadPoolExecutor(2) as pool:
            for made in pool.map(make, chosen):
                size = made.stat().st_size / 1e6
                print(f"wheels: {size:.1f} MB {made.relative_to(ROOT)}", flush=True)
    except StepError as error:
        print(f"wheels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
