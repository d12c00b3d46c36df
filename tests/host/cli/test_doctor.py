# SPDX-License-Identifier: Apache-2.0
"""What works on a machine, and what is said of one that lacks something."""

import json
import os
import subprocess
import sys
from importlib import metadata

import pytest

import neon8
from neon8 import prebuilt
from neon8.cli.main import main
from neon8.runtime.library import find
from processes import ran


def said(capsys, *words, status=0):
    assert main([*words]) == status
    return capsys.readouterr()


def facts(capsys, *words, status=0):
    return json.loads(said(capsys, *words, "--json", status=status).out)


def test_this_machine_works(capsys):
    found = facts(capsys, "doctor", "native")
    assert found["works"] == [
        {"name": "native", "ready": True, "for": "run models on this machine"}
    ]
    assert "missing" not in found
    assert found["neon8"] == neon8.__version__
    assert found["numpy"] == metadata.version("numpy")


def test_the_version_for_programs(capsys):
    found = facts(capsys, "--version")
    assert found["library"] == str(find())
    assert found["library version"] == found["neon8"] == neon8.__version__
    assert found["levels that run here"][0] == "c"
    assert set(found["levels that run here"]) <= set(found["levels built"])
    assert "GCC" in found["compiler"] or "clang" in found["compiler"]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--json"], "--json stands after the command"),
        (["--json", "inspect", "x"], "--json stands after the command"),
        (["--version", "doctor"], "leave one of them out"),
        (["doctor", "nativ"], "did you mean 'native'?"),
    ],
)
def test_what_is_no_question(capsys, words, cause):
    assert cause in said(capsys, *words, status=2).err


def test_a_missing_package_is_named(capsys, monkeypatch):
    real = metadata.version

    def version(name):
        if name == "jinja2":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(
        metadata,
        "requires",
        lambda _: ["numpy>=1", 'jinja2>=3.1; extra == "report"', 'x; extra == "test"'],
    )
    found = facts(capsys, "doctor", "report", "native", status=3)
    assert found["missing"] == [
        {
            "name": "report",
            "cause": "jinja2 is not installed",
            "remedy": "pip install 'jinja2>=3.1'",
        }
    ]
    assert "missed: report: jinja2 is" in said(capsys, "doctor", "report", status=3).err
    assert "native" in said(capsys, "doctor").out, "nobody asked for the report"


def test_missing_tools_are_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prebuilt, "PACKAGE", tmp_path / "host/neon8")
    causes = {}
    for each in facts(capsys, "doctor")["missing"]:
        causes.setdefault(each["name"], (each["cause"], each["remedy"]))
    assert causes["linux-armv7"][0] == "libneon8.so for linux-armv7 is not there"
    assert causes["ssh"] == ("ssh is not installed", "apt-get install openssh-client")
    assert causes["java"][1] == "apt-get install default-jdk-headless"
    assert causes["armv7"] == ("qemu-arm is not installed", "apt-get install qemu-user")


def test_a_library_that_does_not_load(capsys, monkeypatch, tmp_path):
    broken = tmp_path / "libneon8.so"
    broken.touch()
    monkeypatch.setenv("N8_LIBRARY", str(broken))
    found = facts(capsys, "doctor", status=3)
    assert found["library"] is None
    assert str(broken) in found["missing"][0]["cause"]


def test_without_any_package():
    """As after `python3 -S -m neon8 doctor`, which sees the standard library alone."""
    place = os.path.dirname(os.path.dirname(neon8.__file__))  # noqa: PTH120
    done = ran(
        *(sys.executable, "-S", "-m", "neon8", "doctor", "--json"),
        env={**os.environ, "PYTHONPATH": place},
    )
    assert done.returncode == 3
    missing = json.loads(done.stdout)["missing"]
    assert {each["remedy"] for each in missing if each["name"] == "native"} == {
        "pip install 'numpy'",
        "pip install 'cffi'",
    }


@pytest.mark.parametrize("words", [["--help"], ["inspect", "nothing"]])
def test_no_colours_for_who_wants_none(words):
    ours, theirs = os.openpty()
    subprocess.run(
        [sys.executable, "-m", "neon8", *words],
        env={**os.environ, "NO_COLOR": "1", "TERM": "xterm-256color"},
        stdout=theirs,
        stderr=theirs,
        check=False,
    )
    os.write(theirs, b"end")
    assert b"\x1b" not in os.read(ours, 1 << 16)
