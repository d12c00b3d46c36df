# SPDX-License-Identifier: Apache-2.0
"""The tutorial "From PC to board", command by command, on a board that sshd makes."""

from pathlib import Path

from boards import ssh_board, sshd
from tutorials import checkout, followed

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


def test_from_pc_to_board(tmp_path, ssh_board):
    folder = checkout(tmp_path / "checkout", "cross", "tests")
    (folder / "build/tutorial").mkdir()
    # The step before the tests made it; here it must only be a target.
    make = f'make() {{ command make -C {ROOT} -n "$@" >/dev/null; }}\n'
    # In the board's folder, and its program in the emulator.
    ssh_board.hook(
        f"cd {ssh_board.place}\n"
        "command=$(printf '%s' \"$command\" |\n"
        "    sed 's#[.]/digits#qemu-aarch64 ./digits#')"
    )
    followed(
        PAGE,
        folder,
        start="## 1",
        before=make + CORE + BEFORE,
        changed=lambda script: script.replace(
            "neon8 profile", "of_a_board; neon8 profile"
        ),
    )
    assert (folder / "build/tutorial/digits-build/libdigits.a").is_file()
