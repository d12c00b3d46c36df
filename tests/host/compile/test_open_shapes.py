# SPDX-License-Identifier: Apache-2.0
"""Networks with open dimensions: a template is what is compiled at each shape."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import neon8
import open_nets
from neon8.compile import lower, writer
from neon8.compile.open_shapes import (
    Openings,
    agreement,
    compile_open,
    has_new_ones,
    openings,
)
from neon8.compile.template import at, difference, structure
from neon8.compile.whole_constants import with_wholes
from neon8.errors import CompileError, Neon8Error, SettingsError
from neon8.graph.importer import load
from neon8.graph.onnx_file import symbols_of
from neon8.ir.program import Program
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import Model, library
from neon8.settings.shapes import Open, shape
from onnx_nets import chain, save
from random_nets import networks
from random_program import differing_bytes


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A network with open dimensions, and its template."""

    path: object
    table: ScaleTable
    found: Openings
    template: Program
    keep: frozenset[str]

    def fresh(self, values) -> Program:
        """The network compiled for one shape."""
        return compiled(self.path, self.table, self.found.at(values), self.keep)


def compiled(path, table, shapes, keep):
    return lower.lower(load(path, shapes=shapes), table, keep_float=keep)


def opened(folder, model, bounds, usual, keep=()) -> Opened:
    """bounds: as on the command line.  usual: the shape of samples."""
    path = save(folder, model)
    rng = np.random.default_rng(5)
    name, dims = shape(bounds)
    samples = [{name: rng.normal(0, 1, usual).astype(np.float32)} for _ in range(2)]
    table = neon8.calibrate_model(path, samples, shapes={name: usual}, method="minmax")
    found = openings({name: dims}, symbols_of(path, {name: dims}))
    keep = frozenset(keep)
    template = compile_open(found, lambda shapes: compiled(path, table, shapes, keep))
    return Opened(path=path, table=table, found=found, template=template, keep=keep)


NETS = {
    "unet": ("x=1..4x3x16..128:4x16..128:4", (1, 3, 32, 32)),
    "recogniser": ("x=1..4,3,16,8..200", (1, 3, 16, 32)),
    "mobile": ("x=1..8,4,7,7", (1, 4, 7, 7)),
    "detector": ("x=1,3,16..256:8,16..256:8", (1, 3, 64, 64)),
    "moves": ("x=1,4,5..60,6..60", (1, 4, 12, 14)),
    "speech": ("x=1..3,2..64,6", (1, 20, 6), ["Add_u"]),
    "padded": ("x=1,3,9..60,9..60", (1, 3, 20, 20)),
    "keyword": ("x=1..4,6,24..300", (2, 6, 50)),
    "attention": ("x=2..8,10,8", (2, 10, 8)),
    "resizes": ("x=1,3,16..96:8,16..96:8", (1, 3, 32, 32)),
    "windows": ("x=1,3,13..90,11..90", (1, 3, 24, 24)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each network, opened when it is first asked for."""
    known = {}

    def get(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            known[name] = opened(folder, getattr(open_nets, name)(), *NETS[name])
        return known[name]

    return get


def agree(net, values):
    """The template at these values is the network compiled for them.

    Where a dimension has shrunk to 1 it may have more steps, and gives the same bytes.
    """
    there = at(net.template, values)
    shrunk = has_new_ones(net.template, there)
    try:
        fresh = with_wholes(net.fresh(values), wholes_in(net.template))
    except CompileError:
        assert shrunk  # so that it wants scales that no other shape has
        return
    alike = structure(there) == structure(fresh)
    if not alike or (difference(there, fresh) and shrunk):
        assert agreement(there, fresh)[1] == np.inf
    else:
        assert difference(there, fresh) == ""
    rng = np.random.default_rng(3)
    inputs = {
        name: rng.normal(0, 1, fresh.tensors[name].dims).astype(np.float32)
        for name in fresh.inputs
    }
    with (
        Model.from_bytes(writer.dumps(net.template)) as model,
        Model.from_bytes(writer.dumps(fresh)) as alone,
    ):
        wanted = alone.session().run(inputs)
        assert differing_bytes(model.session().run(inputs), wanted) == {}


def wholes_in(template):
    """The constants that a template takes parts of."""
    return {
        name.removesuffix(":whole"): (op, template.tensors[name])
        for op in template.ops
        if (name := op.output).endswith(":whole")
    }


def shapes_of(net):
    """Values of the symbols within the bounds."""
    return st.tuples(*(st.sampled_from(s.values) for s in net.found.symbols))


@pytest.mark.parametrize("name", NETS)
def test_is_what_is_compiled_for_the_shape(made, name):
    net = made(name)

    @settings(max_examples=8, deadline=None)
    @given(shapes_of(net))
    def check(values):
        agree(net, values)

    check()


@settings(max_examples=25)
@given(model=networks(), data=st.data())
def test_random_networks(tmp_path_factory, model, data):
    """Those whose constants do not fix their shapes."""
    usual = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    rank = len(usual)
    names = [None, None, *"hw"[: rank - 2]]
    for dim, name in zip(
        model.graph.input[0].type.tensor_type.shape.dim, names, strict=True
    ):
        if name:
            dim.dim_param = name
    for value in (*model.graph.output, *model.graph.value_info):
        value.type.tensor_type.ClearField("shape")
    bounds = ",".join([*map(str, usual[:2]), *["5..40"] * (rank - 2)])
    try:
        net = opened(
            tmp_path_factory.mktemp("open"), model, f"x={bounds}", tuple(usual)
        )
    except Neon8Error:
        reject()
    agree(net, data.draw(shapes_of(net)))


def test_a_mean_of_one_value_is_rounded_as_others_are(made):
    """keyword's frames shrink to one state, whose mean has a scale of its own."""
    agree(made("keyword"), (1, 24))


def test_a_size_of_one_may_want_scales_of_its_own(made):
    """What has no axis there is computed otherwise, from tensors that no other has."""
    net = made("mobile")

    def without(size):
        def compile_at(shapes):
            if shapes["x"][0] == size:
                raise CompileError("tensor 't' has no scale in the table")
            return compiled(net.path, net.table, shapes, net.keep)

        return compile_open(net.found, compile_at)

    assert without(1).open == net.template.open
    with pytest.raises(CompileError, match="or calibrate with --shape x=5x4x7x7"):
        without(5)


def test_progress_counts_shapes(made):
    net, seen = made("mobile"), []
    compile_open(
        net.found,
        lambda shapes: compiled(net.path, net.table, shapes, net.keep),
        lambda *told: seen.append(told),
    )
    total = seen[-1][2]
    assert seen == [("shapes", done, total) for done in range(total + 1)]
    assert total >= 8


# What the file has.


def symbols(blob):
    """Each open dimension in a file: its bounds, step and usual size."""
    ffi = library.declarations(library.find().parent / library.RUNTIME.header)
    size = ffi.sizeof("struct n8_file_header")
    shapes = ffi.from_buffer("struct n8_file_shapes *", blob[size:])
    return np.frombuffer(blob, "<i4", 4 * shapes.symbol_count, shapes.symbols).tolist()


def test_a_whole_constant_is_there_once(made):
    """Positions and a mask, which are the same for each of a batch."""
    net = made("speech")
    found = wholes_in(net.template)
    sizes = {tensor.shape for _, tensor in found.values()}
    assert sizes == {(1, 8, 64, 1), (1, 64, 64, 1)}


def test_the_largest_shape_has_to_fit(made):
    net = made("mobile")
    (symbol,) = net.template.open.symbols
    huge = replace(net.template.open, symbols=(replace(symbol, hi=1 << 21),))
    with pytest.raises(CompileError, match=r"tensor '.*': shape .* is beyond"):
        writer.dumps(replace(net.template, open=huge))


def test_compile_model_writes_it(tmp_path):
    path = save(tmp_path, open_nets.mobile())
    sample = {
        "x": np.random.default_rng(1).normal(size=(1, 4, 7, 7)).astype(np.float32)
    }
    table = neon8.calibrate_model(path, [sample], method="minmax")
    for size in ("1..8", Open(1, 8)):
        blob = neon8.compile_model(path, table, shapes={"x": (size, 4, 7, 7)})
        assert symbols(blob) == [1, 8, 1, 1]
    fixed = neon8.compile_model(path, table, shapes={"x": (3, 4, 7, 7)})
    assert fixed[8] == 2
    default = neon8.compile_model(path, table, shapes={"x": ("?", 4, 7, 7)})
    assert symbols(default) == [1, 1024, 1, 1]


def test_dimensions_of_one_name_are_one():
    x, y = shape("x=2..9,3"), shape("y=2..9,?")
    found = openings(dict([x, y]), {"x": ("n", ""), "y": ("n", "")})
    assert [symbol.name for symbol in found.symbols] == ["n", "y[1]"]
    assert found.shapes == {"x": (-1, 3), "y": (-1, -2)}
    assert found.at((4, 7)) == {"x": (4, 3), "y": (4, 7)}
    assert found.said((4, 7)) == "x=4x3 y=4x7"


# Refusals, one line each.


def to_one_size(b):
    b.weights |= {"none": open_nets.NONE, "to": np.array([1, 2, 6, 6])}
    b("Resize", "x none none to", "y", mode="linear", antialias=1)


def by_size(b):
    size = b.size("x", 3)
    b("Cast", size, "w", to=1)
    b("Mul", "x w", "y")


REFUSALS = {
    to_one_size: "layer 'Resize_y': groups of RESIZE depends on the shape in a way "
    "that a file does not hold",
    by_size: "layer 'Mul_y': ",
}


@pytest.mark.parametrize("build", REFUSALS, ids=lambda build: build.__name__)
def test_refuses_what_a_file_cannot_say(tmp_path, build):
    b = open_nets.Block()
    build(b)
    model = b.model((1, 2, "h", "w"), opset=18)
    with pytest.raises(CompileError) as caught:
        opened(tmp_path, model, "x=1,2,8..40,8..40", (1, 2, 16, 16))
    assert REFUSALS[build] in str(caught.value)
    assert "fix that dimension by --shape" in str(caught.value)


def test_refuses_shapes_that_do_not_fit_the_network(tmp_path):
    b = open_nets.Block()
    b("MaxPool", "x", "half", kernel_shape=[2, 2], strides=[2, 2])
    b.weights |= {"none": open_nets.NONE, "by": np.array([1, 1, 2, 2], np.float32)}
    b("Resize", "half none by", "whole", mode="nearest")
    b("Add", "whole x", "y")
    model = b.model((1, 2, "h", "w"))
    with pytest.raises(
        CompileError, match=r"with x=.*, which is within .* with a step"
    ):
        opened(tmp_path, model, "x=1,2,8..40,8..40", (1, 2, 16, 16))
    opened(tmp_path, model, "x=1,2,8..40:2,8..40:2", (1, 2, 16, 16))


@pytest.mark.parametrize(
    ("operator", "constants", "why"),
    [
        ("Reshape", [np.array([1, 2, 256])], "cannot be shaped [1, 2, 256]"),
        (
            "ScatterND",
            [np.zeros((1, 2), np.int64), np.zeros((1, 16, 16), np.float32)],
            "updates of shape [1, 16, 16] are not as many as its indices name",
        ),
    ],
)
def test_refuses_constants_that_fit_one_shape(tmp_path, operator, constants, why):
    model = chain([(operator, constants, {})], (1, 2, "h", "w"), opset=16)
    with pytest.raises(CompileError) as caught:
        opened(tmp_path, model, "x=1,2,8..40,8..40", (1, 2, 16, 16))
    assert why in str(caught.value)


def changing(net, more, size, name="Conv_a"):
    """The compiler of a network whose first layer is another one at a size."""

    def compile_at(shapes):
        program = compiled(net.path, net.table, shapes, net.keep)
        if shapes["x"][0] != size:
            return program
        ops = list(program.ops)
        first = next(i for i, op in enumerate(ops) if hasattr(op, "bias"))
        ops[first] = replace(ops[first], bias=ops[first].bias + more, name=name)
        return replace(program, ops=tuple(ops))

    return compile_at


def test_refuses_weights_that_depend_on_the_shape(made):
    net = made("mobile")
    with pytest.raises(CompileError, match="'Conv_a': bias of CONV2D depends on the"):
        compile_open(net.found, changing(net, 1, 5))


def test_refuses_a_network_that_is_another_one_beyond_the_samples(made):
    net = made("mobile")
    (symbol,) = net.found.symbols
    found = replace(net.found, symbols=(replace(symbol, hi=500),))
    with pytest.raises(CompileError, match=r"with x=500x4x7x7 .*: output 'y' has"):
        compile_open(found, changing(net, 400, 500, "other"))


def test_agreement(made):
    net = made("mobile")
    one, other = net.fresh((1,)), changing(net, 400, 1)(net.found.at((1,)))
    assert agreement(one, one) == ("y", np.inf)
    assert 0 < agreement(one, other)[1] < 60


def test_refuses_bounds_that_contradict():
    wanted = dict([shape("x=2..9,3"), shape("y=2..8,3")])
    with pytest.raises(CompileError, match=r"'n' is 2\.\.9 and 2\.\.8 in --shape"):
        openings(wanted, {"x": ("n", ""), "y": ("n", "")})


def test_refuses_more_open_dimensions_than_a_file_has():
    wanted = {f"x{at}": (Open(1, 4),) for at in range(17)}
    with pytest.raises(CompileError, match="17 open dimensions are too many"):
        openings(wanted, {})


def test_only_an_open_onnx_file_has_open_dimensions(tmp_path):
    path = save(tmp_path, open_nets.mobile())
    shapes = {"x": ("1..8", 4, 7, 7)}
    sample = {"x": np.ones((1, 4, 7, 7), np.float32)}
    with pytest.raises(SettingsError, match="has bounds; give the one size"):
        neon8.load_graph(path, shapes=shapes)
    table = neon8.calibrate_model(path, [sample], method="minmax")
    with pytest.raises(CompileError, match="a Graph has fixed shapes"):
        neon8.compile_model(neon8.load_graph(path), table, shapes=shapes)
    with pytest.raises(CompileError, match="--cut wants fixed shapes"):
        neon8.compile_model(
            path, table, shapes=shapes, cut=True, output=tmp_path / "net.n8"
        )
