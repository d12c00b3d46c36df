# SPDX-License-Identifier: Apache-2.0
"""Published architectures, small, run whole: from ONNX to the same bytes everywhere."""

from functools import cache

import numpy as np
import onnx
import pytest

import neon8
from bench.networks import catalogue, samples
from bench.networks.catalogue import NETWORKS
from bench.networks.measure import islands, products, sqnr
from neon8.calibrate.run.reference import Reference
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.graph.importer import load
from neon8.profile.profile import PROCESSORS, profile_model
from neon8.runtime import Model
from neon8.runtime.emulate import EmulatedModel
from random_program import differing_bytes

CALIBRATION = 8
LEAST_SQNR = 8.0
"""dB. Wrong arithmetic gives 0 and less; the deepest of these networks with the fewest
channels have 11."""
MOST_ARENA = 1.05
"""By the largest set of tensors that are alive at once."""
UNLIKE = ("yolov8n_nms", "rtdetr_r18")
"""Networks that choose: other boxes than FP32's, or in another order, are noise."""
FLOAT = {"silero_vad": ["lstm (its operator has no int8 form)"]}
"""Islands that are known."""
SAMPLED = ("rtdetr_r18",)
"""Networks with many, as they look between pixels, which has no int8 form."""
REPEATED = (
    *("resnet18", "resnet50", "resnet101", "resnet152", "vgg19", "squeezenet1_1"),
    *("googlenet", "inception_v3", "densenet121", "unet_bilinear"),
    *("mobilenet_v1", "mobilenet_v2", "mobilenet_v3_large", "mobilefacenet"),
    *("yolov5n", "yolo_shuffle", "yolov8n", "yolo11n"),
    *("deit_tiny", "efficientformer_l1"),
)
"""Their kinds of steps are those of others, of this file or of test_resizable.py;
docs/networks.md has every network."""
NAMES = [name for name in NETWORKS if name not in REPEATED]
EMULATED = ("mobilenet_v3_small", "segformer_b0", "yolov8n_nms", "rtdetr_r18")
"""What has the most kinds of steps, with those of test_resizable.py."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """By name: the ONNX file, its table, the .n8 file and samples, made once."""
    folder = tmp_path_factory.mktemp("networks")

    @cache
    def get(name):
        net, proto = catalogue.build(name, small=True)
        onnx.checker.check_model(proto, full_check=True)
        path = folder / f"{name}.onnx"
        onnx.save(proto, path)
        data = samples.inputs(net, CALIBRATION + 2, seed=5)
        table = neon8.calibrate_model(path, data[:CALIBRATION], method="minmax")
        file = path.with_suffix(".n8")
        neon8.save_model(neon8.compile_model(path, table), file)
        return path, table, file, data[CALIBRATION:]

    return get


def int32(sample):
    """A sample with integers as the runtime has them."""
    return {
        name: array.astype(np.int32) if array.dtype == np.int64 else array
        for name, array in sample.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_runs_whole(name, compiled):
    """The oracle's bytes, int8 between the convolutions, a tight arena."""
    path, table, file, data = compiled(name)
    program = lower(load(path), table)
    with Model.open(file) as model, model.session(threads=2) as session:
        found = [session.run(sample) for sample in data]
        memory = model.memory
    assert differing_bytes(found[0], oracle.run(program, int32(data[0]))) == {}
    decibels = sqnr(found, map(Reference(path).run, data))
    assert name in UNLIKE or decibels > LEAST_SQNR
    found = islands(program, products(path))
    assert name in SAMPLED or found == FLOAT.get(name, [])
    assert memory.arena <= MOST_ARENA * memory.arena_least


@pytest.mark.parametrize("name", NAMES)
def test_every_step_has_a_cost_on_every_core(name, compiled):
    """Those of most kinds on each, others in turn."""
    _, _, file, _ = compiled(name)
    turn = NAMES.index(name) % len(PROCESSORS)
    for core in PROCESSORS if name in EMULATED else [*PROCESSORS][turn : turn + 1]:
        profile = profile_model(file, core=core)
        assert profile.missing == ()
        assert all(layer.cycles >= 0 for layer in profile.layers)
        for layer in profile.layers:
            if "igemm" in layer.kernel and "winograd" not in layer.kernel:
                assert layer.macs <= 1.02 * PROCESSORS[core].limit * layer.cycles


@pytest.mark.parametrize("core", [("aarch64", "cortex-a53"), ("armv7", "cortex-a9")])
@pytest.mark.parametrize("name", EMULATED)
def test_the_same_bytes_on_arm(name, core, compiled):
    _, _, file, data = compiled(name)
    with Model.open(file) as model, model.session() as session:
        here = session.run(data[0])
    with EmulatedModel(file, *core) as emulated:
        assert differing_bytes(emulated.run(data[0]), here) == {}
