# SPDX-License-Identifier: Apache-2.0
"""Tutorials, followed command by command."""

import os
import re
import sys
from pathlib import Path

import numpy as np

from digits import split
from processes import ran

ROOT = Path(__file__).resolve().parents[3]


def checkout(folder, *linked):
    """A folder with these parts of the checkout, after `make demo`."""
    demo = folder / "build/demo"
    demo.mkdir(parents=True)
    for name in linked:
        (folder / name).symlink_to(ROOT / name)
    learned, unseen = split()
    np.savez(demo / "calib.npz", x=learned.x, y=learned.y)
    np.savez(demo / "test.npz", x=unseen.x, y=unseen.y)
    return folder


def followed(page, folder, *, start, before="", changed=str):
    """What the commands of a page print, which is what it quotes from `start` on.

    before: commands that come first.  changed: gives those of the page as they run.
    """
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = ran(
        *("bash", "-c", f"set -eu\n{before}{changed(''.join(blocks))}"),
        cwd=folder,
        env={**os.environ, "PATH": paths, "PYTHONPATH": str(ROOT / "host")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    quoted = re.findall(r"\n\n((?:    .*\n)+)", page[page.index(start) :])
    assert quoted
    for line in "".join(quoted).splitlines():
        assert line.strip() in done.stdout
    return done.stdout
