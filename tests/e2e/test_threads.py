# SPDX-License-Identifier: Apache-2.0
"""Threads: the result never depends on how many there are, nor on who shares them."""

import gc
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from agreement import agreed
from neon8 import ThreadPool
from neon8.compile import oracle, writer
from neon8.errors import ModelError, SetupError
from neon8.ir.program import Program
from neon8.runtime import Model
from random_net import Net
from random_program import differing_bytes, random_inputs, random_program
from random_steps import GROW


def wide_program(kind, seed) -> Program:
    """Steps of one kind, among them such as are worth the call of a thread."""
    net = Net(np.random.default_rng(seed))
    shape = (2, 130, 1, 1) if kind == "softmax" else (1, 24, 31, 33)
    source = net.tensor(shape)
    net.levels.append(source)
    for _ in range(3):
        GROW[kind](net)
    outputs = {op.output for op in net.ops} - net.read
    return Program(
        source_digest=f"{seed:064x}",
        tensors=net.tensors,
        ops=tuple(net.ops),
        inputs=(source.name,),
        outputs=tuple(sorted(outputs)),
    )


@pytest.mark.parametrize("kind", sorted(GROW))
def test_steps_that_are_shared_give_the_same_bytes(kind):
    program = wide_program(kind, 5)
    agreed(program, random_inputs(program, 6), threads=(2, 3, 5), isas=[None])


def test_one_pool_serves_sessions_of_several_models():
    programs = [wide_program("conv", 1), wide_program("add", 2), random_program(8)]
    models = [Model.from_bytes(writer.dumps(program)) for program in programs]
    inputs = [random_inputs(program, 3) for program in programs]
    expected = [oracle.run(*each) for each in zip(programs, inputs, strict=True)]
    with ThreadPool(3) as pool:
        sessions = [model.session(pool=pool) for model in models for _ in range(2)]

        def differing(number) -> dict[str, int]:
            which = number % len(sessions)
            result = sessions[which].run(inputs[which // 2])
            return differing_bytes(result, expected[which // 2])

        with ThreadPoolExecutor(len(sessions)) as callers:
            assert not any(callers.map(differing, range(10 * len(sessions))))
        assert pool.threads == 3
    for session, number in zip(sessions, itertools.count()):
        with pytest.raises(ModelError, match="the session has been closed"):
            session.run(inputs[number // 2])


def test_a_pool_outlives_its_sessions_and_their_model():
    program = random_program(8)
    inputs = random_inputs(program, 3)
    pool = ThreadPool(2)
    session = Model.from_bytes(writer.dumps(program)).session(pool=pool)
    gc.collect()
    assert differing_bytes(session.run(inputs), oracle.run(program, inputs)) == {}
    del pool
    gc.collect()
    assert differing_bytes(session.run(inputs), oracle.run(program, inputs)) == {}


def test_what_pools_and_sessions_refuse():
    model = Model.from_bytes(writer.dumps(random_program(8)))
    for count in (0, 65, -1):
        with pytest.raises(SetupError, match=f"^{count} threads; a session takes 1 to"):
            ThreadPool(count)
        with pytest.raises(SetupError, match=f"^{count} threads; a session takes 1 to"):
            model.session(count)
    pool = ThreadPool(2)
    with pytest.raises(SetupError, match="its own threads or a pool, not both"):
        model.session(2, pool=pool)
    pool.close()
    with pytest.raises(SetupError, match="the pool of threads has been closed"):
        model.session(pool=pool)
