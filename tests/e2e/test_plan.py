# SPDX-License-Identifier: Apache-2.0
"""The plan of the memory: small, and nobody writes what somebody else still needs."""

import functools
import hashlib

import numpy as np
import pytest

from agreement import agreed
from levels import levels
from neon8.compile import oracle, writer
from neon8.operators.arithmetic import (
    AddOp,
    DivideOp,
    MaximumOp,
    MinimumOp,
    SumOp,
)
from neon8.operators.conversion import RequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.factors import MultiplyOp
from neon8.operators.floats import BinaryOp, UnaryOp
from neon8.operators.indexed import PutOp
from neon8.operators.integer import IntegerOp
from neon8.operators.interpolation import InterpolateOp
from neon8.operators.layer_norm import NormalizationOp
from neon8.operators.movement import ConcatOp, PermuteOp, ReshapeOp
from neon8.operators.normalization import LrnOp
from neon8.operators.pointwise import TableOp
from neon8.operators.selection import GatherOp
from neon8.operators.softmax import SoftmaxQOp
from neon8.operators.where import WhereOp
from neon8.runtime import Model
from neon8.runtime.model import measure
from random_program import differing_bytes, random_inputs, random_program
from topologies import AWKWARD, TOPOLOGIES, Drawing, chain, in_place, moves, wide

MOST = 1.05
"""The arena may be this much larger than the bound."""

FILL = -2
"""The identity of a constant."""

OVER = {
    AddOp: (0, 1),
    BinaryOp: (0, 1),
    Conv2dOp: (1,),
    DivideOp: (0, 1),
    IntegerOp: (0, 1),
    InterpolateOp: (0,),
    LrnOp: (0,),
    MaximumOp: (0, 1),
    MinimumOp: (0, 1),
    MultiplyOp: (0, 1),
    NormalizationOp: (0,),
    PutOp: (0,),
    RequantizeOp: (0,),
    SoftmaxQOp: (0,),
    SumOp: (0, 1),
    TableOp: (0,),
    UnaryOp: (0,),
    WhereOp: (1,),
}
"""Inputs over which a step may write its output, value by value."""


class Simulation:
    """A run on identities of values instead of values.

    Each step gives its output fresh identities, but those that only move values hand
    on what they were given. A byte of the arena holds the identity of what was
    written there last; a step must find in its inputs' bytes what was written to
    these inputs.
    """

    def __init__(self, program, model) -> None:
        """Nothing has run yet."""
        self.program = program
        # What is constant, or the caller's, is not in the arena.
        self.steps = {
            s.output: s
            for s in model.steps
            if s.operation != "constant" and s.sharing != "caller"
        }
        self.arena = np.full(model.memory.arena, -1, np.int64)
        self.fresh = 0
        self.ids = {}
        self.gone = set()  # pieces that are in their concats and nowhere else

    def new(self, tensor):
        count = int(np.prod(tensor.shape))
        self.fresh += count
        return np.arange(self.fresh - count, self.fresh).reshape(tensor.shape)

    def bytes_of(self, name):
        """(N, C, H, W, bytes of a value): where each is in the arena."""
        tensor, step = self.program.tensors[name], self.steps[name]
        size = np.dtype(tensor.dtype).itemsize
        batch, channels, height, width = tensor.shape
        pixel = np.arange(batch * height * width).reshape(batch, 1, height, width)
        channel = np.arange(channels).reshape(1, channels, 1, 1)
        first = step.offset + pixel * step.pitch + channel * size
        return first[..., None] + np.arange(size)

    def spread(self, name, number) -> None:
        """Move a piece into its concat before op `number`, if there is one to move."""
        if not name:
            return
        concat = next(
            op
            for op in self.program.ops[number:]
            if isinstance(op, ConcatOp) and name in op.inputs
        )
        if name in self.steps:
            assert self.steps[name].sharing == "tail"
            assert self.steps[name].shared == concat.output
        tensors = self.program.tensors
        pieces = concat.inputs[: concat.inputs.index(name)]
        start = sum(tensors[piece].shape[1] for piece in pieces)
        channels = slice(start, start + tensors[name].shape[1])
        ids = self.ids[name][..., None]
        if name in self.steps:
            assert (self.arena[self.bytes_of(name)] == ids).all(), name
        self.arena[self.bytes_of(concat.output)[:, channels]] = ids
        self.gone.add(name)

    def moved(self, op, shape):
        """The output's identities if the step only moves values, else None."""
        pieces = [self.ids[name] for name in op.inputs]
        if isinstance(op, ConcatOp):
            return np.concatenate(pieces, op.axis)
        if isinstance(op, ReshapeOp):
            return pieces[0].reshape(shape)
        if isinstance(op, PermuteOp):
            sizes, order = op.indices
            return pieces[0].reshape(sizes).transpose(order).reshape(shape)
        if isinstance(op, GatherOp):
            lists = np.split(op.indices, np.cumsum(shape)[:-1])
            inside = functools.reduce(np.minimum, np.ix_(*lists)) >= 0
            return np.where(inside, pieces[0][np.ix_(*lists)], FILL)
        return None

    def write(self, name) -> None:
        self.arena[self.bytes_of(name)] = self.ids[name][..., None]

    def run(self) -> None:
        """All steps; an AssertionError names the one that finds something else."""
        tensors = self.program.tensors
        for number, op in enumerate(self.program.ops):
            out = tensors[op.output]
            if op.output not in self.steps:
                self.ids[op.output] = self.new(out)
                continue
            self.spread(self.steps[op.output].spread, number)
            held = [name for name in op.inputs if name in self.steps]
            held = [name for name in held if name not in self.gone]
            for name in held:
                found = self.arena[self.bytes_of(name)]
                assert (found == self.ids[name][..., None]).all(), (op.name, name)
            moved = self.moved(op, out.shape)
            self.ids[op.output] = self.new(out) if moved is None else moved
            if moved is None:
                self.check_operands(op, held)
            if isinstance(op, ConcatOp):  # the pieces that went there before are there
                found = self.arena[self.bytes_of(op.output)]
                gone = [np.full(self.ids[n].shape, n in self.gone) for n in op.inputs]
                early = np.concatenate(gone, op.axis)
                assert (found == moved[..., None])[early].all(), op.name
            self.write(op.output)
            if moved is not None:  # what it did not move lies right
                for name in held:
                    found = self.arena[self.bytes_of(name)]
                    assert (found == self.ids[name][..., None]).all(), (op.name, name)
        for name in filter(self.steps.__contains__, self.program.outputs):
            found = self.arena[self.bytes_of(name)]
            assert (found == self.ids[name][..., None]).all(), name

    def check_operands(self, op, held) -> None:
        """A step may write over an operand only value by value, and where it can."""
        written = self.bytes_of(op.output)
        for index, name in enumerate(op.inputs):
            if (
                name not in held
                or not np.intersect1d(self.bytes_of(name), written).size
            ):
                continue
            assert index in OVER.get(type(op), ()), (op.name, name)
            assert np.array_equal(self.bytes_of(name), written), (op.name, name)


def simulate(program, model) -> None:
    """Inputs of the network are left out: the binding does not tell their places."""
    simulation = Simulation(program, model)
    for name in program.inputs:
        simulation.ids[name] = simulation.new(program.tensors[name])
    simulation.run()


PLANS = "8bd1f3f29e4437cabd3580ccfac9e9be999cc9a1e944ed57bc7192cccdbb7e2c"
"""Digest of the plans of LIMITS and moves: of the planner, whatever the kernels are."""

LIMITS = {**{name: (draw, MOST) for name, draw in TOPOLOGIES.items()}, **AWKWARD}


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_the_arena_is_close_to_its_bound(name):
    draw, most = LIMITS[name]
    program = draw()
    with Model.from_bytes(writer.dumps(program)) as model:
        memory = model.memory
        assert memory.arena_least <= memory.arena <= most * memory.arena_least
        simulate(program, model)
        with model.session(2) as session:
            for seed in range(2):  # the second run finds what the first has left
                inputs = random_inputs(program, seed)
                expected = oracle.run(program, inputs)
                assert differing_bytes(session.run(inputs), expected) == {}


@pytest.mark.parametrize(
    ("draw", "count", "most"), [(random_program, 60, MOST), (moves, 30, 1.1)]
)
def test_random_programs_share_memory_and_lose_nothing(draw, count, most):
    kinds, ratios = set(), []
    for seed in range(count):
        program = draw(seed)
        inputs = random_inputs(program, seed)
        with Model.from_bytes(writer.dumps(program)) as model:
            simulate(program, model)
            kinds.update(step.sharing for step in model.steps)
            ratios.append(model.memory.arena / model.memory.arena_least)
            with model.session(2) as session:
                result = session.run(inputs)
        assert differing_bytes(result, oracle.run(program, inputs)) == {}
    assert kinds >= {"own", "place", "view", "slice"}
    assert min(ratios) >= 1
    assert np.median(ratios) <= most


def plan_of(program, isa):
    """Arena, bound, and where every tensor lies."""
    with Model.from_bytes(writer.dumps(program), isa=isa) as model:
        places = [
            (s.output, s.sharing, s.shared, s.offset, s.pitch, s.spread)
            for s in model.steps
        ]
        return model.memory.arena, model.memory.arena_least, places


def plan_at_all_levels(program):
    plan, *others = (plan_of(program, isa) for isa in levels())
    assert all(other == plan for other in others)
    return plan


def test_the_plan_depends_on_the_file_alone():
    """Not on the kernels of a level, nor on the processor."""
    programs = [*(draw() for draw, _ in LIMITS.values()), *map(moves, range(30))]
    plans = repr([plan_at_all_levels(program) for program in programs])
    assert hashlib.sha256(plans.encode()).hexdigest() == PLANS
    for seed in range(30):
        plan_at_all_levels(random_program(seed))


def test_a_piece_waits_at_the_end_of_its_concat():
    """The skip of a U-Net takes no room of the concat until that is needed."""
    program = TOPOLOGIES["unet"]()
    with Model.from_bytes(writer.dumps(program)) as model:
        waiting = [step.output for step in model.steps if step.sharing == "tail"]
        assert waiting
        spread = [step.spread for step in model.steps if step.spread]
        assert sorted(spread) == sorted(waiting)


def test_images_are_made_where_they_are_joined():
    d = Drawing(0, 5, 3)
    program = d.program(d.join(*(d.activate(d.image) for _ in range(3)), axis=0))
    with Model.from_bytes(writer.dumps(program)) as model:
        simulate(program, model)
        assert [step.sharing for step in model.steps] == ["slice"] * 3 + ["own"]
    agreed(program, random_inputs(program, 1), threads=(1, 2))


def test_images_take_no_room_before_they_are_made():
    """What the first one is made of lies where the others will be."""
    d = Drawing(0, 16, 4)
    images = [d.conv(d.conv(d.image, 48), 16), *(d.conv(d.image, 16) for _ in "1234")]
    program = d.program(d.join(*images, axis=0))
    with Model.from_bytes(writer.dumps(program)) as model:
        simulate(program, model)
        assert [step.sharing for step in model.steps].count("slice") == 5
        assert model.memory.arena - model.memory.arena_least < 512
    agreed(program, random_inputs(program, 1))


@pytest.mark.parametrize("draw", [in_place, wide])
def test_any_number_of_tensors_share_a_block(draw):
    content = writer.dumps(draw(700))
    memory = measure(content)
    assert memory.arena <= MOST * memory.arena_least


def test_chains_reach_the_bound():
    """Two ends of the arena in turn, whatever the sizes."""
    for seed in range(100, 115):
        with Model.from_bytes(writer.dumps(chain(seed))) as model:
            assert model.memory.arena == model.memory.arena_least


def test_the_simulation_finds_a_step_that_overwrites_what_is_needed():
    program = TOPOLOGIES["resnet"]()
    with Model.from_bytes(writer.dumps(program)) as model:
        simulation = Simulation(program, model)
        simulation.ids["t0"] = simulation.new(program.tensors["t0"])
        first, second = program.ops[0].output, program.ops[1].output
        simulation.steps[second] = simulation.steps[first]
        with pytest.raises((AssertionError, KeyError)):
            simulation.run()
