# SPDX-License-Identifier: Apache-2.0
"""The node tests of the onnx package; docs/operators.md says how they went."""

from pathlib import Path

import pytest

from bench.operators.report import COMMAND, render
from node_tests import collect, run

PAGE = Path(__file__).parents[3] / "docs/operators.md"


@pytest.fixture(scope="module")
def results():
    return [run(case) for case in collect()]


def test_none_fails(results):
    failed = [f"{r.name}: {r.detail}" for r in results if r.outcome == "failed"]
    assert not failed


def test_the_page_is_up_to_date(results):
    assert render(results) == PAGE.read_text(), f"run {COMMAND}"
