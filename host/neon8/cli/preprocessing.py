# SPDX-License-Identifier: Apache-2.0
"""--preprocess, apart from the rest for those who have no images."""

import argparse

from neon8.data.preprocess import Preprocess


def preprocess_of(arguments: argparse.Namespace) -> Preprocess | None:
    """The settings of --preprocess."""
    path = arguments.preprocess
    return None if path is None else Preprocess.load(path)
