# SPDX-License-Identifier: Apache-2.0
"""How the library is built: by users, by this checkout, and by tests/run.sh."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from processes import ran

ROOT = Path(__file__).resolve().parents[2]


def configure(folder: Path, *options: str) -> list[dict[str, str]]:
    """How each file of the library is compiled."""
    command = ["cmake", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-B", folder, *options]
    subprocess.run(command, cwd=ROOT / "runtime", capture_output=True, check=True)
    entries: list[dict[str, str]] = json.loads(
        (folder / "compile_commands.json").read_text()
    )
    return entries


@pytest.mark.parametrize(("options", "errors"), [((), 0), (("--preset", "native"), 1)])
def test_warnings_are_errors_in_this_checkout_only(tmp_path, options, errors):
    commands = [entry["command"] for entry in configure(tmp_path, *options)]
    assert all("-Wall" in command for command in commands)
    assert {command.count("-Werror") for command in commands} == {errors}


def test_a_debug_build_has_no_warnings(tmp_path):
    """The kernels with hints for the optimizer, which say more than ISO C."""
    options = "-DCMAKE_BUILD_TYPE=Debug", "-DN8_WERROR=ON"
    entries = configure(tmp_path, *options)
    assert all("-O" not in entry["command"] for entry in entries)
    hinted = [entry for entry in entries if entry["file"].endswith("_vector.c")]
    assert len(hinted) >= len([*(ROOT / "runtime" / "vector").glob("*.c")])
    for entry in hinted:
        command = shlex.split(entry["command"])
        subprocess.run(command, cwd=entry["directory"], capture_output=True, check=True)


def test_the_tests_take_levels_from_their_table():
    script = (ROOT / "tests" / "run.sh").read_text()
    function = re.search(r"^levels\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)[0]
    said = ran(
        "bash", "-c", f"{function}\nlevels aarch64-linux-gnu-gcc", cwd=ROOT, check=True
    )
    table = (ROOT / "runtime" / "levels.inc").read_text()
    rows = re.findall(r'^N8_LEVEL\((\w+), \w+, "armv8', table, re.MULTILINE)
    assert said.stdout.split() == [level for level in rows if level != "vector"]
    assert "$(levels aarch64-linux-gnu-gcc)" in script


def test_the_demo_builds_the_runner_for_arm_and_no_tests(tmp_path):
    plan = ran("make", "--dry-run", "demo", cwd=ROOT, check=True).stdout
    builds = dict(re.findall(r"^cross/build\.sh (\w+)(.*)$", plan, re.MULTILINE))
    runner = " neon8_runner"
    assert builds == {"native": "", "aarch64": runner, "armv7": runner}
    configure(tmp_path, "--preset", "aarch64")
    command = ["ninja", "-C", tmp_path, "-t", "inputs", "neon8_runner"]
    said = ran(*command, check=True).stdout
    assert "neon8_objects.dir" in said
    assert "tests/" not in said
