# SPDX-License-Identifier: Apache-2.0
"""Random networks with nodes that neon8 cannot run: their cut is theirs, and the best.

The part inside runs in float32 here, so that nothing but the cut is tried.
"""

import itertools

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st

import graph_executor
from cut_nets import foreign, run_onnx
from neon8.graph.cut import AFTER, BEFORE, INSIDE, cut
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from onnx_nets import TOLERANCE, node, save
from random_nets import networks

MOST = 4
"""Foreign nodes in a network."""


@st.composite
def strange(draw):
    """A random network, of which foreign nodes double some tensors."""
    model = draw(networks())
    inferred = onnx.shape_inference.infer_shapes(model)
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*inferred.graph.value_info, *inferred.graph.input)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    made = [name for each in model.graph.node for name in each.output]
    known = [name for name in ("x", *made) if name in shapes and all(shapes[name])]
    chosen = draw(st.sets(st.sampled_from(known), min_size=1, max_size=MOST))
    nodes = [node("Sin", "x", "x_odd")] if "x" in chosen else []
    for each in model.graph.node:
        taken = [f"{n}_odd" if n in chosen else n for n in each.input]
        del each.input[:]
        each.input.extend(taken)
        nodes.append(each)
        nodes += [node("Sin", n, f"{n}_odd") for n in each.output if n in chosen]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return foreign(model, {f"{name}_odd": shapes[name] for name in chosen})


def related(graph):
    """Output of a node -> those of the nodes before it."""
    before = {}
    made = {name: n.output for n in graph.nodes for name in n.outputs}
    for each in graph.nodes:
        sources = {made[name] for name in each.inputs if name in made}
        before[each.output] = sources.union(*(before[s] for s in sources))
    return before


def best(graph):
    """The largest gain of all ways to say which nodes that do not run are before."""
    before = related(graph)
    opaque = [n.output for n in graph.nodes if not n.runs]
    found = 0
    for size in range(len(opaque) + 1):
        for first in map(set, itertools.combinations(opaque, size)):
            last = set(opaque) - first
            if any(before[name] & last for name in first):
                continue
            found = max(
                found,
                sum(
                    gain(graph, n)
                    for n in graph.nodes
                    if n.runs
                    and not before[n.output] & last
                    and not any(n.output in before[name] for name in first)
                ),
            )
    return found


def gain(graph, each):
    return each.macs(graph) * (len(graph.nodes) + 1) + 1


@settings(max_examples=150)
@given(model=strange())
def test_the_parts_are_the_network(tmp_path_factory, model):
    path = save(tmp_path_factory.mktemp("random"), model)
    file = open_onnx(path)
    graph = load(file)
    found = cut(file, graph)
    if found is None:
        return
    before = related(graph)
    for each in graph.nodes:
        where = found.where[each.output]
        assert where != INSIDE or each.runs
        assert all(found.where[name] <= where for name in before[each.output])
    inside = sum(gain(graph, n) for n in found.inside.nodes)
    if not any(tensor.origin for tensor in graph.rearranged.values()):
        assert inside == best(graph)
    else:  # what the file does not have is not handed on
        assert inside <= best(graph)

    shape = graph.tensors["x"].dims
    values = {"x": np.random.default_rng(1).normal(0, 2, shape).astype(np.float32)}
    want = run_onnx(path, values)
    for number, part in ((BEFORE, found.before), (INSIDE, None), (AFTER, found.after)):
        if number == INSIDE:
            given_ = {name: values[name] for name in found.inside.inputs}
            made = graph_executor.run(found.inside, given_)
            kinds = {n: found.inside.tensors[n].dtype for n in found.inside.outputs}
            values |= {n: np.asarray(made[n]).astype(kinds[n]) for n in kinds}
        elif part is not None:
            onnx.checker.check_model(part.model)
            values |= run_onnx(part.model, values)
    for name, array in want.items():
        largest = max(np.abs(array).max(initial=0), 1e-3)
        assert values[name].shape == array.shape
        error = np.abs(values[name] - array).max(initial=0)
        assert error <= TOLERANCE * largest, (name, error)
