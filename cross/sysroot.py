# SPDX-License-Identifier: Apache-2.0
"""Makes build/sysroot/aarch64: an arm64 Debian Python with numpy and cffi, for qemu.

    python3 cross/sysroot.py        # does nothing when it is there and up to date

The packages come from this system's apt sources, through an apt state of our own in
build/: no root, no foreign architecture in dpkg. The Python packages are the wheels
that cross/requirements.txt pins. All is made beside and renamed when it has run numpy.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYSROOT = HERE.parent / "build" / "sysroot" / "aarch64"
REQUIREMENTS = HERE / "requirements.txt"
RUNNER = HERE / "run-aarch64"
PACKAGES = ("libpython3-stdlib", "libstdc++6", "python3-minimal")
GLIBC_MINORS = range(17, 37)  # manylinux_2_17 .. manylinux_2_36


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


def stamp() -> str:
    """A digest of all that the sysroot is made from."""
    digest = hashlib.sha256()
    for path in (Path(__file__), REQUIREMENTS):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def download_packages(work: Path) -> list[Path]:
    """The .deb files of PACKAGES and of all they depend on, for arm64."""
    state, cache = work / "state", work / "cache"
    (state / "lists" / "partial").mkdir(parents=True)
    (cache / "archives" / "partial").mkdir(parents=True)
    (state / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",  # _apt cannot read this folder
        "Debug::NoLocking": "1",
        "Dir::Cache": cache,
        "Dir::State": state,
        "Dir::State::status": state / "status",
    }
    options = [
        word for key, value in settings.items() for word in ("-o", f"{key}={value}")
    ]
    update = run("apt-get", *options, "update")
    try:
        run(
            "apt-get",
            *options,
            "install",
            "--assume-yes",
            "--download-only",
            "--no-install-recommends",
            *PACKAGES,
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


def unpack_wheels(work: Path, root: Path) -> None:
    """Unpacks the pinned wheels to where Debian's Python looks for packages."""
    (python,) = root.glob("usr/bin/python3.[0-9]*")
    version = python.name.removeprefix("python")
    platforms = [f"manylinux_2_{minor}_aarch64" for minor in GLIBC_MINORS]
    tags = [
        word
        for flag, values in (
            ("--platform", ["manylinux2014_aarch64", *platforms]),
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
        *("--requirement", REQUIREMENTS, "--dest", wheels),
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


def make(work: Path) -> Path:
    """Makes the tree in `work` and proves that it runs."""
    root = work / "root"
    unpack_packages(download_packages(work), root)
    unpack_wheels(work, root)
    python = (RUNNER, root / "usr" / "bin" / "python3")
    env = {"N8_SYSROOT": str(root), "PYTHONDONTWRITEBYTECODE": ""}
    lib = root / "usr" / "lib"
    # Compiled once, an emulated Python starts three times as fast.
    run(*python, "-m", "compileall", "-q", "-j2", *lib.glob("python3*"), env=env)
    program = (
        "import cffi, numpy, sys; print(sys.version.split()[0], numpy.__version__)"
    )
    print("sysroot: python, numpy", run(*python, "-c", program, env=env).strip())
    (root / "stamp").write_text(stamp())
    return root


def main() -> int:
    """Makes the sysroot unless it is there and up to date."""
    mark = SYSROOT / "stamp"
    if mark.exists() and mark.read_text() == stamp():
        return 0
    work = SYSROOT.with_name("aarch64.new")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print("sysroot: making build/sysroot/aarch64 (40 MB to download)", flush=True)
    try:
        root = make(work)
    except StepError as error:
        print(f"sysroot: {error}", file=sys.stderr)
        return 1
    shutil.rmtree(SYSROOT, ignore_errors=True)
    root.rename(SYSROOT)
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
