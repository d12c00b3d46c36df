# SPDX-License-Identifier: Apache-2.0
"""Model and Session: what they say, and what they refuse."""

import copy
import pickle
import struct
import threading

import numpy as np
import pytest

from neon8.compile import oracle, writer
from neon8.errors import DataError, ModelError, SetupError
from neon8.operators.convolution import Conv2dOp
from neon8.runtime import Model, ThreadPool, library
from opened_file import with_checksum
from random_program import differing_bytes, random_inputs, random_program

SEED = 1


@pytest.fixture(scope="module")
def program():
    """The first random program with a convolution, a float and an int8 input."""
    for seed in range(1000):
        chosen = random_program(seed)
        dtypes = {chosen.tensors[name].dtype for name in chosen.inputs}
        convolves = any(isinstance(op, Conv2dOp) for op in chosen.ops)
        if convolves and dtypes == {"float32", "int8"}:
            return chosen
    raise AssertionError("no such program")


@pytest.fixture(scope="module")
def content(program):
    return writer.dumps(program)


@pytest.fixture
def model(content):
    with Model.from_bytes(content, source="net.n8") as opened:
        yield opened


@pytest.fixture(params=[0, 2**30])
def copied(request, monkeypatch):
    """Arrays up to this size are copied, larger ones handed over as they are."""
    monkeypatch.setattr("neon8.runtime.session.SMALL", request.param)


@pytest.fixture
def inputs(program):
    return random_inputs(program, SEED)


def test_describes_inputs_and_outputs(program, model):
    for infos, names in (
        (model.inputs, program.inputs),
        (model.outputs, program.outputs),
    ):
        assert tuple(infos) == names
        for name, info in infos.items():
            tensor = program.tensors[name]
            assert info.shape == tensor.dims
            assert info.dtype == tensor.dtype
            assert info.scale == tensor.scale
            assert info.zero_point == tensor.zero_point
            assert (info.lo, info.hi) == (tensor.lo, tensor.hi)


def test_opens_a_file(tmp_path, program, content, inputs):
    path = tmp_path / "net.n8"
    path.write_bytes(content)
    with Model.open(path) as model, model.session() as session:
        assert differing_bytes(session.run(inputs), oracle.run(program, inputs)) == {}


def test_missing_file(tmp_path):
    with pytest.raises(ModelError, match=r"none\.n8: No such file"):
        Model.open(tmp_path / "none.n8")


def test_name_that_is_no_text(program, content):
    name = program.inputs[0].encode() + b"\0"
    damaged = with_checksum(content.replace(name, b"\xff" * (len(name) - 1) + b"\0"))
    with pytest.raises(ModelError, match=r"^net\.n8: a name in it is not UTF-8$"):
        Model.from_bytes(damaged, source="net.n8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x | {"other": np.zeros(1)}, "no input 'other'; the inputs are"),
        (lambda x: dict(list(x.items())[:-1]), "is missing"),
        (lambda x: {k: v[None] for k, v in x.items()}, r"shape \(1, .*, expected"),
        (
            lambda x: {k: v.astype(float) for k, v in x.items()},
            "type float64, expected",
        ),
        (lambda x: {k: v.astype("U9") for k, v in x.items()}, "type <U9, expected"),
        (lambda x: {k: [[0.0], []] for k in x}, "is no array"),
        (lambda x: next(iter(x.values())), "must be a dict"),
    ],
)
def test_wrong_inputs(model, inputs, change, message):
    with model.session() as session, pytest.raises(DataError, match=message):
        session.run(change(inputs))


@pytest.mark.usefixtures("copied")
def test_takes_arrays_of_any_layout(program, model, inputs):
    expected = oracle.run(program, inputs)
    strided = {}
    for name, array in inputs.items():
        twice = np.repeat(array, 2, axis=-1)
        strided[name] = twice[..., ::2]
    raw = {
        name: np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1)
        for name, array in inputs.items()
    }
    misaligned = {name: raw[name].reshape(inputs[name].shape) for name in inputs}
    read_only = {name: array.copy() for name, array in inputs.items()}
    for array in read_only.values():
        array.flags.writeable = False
    with model.session() as session:
        for arrays in (strided, misaligned, read_only):
            assert differing_bytes(session.run(arrays), expected) == {}


@pytest.mark.usefixtures("copied")
def test_run_leaves_inputs_and_earlier_results_alone(model, inputs):
    before = {name: array.copy() for name, array in inputs.items()}
    with model.session() as session:
        first = session.run(inputs)
        kept = {name: array.copy() for name, array in first.items()}
        session.run({name: np.zeros_like(array) for name, array in inputs.items()})
    assert differing_bytes(inputs, before) == {}
    assert differing_bytes(first, kept) == {}


def test_closed_is_an_error_not_a_crash(content, inputs):
    model = Model.from_bytes(content, source="net.n8")
    session, other = model.session(), model.session()
    session.close()
    session.close()
    with pytest.raises(ModelError, match=r"net\.n8: the session has been closed"):
        session.run(inputs)
    model.close()
    model.close()
    with pytest.raises(ModelError, match="the session has been closed"):
        other.run(inputs)
    with pytest.raises(ModelError, match="the model has been closed"):
        model.session()


def test_session_outlives_the_name_of_its_model(program, content, inputs):
    session = Model.from_bytes(content).session()
    assert differing_bytes(session.run(inputs), oracle.run(program, inputs)) == {}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_holds_memory_is_not_copied(model, again):
    """The memory would be freed under the copy."""
    with model.session() as session, ThreadPool(2) as pool:
        for each in (model, session, pool):
            kind = type(each).__name__
            message = f"^{kind}: cannot be copied or pickled; open another$"
            with pytest.raises(TypeError, match=message):
                again(each)


def test_what_they_print(content):
    model, pool = Model.from_bytes(content, source="net.n8"), ThreadPool(2)
    each = (model, model.session(), pool)
    names = ["<Model 'net.n8'", "<Session of 'net.n8'", "<ThreadPool of 2"]
    assert [repr(one) for one in each] == [f"{name}>" for name in names]
    model.close()
    pool.close()
    assert [repr(one) for one in each] == [f"{name}, closed>" for name in names]


def test_sessions_run_side_by_side(program, model):
    """Two sessions of one model, and two threads on each of them."""
    arrays = [random_inputs(program, seed) for seed in range(8)]
    expected = [oracle.run(program, each) for each in arrays]
    sessions = [model.session(), model.session(threads=2)]
    failures = []

    def work(number):
        session = sessions[number % 2]
        for turn in range(60):
            at = (turn + number) % len(arrays)
            if differing_bytes(session.run(arrays[at]), expected[at]):
                failures.append((number, turn))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_instruction_set(monkeypatch, content):
    with pytest.raises(SetupError, match="'mmx' is not one of auto, c, vector"):
        Model.from_bytes(content, isa="mmx")
    monkeypatch.setenv("N8_ISA", "mmx")
    with pytest.raises(SetupError, match=r"net\.n8: instruction set 'mmx' is not one"):
        Model.from_bytes(content, source="net.n8")
    monkeypatch.setenv("N8_ISA", "c")
    kernels = {step.kernel for step in Model.from_bytes(content).steps}
    chosen = {kernel for kernel in kernels if kernel.startswith("n8_")}
    assert chosen
    assert all(kernel.endswith("_c") for kernel in chosen)


def fake_library(tmp_path, machine):
    """The first bytes of a little-endian ELF library for `machine`."""
    path = tmp_path / "libneon8.so"
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HH", 3, machine)
    path.write_bytes(head + bytes(100))
    return path


def test_foreign_library(tmp_path, monkeypatch):
    path = fake_library(tmp_path, 243)
    monkeypatch.setenv("N8_LIBRARY", str(path))
    with pytest.raises(SetupError, match=r"libneon8\.so is for RISC-V, this Python"):
        library.load()


def test_library_without_its_header(tmp_path, monkeypatch):
    path = tmp_path / "libneon8.so"
    path.write_bytes(library.find().read_bytes())
    monkeypatch.setenv("N8_LIBRARY", str(path))
    with pytest.raises(SetupError, match=r"neon8_cdef\.h: cannot be read"):
        library.load()


def test_library_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("N8_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(SetupError, match=r"none\.so: no such library"):
        library.load()
    path = tmp_path / "text.so"
    path.write_text("no library")
    monkeypatch.setenv("N8_LIBRARY", str(path))
    with pytest.raises(SetupError, match=r"text\.so: not an ELF library"):
        library.load()


def test_library_of_another_version(tmp_path, monkeypatch):
    monkeypatch.setattr("neon8.runtime.library.__version__", "99.1.0")
    path = tmp_path / "libneon8.so"
    path.write_bytes(library.find().read_bytes())
    header = library.find().with_name(library.RUNTIME.header)
    path.with_name(library.RUNTIME.header).write_bytes(header.read_bytes())
    monkeypatch.setenv("N8_LIBRARY", str(path))
    with pytest.raises(SetupError, match=r"does not fit neon8 99\.1\.0"):
        library.load()


def test_library_of_an_older_checkout(tmp_path, monkeypatch, content):
    """It has the same version, but without a field that the package reads."""
    path = tmp_path / "libneon8.so"
    path.write_bytes(library.find().read_bytes())
    header = library.find().with_name(library.RUNTIME.header).read_text()
    assert "tables;" in header
    path.with_name(library.RUNTIME.header).write_text(
        header.replace("tables;", "unnamed;")
    )
    monkeypatch.setenv("N8_LIBRARY", str(path))
    with Model.from_bytes(content) as model:
        for fact in ("memory", "steps"):
            with pytest.raises(
                SetupError, match=r"libneon8\.so: has no 'tables'.*'make"
            ):
                getattr(model, fact)
