# SPDX-License-Identifier: Apache-2.0
"""The tutorial "From PC to board", command by command, on a board that sshd makes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards import ssh_board, sshd
from digits import split

__all__ = ["ssh_board", "sshd"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/board.md").read_text()

# Where the first tutorial ends.
BEFORE = """
neon8 calibrate tests/demo/digits.onnx --data build/demo/calib.npz -q --limit 200 \
    --preprocess tests/demo/digits.toml -o build/tutorial/digits.scales.json
neon8 compile tests/demo/digits.onnx --scales build/tutorial/digits.scales.json \
    -o build/tutorial/digits.n8
"""

# qemu shows programs the processor of this PC, and no clock.
CORE = r"""
of_a_board() {
    file=build/tutorial/digits.bench.json
    [ -e $file ] || return 0
    name=$(sed -n 's/.*"kind": "\(.*\)",/\1/p' $file | head -1)
    sed -i "s/\"$name\"/\"cortex-a72\"/; s/\"mhz\": 0.0/\"mhz\": 1500.0/" $file
}
"""


@pytest.fixture
def checkout(tmp_path):
    """A folder with what a checkout has after the first tutorial."""
    folder = tmp_path / "checkout"
    for place in ("build/demo", "build/tutorial"):
        (folder / place).mkdir(parents=True)
    for name in ("cross", "tests"):
        (folder / name).symlink_to(ROOT / name)
    learned, unseen = split()
    np.savez(folder / "build/demo/calib.npz", x=learned.x, y=learned.y)
    np.savez(folder / "build/demo/test.npz", x=unseen.x, y=unseen.y)
    return folder


def test_from_pc_to_board(checkout, ssh_board):
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    # The step before the tests made it; here it must only be a target.
    make = f'make() {{ command make -C {ROOT} -n "$@" >/dev/null; }}\n'
    # In the board's folder, and its program in the emulator.
    ssh_board.hook(
        f"cd {ssh_board.place}\n"
        "command=$(printf '%s' \"$command\" |\n"
        "    sed 's#[.]/digits#qemu-aarch64 ./digits#')"
    )
    script = "".join(blocks).replace("neon8 profile", "of_a_board; neon8 profile")
    done = subprocess.run(
        ["bash", "-c", "set -eu\n" + make + CORE + BEFORE + script],
        cwd=checkout,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "host"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # What the page quotes is what was printed.
    quoted = re.findall(r"\n\n((?:    .*\n)+)", PAGE[PAGE.index("## 1") :])
    assert quoted
    for lines in quoted:
        for line in lines.splitlines():
            assert line.strip() in done.stdout
    assert (checkout / "build/tutorial/digits-build/libdigits.a").is_file()
