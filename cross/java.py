# SPDX-License-Identifier: Apache-2.0
"""Makes the jars of the Java classes, and a Java for 64-bit ARM that qemu runs.

    python3 cross/java.py jars    # build/prebuilt/java
    python3 cross/java.py jre     # build/sysroot/java

neon8.jar is for any JVM, neon8-android.jar also has what takes bitmaps. The same javac
gives the same bytes. The Java is Debian's, without a desktop; of the packages that it
depends on, the emulation sysroot has what it needs here.
"""

import dataclasses
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from sysroot import (
    HERE,
    MACHINES,
    SYSROOTS,
    StepError,
    download_packages,
    run,
    unpack_packages,
)

SOURCES = HERE.parent / "runtime" / "java"
JARS = HERE.parent / "build" / "prebuilt" / "java"
JRE = "openjdk-17-jre-headless"
EPOCH = (1980, 1, 1, 0, 0, 0)


def make_jar(target: Path, *folders: str) -> None:
    """Compiles the sources of these folders into a jar."""
    sources = [path for name in folders for path in (SOURCES / name).rglob("*.java")]
    with tempfile.TemporaryDirectory() as classes:
        run(
            *("javac", "--release", "8", "-Xlint:all,-options", "-Werror"),
            *("-g:source,lines", "-implicit:none", "-d", classes),
            *("-sourcepath", SOURCES / "stubs", *sorted(sources)),
        )
        beside = target.with_suffix(".new")
        with zipfile.ZipFile(beside, "w") as jar:
            for path in sorted(Path(classes).rglob("*.class")):
                entry = zipfile.ZipInfo(str(path.relative_to(classes)), EPOCH)
                entry.external_attr = 0o644 << 16
                jar.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    beside.rename(target)


def make_jre() -> None:
    """Unpacks the Java unless it is there, and runs it."""
    root = SYSROOTS / "java"
    if root.exists():
        return
    aarch64 = next(each for each in MACHINES if each.name == "aarch64")
    work = SYSROOTS / "java.new"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print("java: making build/sysroot/java (110 MB to download)", flush=True)
    machine = dataclasses.replace(aarch64, packages=(JRE,))
    packages = download_packages(machine, work)
    (package,) = (path for path in packages if path.name.startswith(f"{JRE}_"))
    unpack_packages([package], work / "root")
    (java,) = (work / "root").glob("usr/lib/jvm/java-17-*/bin/java")
    run(aarch64.runner, java, "-Xint", "-version")
    (work / "root").rename(root)
    shutil.rmtree(work)


def main(words: list[str]) -> int:
    """Makes what the one word says."""
    try:
        if words == ["jars"]:
            JARS.mkdir(parents=True, exist_ok=True)
            make_jar(JARS / "neon8.jar", "src")
            make_jar(JARS / "neon8-android.jar", "src", "android")
        elif words == ["jre"]:
            make_jre()
        else:
            print("java: give 'jars' or 'jre'", file=sys.stderr)
            return 2
    except StepError as error:
        print(f"java: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
