# SPDX-License-Identifier: Apache-2.0
"""neon8 against onnxruntime: the race, who is in it, and the page."""

from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import onnx
import pytest

from bench import pages
from bench.host import page as host_page
from bench.host import report as bench_host
from bench.host import subjects
from bench.host.contestants import Contestant, contestants, levels
from bench.host.page import Figure
from bench.host.race import Rules, race
from bench.networks import catalogue
from neon8.version import __version__

ROOT = Path(__file__).resolve().parents[3]
ORT1, ORT2 = Contestant("", 1), Contestant("", 2)
C, BEST1, BEST2 = Contestant("c", 1), Contestant("best", 1), Contestant("best", 2)


class Machine:
    """A clock that only runs move.  costs: of each run, over and over."""

    def __init__(self, **costs):
        self.now, self.order = 0.0, []
        self.costs = {name: cycle(each) for name, each in costs.items()}
        self.runs = {name: partial(self.run, name) for name in costs}

    def run(self, name):
        self.now += next(self.costs[name])
        self.order.append(name)


def run_race(machine, **rules):
    return race(
        machine.runs, Rules(**rules), clock=lambda: machine.now, sleep=lambda _: None
    )


def test_everybody_has_a_turn_in_each_round():
    machine = Machine(a=[0.25], b=[2.0])
    found = run_race(machine, rounds=2, seconds=1.0)
    # The first run of a turn does not count; who takes longer than a turn runs once.
    assert machine.order == (["a"] * 5 + ["b"] * 2) * 2
    assert found == {"a": 4.0, "b": 0.5}


def test_the_best_turn_counts():
    slow, fast = [1.0] * 3, [0.5] * 3
    machine = Machine(a=[*slow, *fast, *slow])
    assert run_race(machine, rounds=3, seconds=1.0) == {"a": 2.0}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A small SqueezeNet in the place of the real one."""
    build = catalogue.build
    monkeypatch.setattr(catalogue, "build", lambda name: build(name, small=True))
    return subjects.subjects(["squeezenet1_1"], tmp_path)["squeezenet1_1"]()


def test_both_run_the_same_network(small):
    known = levels(small.compiled)
    assert known[0] == "c"
    found = []
    with contestants(small.onnx, small.compiled, small.image) as runs:
        assert list(runs)[:2] == [ORT1, ORT2]
        assert [one.level for one in runs][2:] == [*known, known[-1]]
        assert [one.threads for one in runs][2:] == [1] * len(known) + [2]
        for one, run in runs.items():
            found.append(run()["y"] if one.level else run()[0])
    for y in found[3:]:
        assert y.tobytes() == found[2].tobytes()
    assert np.corrcoef(found[0].reshape(-1), found[2].reshape(-1))[0, 1] > 0.95


def test_a_network_is_measured(small):
    figure = bench_host.measure(small, Rules(rounds=1, seconds=0, pause=0))
    assert figure.level == levels(small.compiled)[-1]
    assert all(rate > 0 for rate in figure.rates.values())
    proto = onnx.load(small.onnx)
    assert figure.title == "SqueezeNet 1.1"
    assert figure.macs == catalogue_macs(proto)


def catalogue_macs(proto):
    """Of all convolutions, from shapes that onnx infers."""
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in onnx.shape_inference.infer_shapes(proto).graph.value_info
    }
    weights = {one.name: one.dims for one in proto.graph.initializer}
    return sum(
        int(np.prod(shapes[node.output[0]]) * np.prod(weights[node.input[1]][1:]))
        for node in proto.graph.node
        if node.op_type == "Conv"
    )


def test_a_trained_one_may_be_given(tmp_path):
    _, proto = catalogue.build("squeezenet1_1", small=True)
    onnx.save(proto, tmp_path / "mine.onnx")
    made = subjects.subjects(
        ["squeezenet1_1"], tmp_path, squeezenet=tmp_path / "mine.onnx"
    )
    subject = made["squeezenet1_1"]()
    assert subject.title == "SqueezeNet 1.1, trained"
    assert subject.onnx == tmp_path / "mine.onnx"


FIGURES = [
    Figure(
        title=title,
        macs=349_151_936,
        level="best",
        rates={ORT1: 100.0, ORT2: 190.0, C: 12.34, BEST1: 99.99, BEST2: two},
    )
    for title, two in (("A", 94.9), ("B", 190.0))
]
TEXT = """\
facts

Images a second, one thread:

| network | MMACs | onnxruntime, FP32 | neon8, int8 | ratio |
| :-- | --: | --: | --: | --: |
| A | 349 | 100.0 | 100.0 | 0.99 ! |
| B | 349 | 100.0 | 100.0 | 0.99 ! |

Images a second, 2 threads:

| network | MMACs | onnxruntime, FP32 | neon8, int8 | ratio |
| :-- | --: | --: | --: | --: |
| A | 349 | 190.0 | 94.9 | 0.49 !! |
| B | 349 | 190.0 | 190.0 | 1.00 |

Images a second of each level, one thread:

| network | `c` | `best` |
| :-- | --: | --: |
| A | 12.3 | 100.0 |
| B | 12.3 | 100.0 |"""


def test_tables():
    assert host_page.text(FIGURES, "facts") == TEXT
    assert bench_host.facts(FIGURES).startswith(f"neon8 {__version__}, level `best`; ")


def test_processor(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n")
    assert host_page.processor(file) == "Some CPU @ 2 GHz"
    file.write_text("processor\t: 0\nFeatures\t: asimd\n")
    for path in (file, tmp_path / "none"):
        assert host_page.processor(path)


def test_the_page_has_every_network():
    written = pages.read(ROOT / "docs" / "performance.md", bench_host.COMMAND)
    for title in subjects.NETWORKS.values():
        assert written.count(f"| {title} |") == 3


def test_names_come_in_the_order_of_the_table():
    names = bench_host.names
    assert names("resnet50,mobilenet_v2") == ["mobilenet_v2", "resnet50"]
    with pytest.raises(Exception, match="'vgg' is not one of squeezenet1_1, mobile"):
        names("vgg")
