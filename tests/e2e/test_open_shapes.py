# SPDX-License-Identifier: Apache-2.0
"""A model with open dimensions gives the bytes of one compiled for the shape."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import open_golden
import pytest

from levels import levels
from neon8.compile import writer
from neon8.errors import DataError, ModelError
from neon8.runtime import Model
from neon8.runtime.model import measure

DIGESTS = json.loads(open_golden.DIGESTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def content():
    return open_golden.MODEL.read_bytes()


def test_compiles_to_the_same_file(content):
    made, digests = open_golden.make()
    assert made == content
    assert digests == DIGESTS
    assert hashlib.sha256(content).hexdigest() == DIGESTS["file"]


@pytest.mark.parametrize("isa", levels())
def test_results_at_each_shape(content, isa):
    with Model.from_bytes(content, isa=isa) as model, model.session() as session:
        for shape in (*open_golden.SHAPES, *open_golden.SHAPES):
            results = session.run(open_golden.inputs(*shape))
            wanted = DIGESTS["outputs"]["x".join(map(str, shape))]
            for name, array in results.items():
                assert open_golden.digest(array) == wanted[name], (name, shape)


def test_described_and_planned_as_if_compiled_for_the_shape(content):
    with Model.from_bytes(content) as model:
        for shape in open_golden.SHAPES:
            fixed = writer.dumps(open_golden.program(*shape))
            with (
                model.at({"image": (shape[0], 3, *shape[1:])}) as at,
                Model.from_bytes(fixed) as alone,
            ):
                assert at.steps == alone.steps
                assert at.inputs == alone.inputs
                assert at.outputs == alone.outputs
                kept = at.memory.tables - alone.memory.tables
                assert 0 < kept < 2 * len(content)  # the file itself
                assert replace(at.memory, tables=0) == replace(alone.memory, tables=0)


def test_max_bytes_holds_at_each_shape(content):
    largest = measure(content, largest=True)
    with Model.from_bytes(content) as model:
        with model.at({"image": (3, 3, 40, 40)}) as at:
            assert at.memory == largest
        usual = model.memory.total()
    assert usual < largest.total()
    with Model.from_bytes(content, source="net.n8", max_bytes=usual) as model:
        with pytest.raises(ModelError) as refused:
            model.at({"image": (3, 3, 40, 40)})
        assert str(refused.value) == (
            "net.n8 at image 3x3x40x40: takes more than the limit of "
            f"{usual}; raise it (max_bytes, --max-bytes) if you trust the file"
        )
        assert model.session().run(open_golden.inputs(1, 6, 6))


def test_samples_of_a_batch_are_as_alone(content):
    inputs = open_golden.inputs(3, 8, 30)["image"]
    with Model.from_bytes(content) as model, model.session() as session:
        together = session.run({"image": inputs})
        for sample in range(3):
            alone = session.run({"image": inputs[sample : sample + 1]})
            for name, array in together.items():
                np.testing.assert_array_equal(alone[name][0], array[sample])


def test_bounds(content):
    with Model.from_bytes(content) as model:
        assert model.open_dimensions
        assert [str(limit) for limit in model.bounds["image"]] == [
            "1..3",
            "3",
            "6..40:2",
            "6..40:2",
        ]
        assert model.inputs["image"].shape == (1, 3, 6, 6)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((4, 3, 6, 6), "has 4 as dimension 0, which is 1..3"),
        ((1, 4, 6, 6), "has 4 as dimension 1, which is 3"),
        ((1, 3, 7, 6), "has 7 as dimension 2, which is 6..40:2"),
        ((1, 3, 6, 42), "has 42 as dimension 3, which is 6..40:2"),
        ((3, 6, 6), "has 3 dimensions, and is 1..3x3x6..40:2x6..40:2"),
    ],
)
def test_shapes_outside_the_bounds(content, shape, text):
    with Model.from_bytes(content) as model, model.session() as session:
        before = session.run(open_golden.inputs(1, 6, 6))
        with pytest.raises(DataError, match=f"input 'image' {text}"):
            session.run({"image": np.zeros(shape, np.float32)})
        with pytest.raises(DataError, match=text):
            model.at({"image": shape})
        after = session.run(open_golden.inputs(1, 6, 6))
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_names_must_be_those_of_the_inputs(content):
    with (
        Model.from_bytes(content) as model,
        pytest.raises(DataError, match="the inputs are"),
    ):
        model.at({"picture": (1, 3, 6, 6)})


def test_a_shape_outlives_the_model_that_was_opened(content):
    inputs = open_golden.inputs(1, 8, 30)
    model = Model.from_bytes(content)
    at = model.at({"image": (1, 3, 8, 30)})
    session = at.session()
    wanted = session.run(inputs)
    del model, at
    again = session.run(inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(again[name], array)


def test_closing_the_model_closes_its_shapes(content):
    model = Model.from_bytes(content)
    at = model.at({"image": (1, 3, 8, 30)})
    session = at.session()
    model.close()
    with pytest.raises(ModelError, match="closed"):
        session.run(open_golden.inputs(1, 8, 30))
    with pytest.raises(ModelError, match="closed"):
        at.session()


def test_a_fixed_model_has_no_other_shapes():
    fixed = writer.dumps(open_golden.program(1, 6, 6))
    with Model.from_bytes(fixed) as model:
        assert not model.open_dimensions
        assert model.at({"image": (1, 3, 6, 6)}) is model
        with pytest.raises(DataError, match="has 8 as dimension 2, which is 6"):
            model.at({"image": (1, 3, 8, 6)})
