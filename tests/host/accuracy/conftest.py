# SPDX-License-Identifier: Apache-2.0
"""What the report of accuracy silences in its process stays audible in this one."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _levels_as_they_were() -> Iterator[None]:
    loggers = [logging.getLogger(), logging.getLogger("neon8")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
