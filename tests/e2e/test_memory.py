# SPDX-License-Identifier: Apache-2.0
"""What models take, what limits them, and what buffers and processes may do."""

import dataclasses
import itertools
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from levels import levels
from neon8.compile import oracle, writer
from neon8.errors import ModelError, SetupError
from neon8.ir.program import Program, Tensor
from neon8.operators.convolution import Conv2dOp
from neon8.operators.pooling import PoolOp
from neon8.runtime import Model, ThreadPool, library
from neon8.runtime.model import MAX_BYTES, measure
from programs import level, program
from random_convs import bound
from random_program import differing_bytes, random_inputs, random_program

SECONDS = 2
LITTLE = 32 * 2**20
SEEDS = range(20)


def pool(before, after, kernel=(1, 1)) -> PoolOp:
    """A maximum pool, which does not work in place."""
    return PoolOp(
        name=after,
        inputs=(before,),
        output=after,
        kind="max",
        kernel=kernel,
        strides=(1, 1),
        dilations=(1, 1),
        pads=(0, 0, 0, 0),
    )


def dumps(tensors, ops, outputs) -> bytes:
    """The file of int8 tensors, name -> shape, of which t0 is the input."""
    return writer.dumps(
        Program(
            source_digest="00" * 32,
            tensors={name: Tensor(name=name, dims=dims) for name, dims in tensors},
            ops=tuple(ops),
            inputs=("t0",),
            outputs=outputs,
        )
    )


def chain(count, shape) -> bytes:
    """`count` pools of one tap, on this shape."""
    names = [f"t{index}" for index in range(count + 1)]
    ops = [pool(before, after) for before, after in itertools.pairwise(names)]
    return dumps([(name, shape) for name in names], ops, (names[-1],))


def star(count, shape) -> bytes:
    """`count` pools of one tensor, which all are alive in the end."""
    names = [f"t{index}" for index in range(count + 1)]
    ops = [pool("t0", after) for after in names[1:]]
    return dumps([(name, shape) for name in names], ops, tuple(names[1:]))


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_small_file_that_wants_much_is_refused():
    content = chain(2, (1, 8, 2**13, 15000))
    assert len(content) < 1400
    start, before = time.process_time(), resident()
    with pytest.raises(
        ModelError, match=r"^net\.n8: takes 19\d{8} bytes .* limit of 1"
    ):
        Model.from_bytes(content, source="net.n8")
    assert time.process_time() - start < SECONDS
    assert resident() - before < LITTLE


def test_memory_is_not_touched_before_it_is_needed():
    content = chain(2, (1, 8, 2**13, 9000))
    start, before = time.process_time(), resident()
    with Model.from_bytes(content, max_bytes=2**31) as model, model.session():
        assert model.memory.arena > 2**30
        assert resident() - before < LITTLE
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("limit", [0, -1, 2**63])
def test_limits_that_are_none(limit):
    with pytest.raises(SetupError, match=rf"^model: max_bytes {limit} is outside"):
        Model.from_bytes(chain(1, (1, 1, 1, 1)), max_bytes=limit)


def test_the_limit_is_exact():
    program = next(
        program
        for program in map(random_program, SEEDS)
        if measure(writer.dumps(program)).scratch > 0
    )
    content = writer.dumps(program)
    memory = measure(content, max_bytes=1)
    with pytest.raises(ModelError, match=r"raise it \(max_bytes"):
        Model.from_bytes(content, max_bytes=memory.total() - 1)
    with Model.from_bytes(content, max_bytes=memory.total()) as model:
        model.session().close()
        with pytest.raises(ModelError, match="more memory than max_bytes allows"):
            model.session(2)
    with Model.from_bytes(content, max_bytes=memory.total(2)) as model:
        model.session(2).close()


def test_weights_for_winograd_are_given_up_for_memory():
    """As many as must be, and with the same results."""
    rng = np.random.default_rng(3)
    channels = (16, 48, 64, 32, 16)
    names = [f"t{index}" for index in range(len(channels))]
    tensors = [
        level(name, (1, count, 12, 12))
        for name, count in zip(names, channels, strict=True)
    ]
    ops = []
    for (before, after), (inside, out) in zip(
        itertools.pairwise(names), itertools.pairwise(channels), strict=True
    ):
        weights = rng.integers(-127, 128, (out, 3, 3, inside), np.int8)
        bias = rng.integers(-999, 999, out, np.int32)
        ops.append(
            Conv2dOp(
                name=after,
                inputs=(before,),
                output=after,
                weights=weights,
                bias=bias,
                multiplier=np.full(out, 2e-4, np.float32),
                pads=(1, 1, 1, 1),
                acc_bound=bound(weights, bias),
            )
        )
    small = program(tensors, ops, names[0], names[-1])
    inputs, content = random_inputs(small, 4), writer.dumps(small)
    expected = oracle.run(small, inputs)
    for isa in levels():
        most = measure(content, isa=isa)
        least = measure(content, isa=isa, max_bytes=1)
        # Only this level has Winograd in int16.
        assert (least.packed < most.packed / 4) == (isa == "neon")
        for limit in np.linspace(most.total(), least.total(), 9, dtype=int).tolist():
            with Model.from_bytes(content, isa=isa, max_bytes=limit) as model:
                assert least.total() <= model.memory.total() <= limit
                spared = sum(step.spared for step in model.steps)
                assert spared == most.packed - model.memory.packed
                assert differing_bytes(model.session().run(inputs), expected) == {}
        with pytest.raises(ModelError, match=rf"takes {least.total()} bytes"):
            Model.from_bytes(content, isa=isa, max_bytes=least.total() - 1)


NARROW = library.load().ffi.sizeof("void *") == 4
"""This process has 32 bits."""


@pytest.mark.parametrize("count", [1, 3])  # beyond 2^31, and beyond 2^32
def test_a_model_beyond_the_address_space(count):
    shape = (1, 8, 2**14, 15000)
    content = star(count, shape)
    memory = measure(content)
    assert memory.arena == (count + 1) * (8 * 2**14 * 15000 + 64)
    start, before = time.process_time(), resident()
    if NARROW:
        wanted = (
            rf"^net\.n8: takes at least {memory.total()} bytes .* "
            "more than the 2147483647 that a process of 32 bits can address; use"
        )
        for limit in (None, MAX_BYTES):
            with pytest.raises(ModelError, match=wanted):
                Model.from_bytes(content, source="net.n8", max_bytes=limit)
    else:
        with pytest.raises(ModelError, match="raise it"):
            Model.from_bytes(content, source="net.n8")
        Model.from_bytes(content, max_bytes=MAX_BYTES).close()
    assert time.process_time() - start < SECONDS
    assert resident() - before < LITTLE


def test_threads_beyond_the_address_space():
    """64 lists of 2^23 pointers."""
    image, point = (1, 1, 2**11, 2**12), (1, 1, 1, 1)
    step = pool("t0", "t1", image[2:])
    content = dumps([("t0", image), ("t1", point)], [step], ("t1",))
    memory = measure(content)
    assert memory.scratch == 2**23 * (4 if NARROW else 8)
    with Model.from_bytes(content, max_bytes=MAX_BYTES) as model:
        model.session(2).close()
        if NARROW:
            with pytest.raises(ModelError, match="than this processor can address"):
                model.session(64)
    with (
        Model.from_bytes(content, max_bytes=memory.total()) as model,
        pytest.raises(ModelError, match="more memory than max_bytes allows"),
    ):
        model.session(2)


def test_a_layer_beyond_the_address_space():
    """Copies of 2^10 rows of 2^20 pixels, most of them padding."""
    conv = Conv2dOp(
        name="wide",
        inputs=("t0",),
        output="t1",
        weights=np.zeros((8, 2**10, 2, 1), np.int8),
        bias=np.zeros(8, np.int32),
        multiplier=np.ones(8, np.float32),
        pads=(2**10 - 1, 2**20 - 1, 0, 0),
        dilations=(1, 2**20 - 1),
        groups=8,
    )
    content = dumps([("t0", (1, 8, 1, 1)), ("t1", (1, 8, 1, 1))], [conv], ("t1",))
    refused = "layer 'wide': it takes more memory than this processor can address"
    with pytest.raises(ModelError, match=refused if NARROW else r"scratch 8\d{9}\)"):
        Model.from_bytes(content)


def test_a_file_larger_than_memory(monkeypatch, tmp_path):
    def read_file(_: Path) -> bytes:
        raise MemoryError

    monkeypatch.setattr("neon8.runtime.model.read_file", read_file)
    with pytest.raises(SetupError, match=r"net\.n8: is larger than the memory left"):
        Model.open(tmp_path / "net.n8")


def test_memory_is_known_beforehand():
    for seed in SEEDS:
        program = random_program(seed)
        content = writer.dumps(program)
        with Model.from_bytes(content, max_bytes=MAX_BYTES) as model:
            memory = model.memory
            assert memory == measure(content)
            packed = sum(step.packed + -step.packed % 64 for step in model.steps)
            assert memory.packed == packed
        sizes = [getattr(op, "weights", np.zeros(0)).size for op in program.ops]
        assert memory.packed >= sum(sizes)
        assert memory.packed % 64 == memory.scratch % 64 == 0


def test_facts_are_those_of_the_file():
    program = random_program(3)
    content = writer.dumps(program)
    facts = Model.from_bytes(content).facts
    assert (facts.version, facts.size) == (2, len(content))
    assert facts.digest == program.source_digest
    assert facts.checksum == int.from_bytes(content[12:16], "little")
    assert 0 <= facts.data_size < len(content)


def test_steps_name_their_tensors():
    for seed in range(20):
        program = random_program(seed)
        for step, op in zip(
            Model.from_bytes(writer.dumps(program)).steps, program.ops, strict=True
        ):
            out = program.tensors[op.output]
            assert (step.inputs, step.output) == (op.inputs, op.output)
            assert step.shape == out.dims
            weights = getattr(op, "weights", np.zeros(1, np.int8))
            assert step.weights == (weights.min(), weights.max())
            assert step.acc_bound == getattr(op, "acc_bound", 0)


def moved(array, offset):
    """A copy that starts `offset` bytes after an aligned address."""
    room = np.zeros(array.nbytes + 64 + offset, np.uint8)
    start = -room.ctypes.data % 64 + offset
    room[start : start + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    return room[start : start + array.nbytes]


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_buffers_of_a_run_are_aligned_to_anything(offset):
    lib = library.load()
    ffi = lib.ffi
    for seed in range(30):
        program = random_program(seed)
        inputs = random_inputs(program, seed)
        expected = oracle.run(program, inputs)
        with Model.from_bytes(writer.dumps(program)) as model:
            session = model.session()
            given = [moved(inputs[name], offset) for name in program.inputs]
            taken = [
                moved(np.zeros_like(expected[name]), offset) for name in program.outputs
            ]
            status = lib.lib.n8_session_run(
                session._handle,
                ffi.new("const void *[]", [ffi.from_buffer(each) for each in given]),
                ffi.new("void *[]", [ffi.from_buffer(each) for each in taken]),
            )
            assert status == lib.lib.N8_OK
        for array, bytes_ in zip(expected.values(), taken, strict=True):
            assert bytes_.tobytes() == array.tobytes()


def in_child(work) -> int:
    """The status with which a forked child ends that does `work`; -1 if it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def work(program) -> int:
    """Multiply-accumulates of a run."""
    model = Model.from_bytes(writer.dumps(program))
    return sum(step.macs for step in model.steps)


def test_a_session_with_threads_survives_fork():
    """The threads stay with the parent: both go on, and so does a third generation.

    So with a pool. One test for both: qemu-user 7.2 stops when a child starts threads
    and its parent has forked before. It also stops when a child's first thread gets the
    number of one that the parent had when it forked: `early` keeps that one free.
    """
    program = max(map(random_program, range(40)), key=work)
    inputs = random_inputs(program, 1)
    expected = oracle.run(program, inputs)
    model = Model.from_bytes(writer.dumps(program))
    early = model.session(2)
    pool = ThreadPool(3)
    session, pooled = model.session(4), model.session(pool=pool)
    early.close()

    def same() -> bool:
        results = [each.run(inputs) for each in (session, pooled)]
        return all(differing_bytes(result, expected) == {} for result in results)

    def in_the_child() -> bool:
        fresh = model.session(2)
        right = differing_bytes(fresh.run(inputs), expected) == {}
        right = right and same() and in_child(same) == 0
        session.close()  # joins nobody
        pool.close()
        fresh.close()
        return right

    assert sum(step.macs for step in model.steps) > 10**4
    assert same()
    assert in_child(in_the_child) == 0
    assert same()
    session.close()
    pool.close()


def test_bound_runs_use_the_pointers_of_the_moment():
    lib = library.load()
    ffi, call = lib.ffi, lib.lib
    program = random_program(3)
    first, second = (random_inputs(program, seed) for seed in (1, 2))
    with Model.from_bytes(writer.dumps(program)) as model:
        out = ffi.new("struct n8_session **")
        assert call.n8_session_create(model._handle, ffi.NULL, out) == call.N8_OK
        session = ffi.gc(out[0], call.n8_session_destroy)
        assert call.n8_session_run_bound(session) == call.N8_E_ARGUMENT
        assert call.n8_session_run_bound(ffi.NULL) == call.N8_E_ARGUMENT
        given = ffi.new("const void *[]", len(program.inputs))
        expected = oracle.run(program, first)
        arrays = {name: each * 0 for name, each in expected.items()}
        pointers = [ffi.from_buffer(arrays[name]) for name in program.outputs]
        taken = ffi.new("void *[]", pointers)
        for ends in ((ffi.NULL, taken), (given, ffi.NULL)):
            assert call.n8_session_bind(session, *ends) == call.N8_E_ARGUMENT
        assert call.n8_session_bind(session, given, taken) == call.N8_OK
        assert call.n8_session_run_bound(session) == call.N8_E_ARGUMENT  # NULL inside
        for inputs in (first, second):
            kept = [ffi.from_buffer(inputs[name]) for name in program.inputs]
            given[0 : len(kept)] = kept
            assert call.n8_session_run_bound(session) == call.N8_OK
            assert differing_bytes(arrays, oracle.run(program, inputs)) == {}
        ffi.release(session)


def test_misaligned_arrays_and_denormal_biases_of_layers_are_refused():
    lib = library.load()
    ffi, room = lib.ffi, np.zeros(64, np.float32)
    good = ffi.from_buffer("float[]", room)
    bad = ffi.cast("float *", room.ctypes.data + 2)
    q = ffi.new("int8_t[]", 64)
    whole = ffi.cast("int32_t *", good)
    odd = ffi.cast("int32_t *", bad)
    call, refused = lib.lib, lib.lib.N8_E_ARGUMENT
    denormal = ffi.new("float[]", [0, 1e-39, 0, 0])
    assert call.n8_quantize_f32_s8(q, good, 4, 1, 0, -128, 127) == call.N8_OK
    assert call.n8_quantize_f32_s8(q, bad, 4, 1, 0, -128, 127) == refused
    assert call.n8_dequantize_s8_f32(good, q, 4, 1, 0) == call.N8_OK
    assert call.n8_dequantize_s8_f32(bad, q, 4, 1, 0) == refused
    for out, given, scale, bias, status in (
        (good, whole, good, ffi.NULL, call.N8_OK),
        (bad, whole, good, ffi.NULL, refused),
        (good, odd, good, ffi.NULL, refused),
        (good, whole, bad, ffi.NULL, refused),
        (good, whole, good, bad, refused),
        (good, whole, good, denormal, refused),
    ):
        assert call.n8_dequantize_s32_f32(out, given, 1, 4, scale, bias) == status
    for given, scale, status in (
        (whole, good, call.N8_OK),
        (odd, good, refused),
        (whole, bad, refused),
    ):
        done = call.n8_requantize_s32_s8(q, given, 1, 4, scale, 0, -128, 127)
        assert done == status


def test_dataclasses_cover_the_structs():
    """A field that C tells and Python drops would be a fact that nobody sees."""
    from neon8.runtime import Memory

    fields = library.load().ffi.typeof("struct n8_memory").fields
    names = {field.name for field in dataclasses.fields(Memory)}
    assert {*names, "reserved"} == {name for name, _ in fields}
