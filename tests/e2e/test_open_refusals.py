# SPDX-License-Identifier: Apache-2.0
"""Damage to what a file says of open dimensions, and shapes that it does not have.

open.n8 has symbols 0 to 2 (batch, height, width), sizes 0 to 12, of which the first
three are the symbols, and eight forms: of a resize its indices (words 0 to 11) and
weights (12 to 23), of two gathers their lists (24 to 47, 48 to 71), of a cubic resize
indices and weights (72 to 83, 84 to 95) and of another one, each segment of six words.
"""

import functools

import numpy as np
import open_golden
import pytest

from neon8.compile import writer
from neon8.errors import ModelError
from neon8.runtime import Model, library
from opened_file import File, damages, refusal, said_of

ROWS = {
    "symbols": "struct n8_file_symbol *",
    "sizes": "struct n8_file_size *",
    "forms": "struct n8_file_form *",
    "words": "int32_t *",
}
REASONS = """\
a part of the file is not where it must be
    file: shapes.words = 8
there is no open dimension, or there is more than a file may have
    file: shapes.symbol_count = 0 / 17
    file: shapes.form_count = 1 << 21
a form is of no known kind, or has too few words
    file: forms[1].kind = 4
    file: forms[1].word_count = 11
    file: forms[0].word_count = 0
a word belongs to no form
    file: forms[3].word_count = 18
the bounds of an open dimension are empty or beyond 2^20
    file: symbols[1].lo = 0
    file: symbols[1].hi = (1 << 20) + 1 / 4
    file: symbols[1].step = 0
    file: symbols[1].usual = 7
a dimension is no size of the file
    tensor image: dims[2] = -14 / -(2**31)
an open dimension of an input is none that a caller may choose
    tensor image: dims[2] = -5
an open dimension belongs to no input
    file: tensor image.dims[2] = 6
a size is of no known kind, or of none that stand before it
    file: sizes[4].kind = 9 / 0
    file: sizes[4].a = 4
    file: sizes[4].b = -1
    file: sizes[3].b = 1
    file: sizes[12].kind = 1; sizes[12].a = 3
    file: sizes[5].a = 0
a size that follows from the shapes is beyond 2^31
    file: sizes[3].a = -(2**31) + 1; sizes[4].kind = 3; sizes[4].a = 3
a segment is of no known kind, or has less than no entries
    file: words[24] = 0 / 4
    file: sizes[11].a = 9
arrays that follow from the shapes are too large
    file: words[25] = 1 << 30; words[31] = 1 << 30
it has a size that the file does not have
    file: words[25] = -14
    tensor dw: dims[2] = -14
    global: kernel[0] = -14
    depthwise: pad[1] = -14
    depthwise: pad_end[1] = -(2**31)
a run repeats its entries less than once
    nearest: words[28] = 0
    nearest: words[29] = -12; sizes[11].a = -1
an entry of a run is beyond int32
    nearest: words[26] = 2**31 - 1; words[32] = 2**31 - 1; words[38] = 2**31 - 1
an index is outside its input
    nearest: words[26] = 1
a form makes an array of another length
    nearest: words[31] = 10
it resizes an axis in no known manner
    linear: words[2] = 0
    linear: words[3] = 0x7fc00000 / 0xbf800000 - 2**32
    linear: words[4] = 512 / 517
    nearest: words[42] = 2; words[44:47] = [-11, 0, 1]
    nearest: words[42] = 2; words[44:48] = [-11, 0, 9, 1]
    cubic: words[76] -= 1
it resizes an axis with fewer or more taps than it has
    cubic: words[76] -= 2 * 256; words[82] += 2 * 256
    cubic: words[76] |= 16; words[75] = 0x3a800000
    cubic: words[76] += 4 * 256; words[82] -= 4 * 256
an index is outside its input, or a weight is too large
    cubic: words[89] = 0x7fc00000
a form makes indices of an array of floats
    linear: words[12] = 2; words[13] = 12; words[18] = 2; words[19] = 12
its forms are not where they must be
    nearest: indices = 7 / 1
    slice: indices = 2**63 + 1
its arrays are not where they must be
    slice: indices = 64
"""
"""See damages()."""

template = functools.cache(open_golden.template)


class OpenFile(File):
    """The file of a network with open dimensions."""

    def __init__(self) -> None:
        """Compile it."""
        super().__init__(template(), open_golden.MODEL.read_bytes())
        size = self.ffi.sizeof("struct n8_file_header")
        self.shapes = self.part("struct n8_file_shapes *", size)[0]
        for name, kind in ROWS.items():
            setattr(self, name, self.part(kind, getattr(self.shapes, name)))


@pytest.mark.parametrize(("reason", "place", "damage"), [*damages(REASONS)])
def test_damage(reason, place, damage):
    file = OpenFile()
    file.damage(place, damage)
    assert refusal(file.content()) == said_of(place, reason)


def test_cut_off_in_its_shapes():
    content = open_golden.MODEL.read_bytes()
    assert refusal(content[:150]).startswith("net.n8: the file is cut off")


SHAPES = [
    ((4, 3, 6, 6), "an open dimension is outside its bounds"),
    ((1, 3, 7, 6), "an open dimension is outside its bounds"),
    ((1, 4, 6, 6), "a dimension that is not open differs"),
    ((1, 3, 6, -(2**31)), "an open dimension is outside its bounds"),
]


@pytest.fixture(scope="module")
def opened():
    """The library, and a model of it."""
    with Model.open(open_golden.MODEL) as model:
        yield library.load(), model


def reshaped(opened, shape) -> tuple[int, str]:
    """Status and reason of n8_model_reshape, past what Python checks."""
    lib, model = opened
    out = lib.ffi.new("struct n8_model **")
    error = lib.ffi.new("struct n8_model_error *")
    rows = (
        lib.ffi.NULL if shape is None else lib.ffi.new("int32_t[1][8]", [list(shape)])
    )
    status = lib.lib.n8_model_reshape(model._handle, rows, out, error)
    assert (status == lib.lib.N8_OK) == (out[0] != lib.ffi.NULL)
    if status == lib.lib.N8_OK:
        lib.lib.n8_model_close(out[0])
        return status, ""
    return status, lib.ffi.string(error.reason).decode()


@pytest.mark.parametrize(("shape", "reason"), SHAPES)
def test_shapes_that_it_does_not_have(opened, shape, reason):
    assert reshaped(opened, shape) == (opened[0].lib.N8_E_SHAPE, reason)


LATER = [
    (
        (1, 3, 8, 6),
        "layer 'depthwise': its output is not as large as it must be",
        "sizes[7].kind = 2; sizes[7].a = 3; sizes[7].b = 0",
    ),
    (
        (1, 3, 6, 8),
        "a size that follows from the shapes is beyond 2^31",
        (
            "sizes[8].kind = 2; sizes[8].a = 357913941; sizes[8].b = 0; "
            "sizes[9].kind = 5; sizes[9].a = 2; sizes[9].b = 8; "
            "sizes[10].kind = 2; sizes[10].a = 3; sizes[10].b = 0"
        ),
    ),
]


@pytest.mark.parametrize(("shape", "reason", "damage"), LATER)
def test_shapes_at_which_it_cannot_run(shape, reason, damage):
    """A file that opens at its usual shape; the session stays as it was."""
    file = OpenFile()
    file.damage("file", damage)
    with (
        Model.from_bytes(file.content(), source="net.n8") as model,
        model.session() as session,
    ):
        before = session.run(open_golden.inputs(1, 6, 6))
        with pytest.raises(ModelError) as raised:
            session.run({"image": np.zeros(shape, np.float32)})
        after = session.run(open_golden.inputs(1, 6, 6))
    named = "x".join(map(str, shape))
    assert str(raised.value) == f"net.n8 at image {named}: {reason}"
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_no_shapes_are_the_usual_ones(opened):
    assert reshaped(opened, None) == (opened[0].lib.N8_OK, "")


EQUAL = "dimensions that must be equal are different"


def test_dimensions_that_must_be_equal(opened):
    """A file that has one symbol for height and width."""
    file = OpenFile()
    file.damage("file", "sizes[2].a = 1; shapes.symbol_count = 3")
    lib = opened[0]
    said = refusal(file.content())
    assert said == "net.n8: an open dimension belongs to no input"
    file.damage("tensor image", "dims[1] = -3; dims[2] = -2; dims[3] = -2")
    file.damage("file", "sizes[2].a = 2; symbols[2].lo = 3; symbols[2].hi = 3")
    file.damage("file", "symbols[2].usual = 3; symbols[2].step = 1")
    content = file.content()
    options = lib.ffi.new("struct n8_model_options *")
    rows = lib.ffi.new("int32_t[1][8]", [[1, 3, 6, 8]])
    options.shapes = rows
    out = lib.ffi.new("struct n8_model **")
    error = lib.ffi.new("struct n8_model_error *")
    data = lib.ffi.from_buffer(content)
    status = lib.lib.n8_model_open(data, len(content), options, out, error)
    assert status == lib.lib.N8_E_SHAPE
    assert lib.ffi.string(error.reason).decode() == EQUAL


def test_bounds_of_what_is_not_there(opened):
    lib, model = opened
    out = lib.ffi.new("struct n8_dimension *")
    for index, axis in ((1, 0), (0, 4), (0, 2**31 - 1)):
        status = lib.lib.n8_model_bounds(model._handle, index, axis, out)
        assert status == lib.lib.N8_E_ARGUMENT


def test_a_fixed_model_is_not_reshaped(opened):
    fixed = writer.dumps(open_golden.program(1, 6, 6))
    with Model.from_bytes(fixed) as model:
        status, reason = reshaped((opened[0], model), (1, 3, 6, 6))
    assert (status, reason) == (
        opened[0].lib.N8_E_ARGUMENT,
        "it has no open dimensions",
    )


def test_a_shape_at_which_a_layer_cannot_run():
    """Where a file lies about its sizes elsewhere than at the usual shape."""
    file = OpenFile()
    file.damage("file", "sizes[5].kind = 3; sizes[5].a = 0")  # 2 is batch + batch
    with Model.from_bytes(file.content()) as model:
        np.testing.assert_equal(model.inputs["image"].shape, (1, 3, 6, 6))
        with pytest.raises(ModelError, match=r"at image 2x3x6x6: layer '.*': "):
            model.at({"image": (2, 3, 6, 6)})


REACHED = {reason for reason, *_ in damages(REASONS)} | {EQUAL}
REACHED |= {reason for _, reason in SHAPES}
