# SPDX-License-Identifier: Apache-2.0
"""Makes build/sysroot/NAME: Debian Pythons for ARM with numpy and cffi, to run in qemu.

    python3 cross/sysroot.py            # aarch64 and armv7; what is up to date stays
    python3 cross/sysroot.py armv7      # one of them

The packages come from this system's apt sources, through an apt state of our own in
build/: no root, no foreign architecture in dpkg. The Python packages are the wheels
that cross/requirements*.txt pin; numpy and cffi have none for 32-bit ARM and are the
distribution's there. All is made beside and renamed when it has run numpy.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYSROOTS = HERE.parent / "build" / "sysroot"
PYTHON = ("libpython3-stdlib", "libstdc++6", "python3-minimal")
PYTHON_HERE = f"python3.{sys.version_info.minor}"
GLIBC_MINORS = range(17, 37)  # manylinux_2_17 .. manylinux_2_36


@dataclass(frozen=True)
class Machine:
    """An architecture.

    name: of its folder and of its runner, cross/run-NAME; debian: as Debian calls it;
    wheels: as wheels call it; packages: of Debian; requirements: wheels;
    megabytes: of the download.
    """

    name: str
    debian: str
    wheels: str
    packages: tuple[str, ...]
    requirements: tuple[str, ...]
    megabytes: int

    @property
    def runner(self) -> Path:
        """What runs its programs."""
        return HERE / f"run-{self.name}"

    @property
    def pins(self) -> list[Path]:
        """The files that list its wheels."""
        return [HERE / name for name in self.requirements]


MACHINES = (
    Machine(
        name="aarch64",
        debian="arm64",
        wheels="aarch64",
        packages=PYTHON,
        requirements=("requirements.txt", "requirements-aarch64.txt"),
        megabytes=40,
    ),
    Machine(
        name="armv7",
        debian="armhf",
        wheels="armv7l",
        packages=(*PYTHON, "python3-cffi", "python3-numpy"),
        requirements=("requirements.txt",),
        megabytes=25,
    ),
)


class StepError(Exception):
    """A command failed.  The text ends with what it printed."""


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Runs a command and returns what it printed."""
    try:
        done = subprocess.run(
            command,
            env=os.environ | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
            text=True,
        )
    except FileNotFoundError:
        raise StepError(f"{command[0]} is missing: run cross/setup.sh") from None
    except subprocess.CalledProcessError as error:
        words = " ".join(map(str, command))
        raise StepError(f"{words}\n{error.stdout}") from None
    return done.stdout


def stamp(machine: Machine) -> str:
    """A digest of all that the sysroot is made from."""
    digest = hashlib.sha256()
    for path in (Path(__file__), *machine.pins):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def download_packages(machine: Machine, work: Path) -> list[Path]:
    """The .deb files of the machine's packages and of all they depend on."""
    state, cache = work / "state", work / "cache"
    (state / "lists" / "partial").mkdir(parents=True)
    (cache / "archives" / "partial").mkdir(parents=True)
    (state / "status").touch()
    settings = {
        "APT::Architecture": machine.debian,
        "APT::Architectures": machine.debian,
        "APT::Sandbox::User": "root",  # _apt cannot read this folder
        "Debug::NoLocking": "1",
        "Dir::Cache": cache,
        "Dir::State": state,
        "Dir::State::status": state / "status",
    }
    options = [
        word for key, value in settings.items() for word in ("-o", f"{key}={value}")
    ]
    try:
        update = run("apt-get", *options, "update")
    except StepError as error:  # what one source lacks, another may have
        update = str(error)
    try:
        run(
            "apt-get",
            *options,
            "install",
            "--assume-yes",
            "--download-only",
            "--no-install-recommends",
            *machine.packages,
        )
    except StepError as error:
        raise StepError(f"{error}\napt-get update had said:\n{update}") from None
    return sorted((cache / "archives").glob("*.deb"))


def unpack_packages(packages: list[Path], root: Path) -> None:
    """Unpacks them into a tree with merged /usr and without absolute links."""
    for folder in ("bin", "lib", "sbin"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for package in packages:
        tar = subprocess.Popen(
            ["tar", "-x", "-C", root, "--keep-directory-symlink", "--no-same-owner"],
            stdin=subprocess.PIPE,
        )
        unpacked = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=tar.stdin, check=False
        )
        tar.communicate()
        if unpacked.returncode or tar.returncode:
            raise StepError(f"{package.name}: cannot be unpacked")
    for path in root.rglob("*"):
        if path.is_symlink() and (target := path.readlink()).is_absolute():
            inside = root / target.relative_to("/")
            path.unlink()
            path.symlink_to(os.path.relpath(inside, path.parent))
    # As the packages' own scripts do, of which none has run: numpy needs these two.
    for path in root.glob("usr/lib/*/*/lib*.so.3"):
        if path.parent.name in ("blas", "lapack"):
            (path.parents[1] / path.name).symlink_to(f"{path.parent.name}/{path.name}")


def unpack_wheels(machine: Machine, work: Path, root: Path) -> None:
    """Unpacks the pinned wheels to where Debian's Python looks for packages."""
    (python,) = root.glob("usr/bin/python3.[0-9]*")
    version = python.name.removeprefix("python")
    platforms = [f"manylinux_2_{minor}_{machine.wheels}" for minor in GLIBC_MINORS]
    tags = [
        word
        for flag, values in (
            ("--platform", [f"manylinux2014_{machine.wheels}", *platforms]),
            ("--abi", [f"cp{version.replace('.', '')}", "abi3", "none"]),
        )
        for value in values
        for word in (flag, value)
    ]
    wheels = work / "wheels"
    run(
        sys.executable,
        *("-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--only-binary=:all:", "--no-deps", "--implementation=cp"),
        *(f"--python-version={version}", *tags),
        *(word for pins in machine.pins for word in ("--requirement", pins)),
        *("--dest", wheels),
    )
    packages = root / "usr" / "lib" / "python3" / "dist-packages"
    packages.mkdir(parents=True, exist_ok=True)
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    # Present, so that the guest does not see the host's folder of that name.
    (root / "usr" / "local" / "lib" / f"python{version}" / "dist-packages").mkdir(
        parents=True
    )


def make(machine: Machine, work: Path) -> Path:
    """Makes the tree in `work` and proves that it runs."""
    root = work / "root"
    unpack_packages(download_packages(machine, work), root)
    unpack_wheels(machine, work, root)
    python = (machine.runner, root / "usr" / "bin" / "python3")
    env = {"N8_SYSROOT": str(root), "PYTHONDONTWRITEBYTECODE": ""}
    libraries = [*(root / "usr" / "lib").glob("python3*")]
    # Compiled once, an emulated Python starts three times as fast. Bytecode is the same
    # on every processor, so a host of the same version need not emulate its compiler.
    same = any(path.name == PYTHON_HERE for path in libraries)
    compiler = (sys.executable,) if same else python
    run(*compiler, "-m", "compileall", "-q", "-j2", *libraries, env=env)
    program = (
        "import cffi, numpy, sys; print(sys.version.split()[0], numpy.__version__)"
    )
    print("sysroot: python, numpy", run(*python, "-c", program, env=env).strip())
    (root / "stamp").write_text(stamp(machine))
    return root


def update(machine: Machine) -> None:
    """Makes a sysroot unless it is there and up to date.  StepError."""
    sysroot = SYSROOTS / machine.name
    mark = sysroot / "stamp"
    if mark.exists() and mark.read_text() == stamp(machine):
        return
    work = SYSROOTS / f"{machine.name}.new"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    size = f"{machine.megabytes} MB to download"
    print(f"sysroot: making build/sysroot/{machine.name} ({size})", flush=True)
    root = make(machine, work)
    shutil.rmtree(sysroot, ignore_errors=True)
    root.rename(sysroot)
    shutil.rmtree(work)


def main(names: list[str]) -> int:
    """Makes the sysroots of these names, or all."""
    known = {machine.name: machine for machine in MACHINES}
    for name in names or known:
        if name not in known:
            print(f"sysroot: {name!r} is none of {[*known]}", file=sys.stderr)
            return 2
        try:
            update(known[name])
        except StepError as error:
            print(f"sysroot: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
