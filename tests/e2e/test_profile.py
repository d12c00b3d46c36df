# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run goes: n8_session_profile."""

import threading
from pathlib import Path

import numpy as np
import pytest

from neon8.compile import writer
from neon8.errors import ModelError
from neon8.runtime import Model, library
from random_program import random_program

LIB = library.load()
OPEN = Path(__file__).resolve().parents[1] / "golden" / "open.n8"


@pytest.fixture(scope="module")
def model():
    with Model.from_bytes(writer.dumps(random_program(3))) as opened:
        yield opened


@pytest.fixture(scope="module")
def inputs(model):
    return {name: np.zeros(i.shape, i.dtype) for name, i in model.inputs.items()}


@pytest.mark.parametrize("threads", [1, 3])
def test_clock_is_read_between_all_parts(model, inputs, threads):
    """Its context comes with it, and it is read in order, by the thread that runs."""
    ffi, lib = LIB.ffi, LIB.lib
    told = []

    def tick(context):
        told.append((context, threading.get_ident()))
        return 10 * len(told)

    clock, context = ffi.callback("uint64_t (*)(void *)", tick), ffi.new("char *")
    options = {"threads": threads, "clock": clock, "clock_context": context}
    out = ffi.new("struct n8_session **")
    given = ffi.new("struct n8_session_options *", options)
    assert lib.n8_session_create(model.handle, given, out) == lib.N8_OK
    steps = len(model.steps)
    arrays = [ffi.from_buffer(each) for each in inputs.values()]
    results = [np.empty(i.shape, i.dtype) for i in model.outputs.values()]
    ends = ffi.new("const void *[]", arrays), [ffi.from_buffer(r) for r in results]
    outputs = ffi.new("void *[]", ends[1])
    for run in range(2):
        assert lib.n8_session_run(out[0], ends[0], outputs) == lib.N8_OK
        times = lib.n8_session_profile(out[0])[0 : steps + 3]
        first = run * (steps + 3) + 1
        assert list(times) == [10 * (first + i) for i in range(steps + 3)]
    assert told == [(context, threading.get_ident())] * 2 * (steps + 3)
    lib.n8_session_destroy(out[0])
    wanted = model.session().run(inputs)
    for array, name in zip(results, model.outputs, strict=True):
        assert array.tobytes() == wanted[name].tobytes()


def test_nothing_without_a_clock(model, inputs):
    assert LIB.lib.n8_session_profile(LIB.ffi.NULL) == LIB.ffi.NULL
    with model.session() as session:
        session.run(inputs)
        assert session.profile() == ()


def test_python_tells_nanoseconds(model, inputs):
    with model.session(profile=True) as session:
        session.run(inputs)
        times = session.profile()
        assert len(times) == len(model.steps) + 2
        assert all(each >= 0 for each in times)
        assert 0 < sum(times) < 10**11
    with pytest.raises(ModelError, match="closed"):
        session.profile()


def test_other_shapes_have_their_own():
    """The last run counts, whatever its shapes."""
    with Model.open(OPEN) as model, model.session(profile=True) as session:
        name, info = next(iter(model.inputs.items()))
        for height in (6, 8, 6):
            session.run({name: np.zeros((1, 3, height, height), info.dtype)})
            last = max(s._stamps() for s in (session, *session._others.values()))
            every = (session, *session._others.values())
            ran = [s for s in every if s._stamps() == last]
            assert [s._model.inputs[name].shape[2] for s in ran] == [height]
            assert session.profile() == tuple(np.diff(last[1:]).tolist())
