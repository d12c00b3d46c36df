# SPDX-License-Identifier: Apache-2.0
"""How long the network takes on boards that are not here."""

import shlex
from pathlib import Path

from neon8.profile import boards
from neon8.profile.profile import profile_model
from neon8.report.facts import Prediction
from neon8.settings.stages import Settings
from neon8.settings.words import shapes_again


def predicted(compiled: Path, name: str, settings: Settings) -> Prediction:
    """Estimate a run on one core of a board.  SettingsError: nobody has measured it."""
    board = boards.board_of(name)
    found = profile_model(compiled, board=name, shapes=settings.network.shapes)
    ms, span = found.ms, found.span
    if ms is None or span is None:
        raise AssertionError("a board without a clock")
    words = ["neon8", "profile", str(compiled), *shapes_again(settings)]
    return Prediction(
        board=name,
        title=board.title,
        core=found.core,
        ms=float(ms),
        low=float(span[0]),
        high=float(span[1]),
        command=shlex.join([*words, "--board", name]),
        layers=found.layers,
    )
