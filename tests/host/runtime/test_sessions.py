# SPDX-License-Identifier: Apache-2.0
"""Several sessions of one model: opened when needed, not shared, all closed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import neon8
from neon8.errors import ModelError, SetupError
from neon8.runtime import library
from neon8.runtime.arrays import Memory
from neon8.runtime.structs import options_of
from neon8.runtime.targets import Sessions, open_model
from neon8.settings.stages import TargetSettings


class Session:
    """Waits for all others of a group before it answers."""

    def __init__(self, together=None):
        self.together, self.busy, self.closed, self.runs = together, False, 0, 0

    def run(self, inputs):
        assert not self.busy
        self.busy = True
        if self.together is not None:
            self.together.wait()
        self.busy = False
        self.runs += 1
        return inputs

    def close(self):
        self.closed += 1


def test_one_thread_has_one_session():
    opened = []
    with Sessions(lambda: opened.append(Session()) or opened[-1]) as sessions:
        for number in range(5):
            assert sessions.run({"x": number}) == {"x": number}
    assert [(each.runs, each.closed) for each in opened] == [(5, 1)]


def test_each_of_several_threads_has_its_own():
    together = threading.Barrier(3, timeout=20)
    opened = []

    def another():
        opened.append(Session(together))
        return opened[-1]

    with Sessions(another) as sessions, ThreadPoolExecutor(3) as pool:
        given = [{"x": number} for number in range(12)]
        assert list(pool.map(sessions.run, given)) == given
    assert [session.runs for session in opened] == [4, 4, 4]
    assert [session.closed for session in opened] == [1, 1, 1]


def test_a_session_that_failed_is_used_again():
    def fail(_):
        raise ModelError("no")

    first = Session()
    first.run = fail
    with Sessions(iter([first]).__next__) as sessions:
        for _ in range(2):
            with pytest.raises(ModelError):
                sessions.run({})


def test_several_threads_get_the_bytes_of_one(tiny):
    x = [{"image": image[None]} for image in np.load(tiny.data)["x"]] * 8
    with open_model(tiny.n8) as model:
        wanted = [model.run(one)["scores"].tobytes() for one in x]
        with ThreadPoolExecutor(4) as pool:
            found = [result["scores"].tobytes() for result in pool.map(model.run, x)]
    assert found == wanted


def test_room_for_sessions():
    memory = Memory(tables=10, packed=90, arena=40, arena_least=40, scratch=10)
    rooms = {149: 1, 150: 1, 199: 1, 200: 2, 251: 3}
    assert {limit: memory.sessions(limit) for limit in rooms} == rooms
    nothing = Memory(tables=10, packed=0, arena=0, arena_least=0, scratch=0)
    assert nothing.sessions(14) == 4


def test_the_limit_is_for_all_sessions(tiny):
    with neon8.Model.open(tiny.n8) as model:
        memory = model.memory
        assert model.max_bytes == 1 << 30
    three = memory.total() + 2 * (memory.arena + memory.scratch)
    for limit, most in ((three - 1, 2), (three, 3)):
        with open_model(tiny.n8, TargetSettings(max_bytes=limit)) as runner:
            assert runner.most == most


def test_a_library_that_is_too_old_is_named():
    with pytest.raises(SetupError, match=r"neon8\.so: has no 'clock', so it is older"):
        options_of(library.load(), "n8_model_options", {"clock": 0})
