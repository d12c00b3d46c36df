# SPDX-License-Identifier: Apache-2.0
"""The room for later releases at the end of the public structs.

Zeros in it mean the same to every release, so what a caller fills in is refused with
anything else there, and what the library fills in has nothing else there.
"""

import pytest

from neon8.compile import writer
from neon8.runtime import Model, library
from random_program import random_program

SHAPE = (1, 4, 4, 8, 4, 4, 8, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0)
LIB = library.load()
FILLED_BY_CALLERS = {
    "n8_model_options": {},
    "n8_session_options": {"threads": 1},
    "n8_conv2d_shape": SHAPE,
    "n8_conv2d_epilogue": {"type": LIB.lib.N8_TYPE_S32},
}
FILLED_HERE = (
    "n8_dimension",
    "n8_memory",
    "n8_model_error",
    "n8_model_facts",
    "n8_step_info",
    "n8_tensor_info",
)


@pytest.fixture(scope="module")
def model():
    with Model.from_bytes(writer.dumps(random_program(1))) as opened:
        yield opened


def fields(name):
    return dict(LIB.ffi.typeof(f"struct {name}").fields)


def accept(model, name, row):
    """The status of the calls that get this struct."""
    ffi, lib = LIB.ffi, LIB.lib
    content = writer.dumps(random_program(1))
    if name == "n8_model_options":
        memory = ffi.new("struct n8_memory *")
        out = ffi.new("struct n8_model **")
        measured = lib.n8_model_measure(content, len(content), row, memory, ffi.NULL)
        opened = lib.n8_model_open(content, len(content), row, out, ffi.NULL)
        lib.n8_model_close(out[0])
        assert measured == opened
        return opened
    if name == "n8_session_options":
        out = ffi.new("struct n8_session **")
        status = lib.n8_session_create(model._handle, row, out)
        lib.n8_session_destroy(out[0])
        return status
    other = "n8_conv2d_epilogue" if name == "n8_conv2d_shape" else "n8_conv2d_shape"
    rows = {
        name: row,
        other: ffi.new(f"struct {other} *", FILLED_BY_CALLERS[other]),
    }
    weights = ffi.new("int8_t[]", 64)
    out = ffi.new("struct n8_conv2d **")
    status = lib.n8_conv2d_create(
        rows["n8_conv2d_shape"], weights, 0, rows["n8_conv2d_epilogue"], 0, out
    )
    lib.n8_conv2d_destroy(out[0])
    return status


def test_every_struct_has_room():
    _, structs, _ = LIB.ffi.list_types()
    public = {
        name
        for name in structs
        if not name.startswith("n8_file_") and LIB.ffi.typeof(f"struct {name}").fields
    }
    assert public == {*FILLED_BY_CALLERS, *FILLED_HERE}
    for name in public:
        assert [*fields(name)][-1] == "reserved", name


@pytest.mark.parametrize("name", FILLED_BY_CALLERS)
def test_room_follows_without_a_gap(name):
    """What lies in a gap is left as it was by `= {0}` with some compilers."""
    *_, last, room = fields(name).values()
    assert room.offset == last.offset + LIB.ffi.sizeof(last.type)


@pytest.mark.parametrize("name", FILLED_BY_CALLERS)
def test_callers_leave_it_zero(name, model):
    row = LIB.ffi.new(f"struct {name} *", FILLED_BY_CALLERS[name])
    assert accept(model, name, row) == LIB.lib.N8_OK
    for i in range(len(row.reserved)):
        row.reserved[i] = 1 << 31
        assert accept(model, name, row) == LIB.lib.N8_E_ARGUMENT, i
        row.reserved[i] = 0
    assert accept(model, name, row) == LIB.lib.N8_OK


@pytest.mark.parametrize("name", FILLED_HERE)
def test_the_library_writes_zeros(name, model):
    ffi, lib, handle = LIB.ffi, LIB.lib, model._handle
    row = ffi.new(f"struct {name} *")
    ffi.memmove(row, b"\xff" * ffi.sizeof(row[0]), ffi.sizeof(row[0]))
    none = ffi.new("struct n8_model **")
    calls = {
        "n8_dimension": lambda: lib.n8_model_bounds(handle, 0, 0, row),
        "n8_memory": lambda: lib.n8_model_memory(handle, row),
        "n8_model_error": lambda: lib.n8_model_open(b"", 0, ffi.NULL, none, row),
        "n8_model_facts": lambda: lib.n8_model_describe(handle, row),
        "n8_step_info": lambda: lib.n8_model_step(handle, 0, row),
        "n8_tensor_info": lambda: lib.n8_model_tensor(handle, 0, row),
    }
    refused = lib.N8_E_FORMAT if name == "n8_model_error" else lib.N8_OK
    assert calls[name]() == refused
    assert not any(row.reserved)
