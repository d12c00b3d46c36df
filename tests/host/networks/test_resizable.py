# SPDX-License-Identifier: Apache-2.0
"""Published architectures with open dimensions: the bytes of one compiled for a shape.

tests/e2e/test_open_shapes.py and tests/host/compile/test_open_shapes.py have small
networks at random shapes.
"""

from dataclasses import replace
from functools import cache

import onnx
import pytest

import neon8
from bench.networks import resizable
from levels import levels
from neon8.runtime import Model
from neon8.runtime.emulate import EmulatedModel
from neon8.settings.shapes import shape
from random_program import differing_bytes

MOST_ARENA = 1.05
"""By the largest set of tensors that are alive at once."""
CALIBRATION = 2

ARM = [
    ("aarch64", "cortex-a53", "neon"),
    ("aarch64", "max", "dotprod"),
    ("aarch64", "max", "i8mm"),
    ("armv7", "cortex-a9", "neon"),
]
EMULATED = {
    "ppocr_recogniser": ARM,
    "yolov8n": ARM[2:],
    "unet_bilinear": ARM[1:2],
    "keyword_spotter": ARM[3:],
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """By name: a function that compiles at shapes, and the open file; made once."""
    folder = tmp_path_factory.mktemp("resizable")

    @cache
    def get(name):
        case = resizable.case(name, small=True)
        path = folder / f"{name}.onnx"
        proto = resizable.build(name, small=True)
        onnx.checker.check_model(proto, full_check=True)
        onnx.save(proto, path)
        usual = {proto.graph.input[0].name: case.shapes[0]}
        data = resizable.inputs(name, case.shapes[0], seed=5, count=CALIBRATION)
        table = neon8.calibrate_model(path, data, shapes=usual, method="minmax")
        keep = resizable.NETWORKS[name].keep

        def compiled_at(dims):
            return neon8.compile_model(
                path, table, shapes=dict.fromkeys(usual, dims), keep_float=keep
            )

        _, bounds = shape(f"x={case.bounds}")
        file = path.with_suffix(".n8")
        neon8.save_model(compiled_at(bounds), file)
        return compiled_at, file

    return get


@pytest.mark.parametrize("name", resizable.NETWORKS)
def test_bytes_and_memory_are_those_of_the_fixed_file(name, compiled):
    compiled_at, file = compiled(name)
    opened = [Model.open(file, isa=isa) for isa in levels()]
    sessions = [model.session() for model in opened]
    for dims in resizable.case(name, small=True).shapes:
        (sample,) = resizable.inputs(name, dims, seed=9)
        with Model.from_bytes(compiled_at(dims), isa=levels()[-1]) as alone:
            wanted = alone.session().run(sample)
            for session in sessions:
                assert differing_bytes(session.run(sample), wanted) == {}
            with opened[-1].at(dict.fromkeys(sample, dims)) as at:
                memory = replace(at.memory, tables=alone.memory.tables)
                same_steps = len(at.steps) == len(alone.steps)
                assert memory == alone.memory or not same_steps
                assert memory.arena <= MOST_ARENA * memory.arena_least
    for model in opened:
        model.close()


@pytest.mark.parametrize(
    ("name", "core"), [(name, core) for name in EMULATED for core in EMULATED[name]]
)
def test_the_same_bytes_on_arm(name, core, compiled):
    _, file = compiled(name)
    machine, cpu, isa = core
    with (
        Model.open(file) as model,
        model.session() as session,
        EmulatedModel(file, machine, cpu, isa) as emulated,
    ):
        for dims in resizable.case(name, small=True).shapes[:3]:
            (sample,) = resizable.inputs(name, dims, seed=9)
            here = session.run(sample)
            assert differing_bytes(emulated.run(sample), here) == {}
