# SPDX-License-Identifier: Apache-2.0
"""A Debian package for each target: a program and the model; the library is another."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from neon8.errors import SetupError
from neon8.package import builds
from neon8.package.templates import render, write
from neon8.package.wrapper import Wrapper
from neon8.prebuilt import prebuilt_file

TARGETS = builds.LINUX
LIBRARY = "libneon8-1"
LIBRARY_FILE = "libneon8.so.1"
MOMENT = "315532800"
"""The beginning of 1980, where SOURCE_DATE_EPOCH says nothing."""


def fill(
    folder: Path, wrapper: Wrapper, targets: Sequence[str], *, embed: bool
) -> None:
    """Write the package into `folder`.  SetupError: there is no dpkg-deb."""
    if shutil.which("dpkg-deb") is None:
        raise SetupError("there is no dpkg-deb here; install the package dpkg")
    name = wrapper.name.replace("_", "-")
    model = f"usr/share/{name}/{wrapper.name}.n8"
    files = {
        "program.c": render("program.c", wrapper, embed=embed, model_path=f"/{model}"),
        "data.c": render("data.c", wrapper, embed=embed),
    }
    for target in targets:
        debian = builds.MACHINES[target].debian
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            write(root, {} if embed else {model: wrapper.model})
            terms = render("copyright", wrapper)
            write(root, {f"usr/share/doc/{name}/copyright": terms})
            (root / "usr/bin").mkdir()
            builds.program(files, target, root / "usr/bin" / name, static=False)
            sizes = [path.stat().st_size for path in root.rglob("*")]
            facts = {"debian": debian, "size": -(-sum(sizes) // 1024)}
            control = render("control", wrapper, library=LIBRARY, **facts)
            write(root, {"DEBIAN/control": control})
            _same_modes(root)
            output = folder / f"{name}_{wrapper.version}_{debian}.deb"
            moment = os.environ.get("SOURCE_DATE_EPOCH", MOMENT)
            command = ("dpkg-deb", "-Zgzip", "--root-owner-group", "--build")
            when = {"SOURCE_DATE_EPOCH": moment}
            builds.run(target, *command, root, output, variables=when)
    readme = render("README-deb.md", wrapper, debian=name, library=LIBRARY)
    write(folder, {"README.md": readme})


def check(folder: Path, wrapper: Wrapper, targets: Sequence[str]) -> Iterator[str]:
    """Unpack each package and run the test that is in its program."""
    name = wrapper.name.replace("_", "-")
    for target in targets:
        lack = builds.lack(target)
        if lack:
            yield f"{target}: not checked: {lack}"
            continue
        (file,) = folder.glob(f"*_{builds.MACHINES[target].debian}.deb")
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            builds.run(target, "dpkg-deb", "--extract", file, root)
            shutil.copy(prebuilt_file(target, "libneon8.so"), root / LIBRARY_FILE)
            model = root / "usr/share" / name / f"{wrapper.name}.n8"
            elsewhere = ("--model", model) if model.exists() else ()
            program = (root / "usr/bin" / name, "--selftest", *elsewhere)
            where = f"LD_LIBRARY_PATH={root}"
            emulator = builds.emulator(target)
            before = [*emulator, "-E", where] if emulator else ["env", where]
            builds.run(target, *before, *program)
        yield f"{target}: {file.name}; {builds.SAME}"


def _same_modes(root: Path) -> None:
    """Those of the system's own files, whatever the umask is."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
