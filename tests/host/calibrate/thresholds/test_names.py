# SPDX-License-Identifier: Apache-2.0
"""The text that names a method and its settings."""

from dataclasses import replace

import pytest

from neon8.cli.options import CHOOSING
from neon8.errors import CalibrationError
from neon8.quant import table_json
from neon8.settings import methods
from neon8.settings.methods import ROWS, Method
from refusals import refused
from small_graphs import conv, graph_of, scale, table_of


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("mse", Method("mse")),
        ("percentile", Method("percentile", (99.99, "nonzero"))),
        ("percentile:99.9", Method("percentile", (99.9, "nonzero"))),
        ("percentile:100:all", Method("percentile", (100.0, "all"))),
        ("legacy", Method("legacy", (99.99, 1.0))),
        ("legacy:99:0.5", Method("legacy", (99.0, 0.5))),
        ("eq:cosine", Method("eq", ("cosine",))),
    ],
)
def test_methods_as_text(text, method):
    assert methods.parse(text) == method
    assert methods.parse(str(method)) == method


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "unknown"),
        ("entropy", "'entropy' is unknown: expected one of mse, kl"),
        ("mse:1", "mse has 0 settings"),
        ("percentile:0", "'0' is not a number above 0 and up to 100"),
        ("percentile:nan", "'nan' is not a number"),
        ("percentile:101", "'101' is not"),
        ("percentile:99:some", "'some' is not one of nonzero, all"),
        ("percentile:99:all:1", "has 2 settings"),
        ("legacy:99:1.5", "'1.5' is not a number above 0 and up to 1"),
        ("legacy:inf", "'inf' is not"),
        ("eq:psnr", "'psnr' is not one of error, cosine"),
    ],
)
def test_methods_that_there_are_not(text, part):
    with refused(CalibrationError, "", part):
        methods.parse(text)


def test_a_method_that_there_was_says_what_to_take():
    with pytest.raises(CalibrationError, match=r"'auto' was removed: .* take mse"):
        methods.parse("auto")
    assert not set(methods.REMOVED) & set(ROWS)
    graph = graph_of(conv("y"))
    old = replace(table_of(graph, x=replace(scale(), method="auto")), method="auto")
    assert table_json.loads(table_json.dumps(old)) == old


def test_help_lists_every_method():
    for name in ROWS:
        assert f"\n  {name} " in CHOOSING
    assert max(map(len, CHOOSING.splitlines())) <= 88
