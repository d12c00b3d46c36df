# SPDX-License-Identifier: Apache-2.0
"""find_package, add_subdirectory, FetchContent and pkg-config find the library.

It is installed from build/native, and compiled twice more inside other projects. Each
language, compiler and kind of library is used in some of the ways, not in each.
"""

import os
import shlex
import subprocess

import pytest
from consumer import CONSUMER, ROOT, assert_runs, newest, run

from processes import ran

NATIVE = ROOT / "build" / "native"
GCC = ("gcc", "g++")
CLANG = (newest("clang"), newest("clang++"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A prefix that is not where it was installed to."""
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", NATIVE, "--prefix", folder / "before")
    return (folder / "before").rename(folder / "moved to")


def consume(folder, how, link, compilers, *options):
    """Build the project in `folder`; returns what that printed.  Its programs run."""
    build = folder / "build"
    c, cxx = compilers
    text = run(
        *("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", build),
        *(f"-DHOW={how}", f"-DLINK={link}", *options),
        *(f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}"),
    )
    text += run("cmake", "--build", build)
    for language in ("c", "cpp"):
        assert_runs(folder, build / f"main_{language}")
    return text


def needed(program):
    """The libraries that a program loads."""
    return ran("readelf", "-d", program, check=True).stdout


@pytest.mark.parametrize(
    ("link", "compilers", "loads"),
    [("neon8::neon8", GCC, True), ("neon8::static", CLANG, False)],
)
def test_find_package(installed, tmp_path, link, compilers, loads):
    prefix = f"-DCMAKE_PREFIX_PATH={installed}"
    consume(tmp_path, "find_package", link, compilers, prefix)
    text = needed(tmp_path / "build" / "main_c")
    assert ("libneon8.so.1" in text) == loads


def test_add_subdirectory(tmp_path):
    """A project with settings that would change bytes or break a build."""
    consume(
        *(tmp_path, "add_subdirectory", "neon8::neon8", CLANG, f"-DSOURCE={ROOT}"),
        *("-DBUILD_SHARED_LIBS=ON", "-DCMAKE_UNITY_BUILD=ON", "-DN8_VECTOR=OFF"),
        *("-DCMAKE_C_FLAGS=-ffast-math", "-DCMAKE_BUILD_TYPE=Release"),
    )
    assert "libneon8.so.1" in needed(tmp_path / "build" / "main_c")
    assert not (tmp_path / "build" / "neon8" / "runtime" / "host").exists()


def test_fetch_content(tmp_path):
    """What git has of this checkout, in a project that chooses nothing else.

    The levels of vectors take most of the time.
    """
    archive = tmp_path / "neon8.tar"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(
        ["tar", "-c", "--null", "-T", "-", "-f", archive],
        input=names,
        cwd=ROOT,
        check=True,
    )
    options = (f"-DSOURCE={archive}", "-DN8_VECTOR=OFF")
    text = consume(tmp_path, "FetchContent", "neon8::neon8", GCC, *options)
    assert "libneon8" not in needed(tmp_path / "build" / "main_c")
    assert "warning" not in text
    assert not [*tmp_path.rglob("libneon8.so*")]  # nobody links it


@pytest.mark.parametrize("options", [(), ("--static",)], ids=["shared", "static"])
def test_pkg_config(installed, tmp_path, options):
    (file,) = installed.rglob("neon8.pc")
    env = os.environ | {"PKG_CONFIG_PATH": str(file.parent)}
    flags = run("pkg-config", "--cflags", "--libs", *options, "neon8", env=env)
    assert "before" not in flags
    program = tmp_path / "main"
    run(
        *("gcc", CONSUMER / "main.c", "-o", program),
        *shlex.split(flags),
        *(["-static"] if options else [f"-Wl,-rpath,{file.parents[1]}"]),
    )
    assert_runs(tmp_path, program)


def test_only_static(tmp_path):
    """From the repository's own folder, neon8::neon8 is the static library.

    That is not compiled again but taken from elsewhere.
    """
    build, prefix = tmp_path / "static", tmp_path / "prefix"
    options = ("-G", "Ninja", "-DBUILD_SHARED_LIBS=OFF")
    run("cmake", "-S", ROOT, "-B", build, *options)
    made = build / "runtime" / "libneon8.a"
    assert run("ninja", "-C", build, "-t", "query", made.relative_to(build))
    made.write_bytes((NATIVE / "libneon8.a").read_bytes())
    run("cmake", "--install", build, "--prefix", prefix)
    assert not [*prefix.rglob("libneon8.so*")]
    (file,) = prefix.rglob("neon8.pc")
    assert "Libs: -L${libdir} -lneon8 -lm -pthread\n" in file.read_text()
    path = f"-DCMAKE_PREFIX_PATH={prefix}"
    (tmp_path / "use").mkdir()
    consume(tmp_path / "use", "find_package", "neon8::neon8", GCC, path)
