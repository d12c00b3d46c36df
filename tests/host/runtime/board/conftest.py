# SPDX-License-Identifier: Apache-2.0
"""Boards that are none, with the runners that the cross compilers made."""

import pytest

from boards import ROOT, adb_board, ssh_board, sshd
from neon8.runtime.board import board as board_module

__all__ = ["adb_board", "ssh_board", "sshd"]


@pytest.fixture(autouse=True)
def runners(monkeypatch):
    """Those of the cross builds for those of make prebuilt."""

    def built(target, name):
        place = {"linux-x86_64": "native"}.get(target, target.removeprefix("linux-"))
        return ROOT / "build" / place / name

    monkeypatch.setattr(board_module, "prebuilt_file", built)
    monkeypatch.setattr(board_module, "PAUSES", (0.0, 0.0, 0.0))
