# SPDX-License-Identifier: Apache-2.0
"""Bias corrections in the compiler: added where weights are rounded, and checked."""

from dataclasses import replace

import numpy as np
import pytest

from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.operators.convolution import Conv2dF32Op
from neon8.rewrite.bias import corrected
from small_graphs import conv, graph_of, table_of


def with_correction(graph, *values, layer="layer_y"):
    table = table_of(graph)
    entry = replace(table.layers[layer], bias_correction=values)
    return replace(table, layers=table.layers | {layer: entry})


def test_it_is_added_to_the_bias():
    graph = graph_of(conv("y"))
    table = with_correction(graph, 0.5, -1.0, 0.0, 2.0**-10)
    (layer,) = corrected(graph, table).nodes
    assert layer.bias.dtype == np.float32
    assert layer.bias.tolist() == [1.5, 1.0, 3.0, 4 + 2.0**-10]
    assert corrected(graph, table_of(graph)) is graph
    bias = [lower(graph, t).ops[-1].bias_f32 for t in (table, table_of(graph))]
    for value in bias:
        assert value is not None
    assert (bias[0] - bias[1]).tolist() == [0.5, -1.0, 0.0, 2.0**-10]


def test_a_layer_in_float32_has_no_error_to_correct():
    graph = graph_of(conv("y"))
    table = with_correction(graph, 0.5, -1.0, 0.0, 0.0)
    program = lower(graph, table, keep_float=frozenset(["layer_y"]))
    plain = lower(graph, table_of(graph), keep_float=frozenset(["layer_y"]))
    found, want = (p.ops[-1] for p in (program, plain))
    assert isinstance(found, Conv2dF32Op)
    assert found.inputs == want.inputs
    assert found.bias_f32.tolist() == want.bias_f32.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_what_does_not_fit_is_refused():
    graph = graph_of(conv("y"))
    with pytest.raises(CompileError, match=r"has 2 bias corrections.*expected 4"):
        corrected(graph, with_correction(graph, 0.5, 1.0))
    layer = conv("y", exact_bias=np.zeros(4))
    graph = graph_of(layer)
    with pytest.raises(CompileError, match="bias as integers"):
        corrected(graph, with_correction(graph, 1.0, 1.0, 1.0, 1.0))
    graph = graph_of(conv("y"))
    with pytest.raises(CompileError, match="not finite"):
        lower(graph, with_correction(graph, 0.0, 0.0, 0.0, 3.5e38))
