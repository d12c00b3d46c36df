# SPDX-License-Identifier: Apache-2.0
"""compile --cut: the largest part in int8, the rest in onnxruntime, all as a whole."""

import hashlib
import json
import sys

import numpy as np
import onnx
import pytest

import neon8
from command_lines import succeed
from cut_nets import NETS, foreign, front, run_by_hand, run_onnx, samples, weights
from neon8.cli.main import main
from neon8.errors import (
    CompileError,
    DataError,
    GraphError,
    ModelError,
    SettingsError,
    SetupError,
)
from neon8.graph.cut import cut
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.machines import EMULATIONS
from neon8.runtime.targets import open_model
from neon8.settings.stages import TargetSettings
from onnx_nets import chain, net, node, save
from processes import ran
from refusals import refused

F = np.float32
FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


class Made:
    """A network, its table and the files of its cut."""

    def __init__(self, folder, model):
        self.onnx = save(folder, model)
        self.graph = load(self.onnx)
        self.samples = samples(self.graph)
        self.table = neon8.calibrate_model(self.onnx, self.samples)
        self.n8 = folder / "net.n8"
        neon8.compile_model(self.onnx, self.table, cut=True, output=self.n8)
        self.json = folder / "net.cut.json"


@pytest.fixture(scope="module", params=NETS)
def made(request, tmp_path_factory):
    return Made(tmp_path_factory.mktemp(request.param), NETS[request.param]())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """With parts before and after."""
    return Made(tmp_path_factory.mktemp("whole"), front())


def test_it_is_the_network_within_int8(made):
    with neon8.CutModel.open(made.json) as model, model.session() as session:
        assert tuple(model.outputs) == made.graph.outputs
        for sample in made.samples:
            want, got = run_onnx(made.onnx, sample), session.run(sample)
            assert list(got) == list(want)
            for name, array in want.items():
                assert got[name].dtype == array.dtype
                loose = not made.graph.tensors[name].fixed
                if array.dtype == object:  # strings
                    assert got[name].tolist() == array.tolist()
                elif not loose:
                    assert got[name].shape == array.shape
                    worst = np.abs(got[name] - array).max()
                    assert worst <= 0.05 * np.abs(array).max()


def test_it_is_what_the_three_files_give_by_hand(made):
    with neon8.CutModel.open(made.json) as model, model.session() as session:
        for sample in made.samples[:4]:
            by_hand, got = run_by_hand(made.n8, sample), session.run(sample)
            for name, array in got.items():
                want = by_hand[name].astype(array.dtype)
                assert array.tobytes() == want.tobytes() or array.dtype == object


def test_the_parts_are_valid_and_the_same_every_time(made, tmp_path):
    neon8.compile_model(made.onnx, made.table, cut=True, output=tmp_path / "net.n8")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"net.n8", "net.cut.json"} < names
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (made.n8.parent / path.name).read_bytes()
        if path.suffix == ".onnx":
            onnx.checker.check_model(str(path))


def parts(folder):
    """Part -> the operators in it."""
    return {
        part: [n.op_type for n in onnx.load(folder / f"net.{part}.onnx").graph.node]
        for part in ("before", "after")
        if (folder / f"net.{part}.onnx").exists()
    }


MOVED = ["Mul", "Transpose"]
"""What is computed N C H W, of a tensor that the file has N H W C."""


def test_which_nodes_are_in_which_part(made):
    name = made.n8.parent.name.rstrip("0123456789")
    assert (
        parts(made.n8.parent)
        == {
            "front": {
                "before": ["QuickGelu", "QuickGelu"],
                "after": ["NonZero"],
            },
            "tail": {"after": ["Loop"]},
            "middle-first": {"after": ["QuickGelu", "Conv", "Conv"]},
            "middle-second": {"before": ["Conv", "Conv", "QuickGelu"]},
            "channels-last": {
                "before": ["Transpose", "Conv", "Transpose", "Add", "QuickGelu", *MOVED]
            },
            "tokens": {"before": ["Cast"], "after": ["NonZero"]},
            "constant": {"before": ["QuickGelu"]},
            "branch": {"after": ["If"]},
            "counted": {"after": ["Range", "Shape"]},
            "doubles": {"after": ["NonZero"]},
            "function": {"after": ["Twice"]},
        }[name]
    )


def test_only_functions_that_are_called_are_kept(tmp_path):
    made = Made(tmp_path, NETS["function"]())
    kept = onnx.load(made.n8.with_name("net.after.onnx")).functions
    assert [each.name for each in kept] == ["Inner", "Twice"]


def test_evaluate_judges_the_whole(whole, caplog):
    """But for what differs in size."""
    found = neon8.evaluate_model(
        whole.json, whole.samples, reference=whole.onnx, workers=2
    )
    assert [each.name for each in found.outputs] == ["s", "q"]
    assert "'places'" in caplog.text
    noise = signal = 0
    for sample in whole.samples:
        want = run_onnx(whole.onnx, sample)
        got = run_by_hand(whole.n8, sample)
        signal += np.square(want["s"], dtype=float).sum()
        noise += np.square(want["s"] - got["s"], dtype=float).sum()
    (s,) = (each for each in found.outputs if each.name == "s")
    assert s.sqnr_db == pytest.approx(10 * np.log10(signal / noise), abs=1e-3)


def test_nothing_can_be_compared(tmp_path):
    model = front()
    del model.graph.output[2], model.graph.output[0]
    made = Made(tmp_path, model)
    for more in ({}, {"reference": made.onnx}):
        with refused(DataError, made.json, "all outputs depend on the data"):
            neon8.evaluate_model(made.json, made.samples, **more)


def test_the_whole_network_checks_what_it_is_given(whole):
    with neon8.CutModel.open(whole.json) as model, model.session() as session:
        x = whole.samples[0]["x"]
        wide = session.run({"x": x.astype(np.float64)})
        assert wide["s"].tobytes() == session.run({"x": x})["s"].tobytes()
        for given, word in (
            ({}, "missing"),
            ({"x": x[:, :1]}, "shape"),
            ({"x": x.astype(int)}, "type"),
            ({"x": x, "z": x}, "no input 'z'"),
            (None, "dict"),
        ):
            with refused(DataError, whole.json, word):
                session.run(given)
    with refused(ModelError, "", "closed"):
        session.run({"x": x})


def test_multiply_accumulates_are_those_of_the_library(made):
    found = cut(open_onnx(made.onnx), made.graph)
    with neon8.Model.open(made.n8) as model:
        assert found.macs[1] == sum(step.macs for step in model.steps)


def test_factors_do_not_cross(tmp_path):
    """A tensor with factors (5c) has other values inside of the int8 network."""
    spread = np.geomspace(1, 100, 8, dtype=F).reshape(-1, 1, 1, 1)
    nodes = [
        node("Conv", "x w0", "c", "c1", pads=[1] * 4),
        node("Relu", "c", "a"),
        node("Conv", "a w1", "side", "c2"),
        node("Conv", "a w2", "b", "c3"),
        node("Sin", "b", "m", "between"),
        node("Conv", "m w3", "y", "c4", pads=[1] * 4),
    ]
    constants = weights((8, 3, 3, 3), (2, 8, 1, 1), (4, 8, 1, 1), (64, 4, 3, 3))
    constants["w0"] *= spread
    for name in ("w1", "w2"):
        constants[name] /= spread.reshape(1, -1, 1, 1)
    model = net(nodes, {"x": (1, 3, 8, 8)}, "y side", constants)
    path = save(tmp_path, foreign(model, {"m": (1, 4, 8, 8)}))
    data = samples(load(path))
    for plain, before in ((False, 4), (True, 3)):
        table = neon8.calibrate_model(path, data, plain=plain)
        assert bool(table.tensors["a"].factors) is not plain
        n8 = tmp_path / "net.n8"
        neon8.compile_model(path, table, cut=True, output=n8)
        made = onnx.load(tmp_path / "net.before.onnx").graph.node
        assert sum(each.op_type == "Conv" for each in made) == before - 1
        by_hand, want = run_by_hand(n8, data[0]), run_onnx(path, data[0])
        for name in () if plain else ("y", "side"):
            worst = np.abs(by_hand[name] - want[name]).max()
            assert worst <= 0.05 * np.abs(want[name]).max()


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE])
def test_what_nothing_tells_the_user_tells(tmp_path, kind):
    """That may be an output, too; its type is the file's where that says it."""
    nodes = [
        node("Sin", "x", "p", "pre"),
        node("MatMul", "p w0", "a", "dense"),
        node("Relu", "a", "y"),
    ]
    constants = weights((12, 5))
    if kind == DOUBLE:
        constants = {"w0": constants["w0"].astype(float)}
    kinds = dict.fromkeys(("x", "y", "p"), kind)
    model = net(nodes, {"x": (1, 12)}, "y p", constants, types=kinds)
    branch = onnx.helper.make_graph(
        [node("Neg", "x", "t")], "b", [], [onnx.ValueInfoProto(name="t")]
    )
    branch.output[0].type.tensor_type.elem_type = kind
    first = model.graph.node[0]
    first.op_type, first.input[0] = "If", "flag"
    first.attribute.append(onnx.helper.make_attribute("then_branch", branch))
    first.attribute.append(onnx.helper.make_attribute("else_branch", branch))
    model.graph.node.insert(0, node("Cast", "sum", "flag", to=9))
    model.graph.node.insert(0, node("ReduceMax", "x", "sum", keepdims=0))
    del model.graph.value_info[:]
    path = save(tmp_path, model)
    data = samples(load(path))
    with pytest.raises(CompileError, match=r"shape of tensor .p. .* by --shape"):
        neon8.compile_model(path, neon8.calibrate_model(path, data))
    shapes = {"p": (1, 12)}
    with refused(GraphError, path, "has no input 'a'"):
        load(path, shapes={"a": (1, 5)})
    table, n8 = neon8.calibrate_model(path, data, shapes=shapes), tmp_path / "net.n8"
    neon8.compile_model(path, table, shapes=shapes, cut=True, output=n8)
    with neon8.Model.open(n8) as part:
        assert part.inputs["p"].shape == (1, 12)
    with neon8.CutModel.open(tmp_path / "net.cut.json") as whole:
        for sample in data[:4]:
            got, want = whole.session().run(sample), run_onnx(path, sample)
            for name, array in want.items():
                assert got[name].dtype == array.dtype
                worst = np.abs(got[name] - array).max()
                assert worst <= 0.05 * np.abs(array).max()


def test_layers_kept_in_float_may_be_in_any_part(tmp_path):
    """Outside of the .n8 file all are."""
    made = Made(tmp_path, NETS["middle-first"]())
    n8 = tmp_path / "kept.n8"

    def kept(*names):
        neon8.compile_model(
            made.onnx, made.table, cut=True, output=n8, keep_float=names
        )
        with neon8.Model.open(n8) as model:
            return {step.name for step in model.steps if step.operation == "conv2d"}

    assert kept("c3", "between") == {"c1", "c2"}
    assert kept("c1", "c4") == {"c2"}
    with refused(CompileError, made.onnx, "'c5'"):
        kept("c5")


def test_nothing_to_cut(tmp_path):
    path = save(tmp_path, chain([("Conv", [(4, 3, 3, 3)], {})], (1, 3, 6, 6)))
    table = neon8.calibrate_model(path, [np.ones((3, 6, 6), F)])
    n8 = tmp_path / "net.n8"
    data = neon8.compile_model(path, table, cut=True, output=n8)
    assert data == n8.read_bytes() == neon8.compile_model(path, table)
    assert {each.name for each in tmp_path.iterdir()} == {"net.onnx", "net.n8"}


def test_nothing_is_left(tmp_path):
    path = save(tmp_path, net([node("NonZero", "x", "y", "n")], {"x": (1, 4)}, "y",
                              types={"y": 7}))  # fmt: skip
    table = neon8.calibrate_model(path, [np.ones(4, F)])
    with pytest.raises(CompileError) as caught:
        neon8.compile_model(path, table, cut=True, output=tmp_path / "net.n8")
    assert "no part of the network is left to compile" in caught.value.text
    assert [line.split()[1] for line in caught.value.details] == ["'n'"]
    assert "calibrate and convert work" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["net.onnx"]


@pytest.mark.parametrize(
    ("keywords", "start", "word"),
    [
        ({"io": "int8"}, "cut", "io"),
        ({"layout": "nhwc"}, "cut", "layout"),
        ({}, "cut", "output"),
        ({"output": "/dev/stdout"}, "--cut", "-o"),
    ],
)
def test_settings_that_contradict(whole, keywords, start, word):
    with refused(SettingsError, start, word):
        neon8.compile_model(whole.onnx, whole.table, cut=True, **keywords)


def test_a_graph_has_no_file(whole, tmp_path):
    with refused(CompileError, whole.graph.name, "a Graph cannot be cut"):
        neon8.compile_model(
            whole.graph, whole.table, cut=True, output=tmp_path / "n.n8"
        )


@pytest.mark.parametrize("name", ["net.cut.json", "net.json", "net.onnx"])
def test_the_other_files_are_named_after_the_n8_file(whole, tmp_path, name):
    path = tmp_path / name
    with refused(SettingsError, path, f"give {tmp_path / 'net.n8'}"):
        neon8.compile_model(whole.onnx, whole.table, cut=True, output=path)
    assert not list(tmp_path.iterdir())


def test_outputs_without_a_shape(tmp_path):
    """Inference gives it, where the data does not."""
    model = front()
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    made = Made(tmp_path, model)
    with neon8.CutModel.open(made.json) as opened, opened.session() as session:
        assert [each.shape for each in opened.outputs.values()] == [
            (1, 4, 8, 8),
            (),
            (1, 3, 8, 8),
        ]
        by_hand = run_by_hand(made.n8, made.samples[0])
        got = session.run(made.samples[0])
    assert all(got[n].tobytes() == by_hand[n].tobytes() for n in got)


def outward():
    """A network that neon8 runs whole but for an output that is an input."""
    model = chain([("Conv", [(4, 3, 3, 3)], {})], (1, 3, 6, 6))
    model.graph.output.append(model.graph.input[0])
    return model


@pytest.mark.parametrize("make", [outward, front])
def test_an_output_that_is_an_input_comes_back_as_it_went(tmp_path, make):
    model = make()
    if make is front:
        model.graph.output.append(model.graph.input[0])
    made = Made(tmp_path, model)
    with pytest.raises(CompileError, match="--cut"):
        neon8.compile_model(made.onnx, made.table)
    sample = made.samples[0]
    with neon8.CutModel.open(made.json) as opened, opened.session() as session:
        assert tuple(opened.outputs) == made.graph.outputs
        got = session.run(sample)
    assert got["x"].tobytes() == sample["x"].tobytes()
    with open_model(made.json) as runner:
        assert runner.run(sample)["x"].tobytes() == sample["x"].tobytes()
    found = neon8.evaluate_model(made.json, made.samples, reference=made.onnx)
    assert [each.name for each in found.outputs if each.sqnr_db == np.inf] == (
        ["q", "x"] if make is front else ["x"]
    )


def test_all_files_or_none(whole, tmp_path):
    (tmp_path / "net.after.onnx").mkdir()
    with refused(SetupError, tmp_path / "net.after.onnx", "no regular file"):
        neon8.compile_model(
            whole.onnx, whole.table, cut=True, output=tmp_path / "net.n8"
        )
    assert [each.name for each in tmp_path.iterdir()] == ["net.after.onnx"]


@pytest.mark.parametrize("target", EMULATIONS)
def test_the_part_inside_runs_on_emulated_arm(whole, target):
    x = whole.samples[0]
    with neon8.CutModel.open(whole.json) as model, model.session() as session:
        want = session.run(x)
    with open_model(whole.json, TargetSettings(target=target)) as runner:
        got = runner.run(x)
    assert {n: a.tobytes() for n, a in got.items()} == {
        n: a.tobytes() for n, a in want.items()
    }


def test_only_numbers_are_evaluated(tmp_path):
    made = Made(tmp_path, NETS["tokens"]())
    with open_model(made.json) as runner:
        assert list(runner.run(made.samples[0])) == ["y", "places"]


def test_it_runs_without_onnx(whole):
    """As on a board, where onnxruntime may be, and onnx is not."""
    code = f"""
import sys
sys.modules["onnx"] = None
import numpy as np, neon8
with neon8.CutModel.open({str(whole.json)!r}) as model, model.session() as session:
    print(*session.run({{"x": np.zeros((1, 3, 8, 8), np.float32)}}))
"""
    done = ran(sys.executable, "-c", code, check=True)
    assert done.stdout.split() == ["s", "places", "q"]


def test_the_command_line(whole, tmp_path, capsys):
    table, x = tmp_path / "t.json", tmp_path / "x.npy"
    neon8.save_table(whole.table, table)
    np.save(x, np.stack([each["x"][0] for each in whole.samples]))
    n8, path = tmp_path / "net.n8", tmp_path / "net.cut.json"
    words = ["compile", whole.onnx, "--scales", table, "-o", n8, "--cut"]
    said = succeed(capsys, *words)
    for name in ("net.before.onnx", "net.n8", "net.after.onnx", "net.cut.json"):
        assert str(tmp_path / name) in said
        same = whole.n8.with_name(name).read_bytes()
        assert (tmp_path / name).read_bytes() == same
    assert "places" in succeed(capsys, "run", path, "--input", x)
    assert "dB" in succeed(
        capsys, "evaluate", path, "--data", x, "--reference", whole.onnx, warned=True
    )
    said = succeed(capsys, "inspect", path)
    assert "net.before.onnx" in said
    assert "places  int64" in said
    assert main(["run", str(path), "--input", str(x), "-o", str(tmp_path / "y.npz")])
    assert "differ from run to run" in capsys.readouterr().err
    one = tmp_path / "one.npy"
    np.save(one, whole.samples[0]["x"])
    succeed(capsys, "run", path, "--input", one, "-o", tmp_path / "y.npz")
    assert set(np.load(tmp_path / "y.npz").files) == {"s", "places", "q"}


def test_nothing_to_cut_is_said(tmp_path, capsys, tiny):
    words = ["compile", tiny.onnx, "--scales", tiny.table, "--cut"]
    said = succeed(capsys, *words, "-o", tmp_path / "net.n8")
    assert "nothing to cut" in said
    assert (tmp_path / "net.n8").read_bytes() == tiny.n8.read_bytes()


def test_inspect_shows_the_cut_beforehand(made):
    found = cut(open_onnx(made.onnx), made.graph)
    said = json.loads(neon8.inspect_file(made.onnx, json=True))
    parts = {row["part"]: row for row in said["cut"]}
    assert parts["inside"]["runs in"] == "neon8"
    assert parts["inside"]["MACs"] == found.macs[1]
    nodes = [row["name"] for row in said["nodes"] if row["part"] == "inside"]
    assert nodes == [each.name for each in found.inside.nodes]
    crossing = {row["name"]: (row["from"], row["to"]) for row in said["crossing"]}
    assert crossing == found.crossing


def test_onnxruntime_is_missing(whole, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "neon8.onnx_session", raising=False)
    with refused(SetupError, whole.json, "pip install onnxruntime", "net.n8"):
        neon8.CutModel.open(whole.json)


def copied(made, folder):
    """The files of a cut network in another folder; its description."""
    for path in made.n8.parent.glob("net.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder / "net.cut.json"


@pytest.mark.parametrize("name", ["net.n8", "net.before.onnx", "net.after.onnx"])
def test_a_part_of_another_network(whole, tmp_path, name):
    path = copied(whole, tmp_path)
    part = tmp_path / name
    part.write_bytes(part.read_bytes() + b"\0")
    with refused(ModelError, part, "is not the file", "--cut again"):
        neon8.CutModel.open(path)
    part.unlink()
    with refused(ModelError, part, "No such file", str(path)):
        neon8.CutModel.open(path)


def rewritten(path, part, data):
    """Another file as a part, which the description knows."""
    value = json.loads(path.read_text())
    value[part]["sha256"] = hashlib.sha256(data).hexdigest()
    path.with_name(value[part]["file"]).write_bytes(data)
    path.write_text(json.dumps(value))


def test_parts_that_do_not_fit(whole, tmp_path):
    path = copied(whole, tmp_path)
    after = tmp_path / "net.after.onnx"
    rewritten(path, "before", b"nonsense")
    with refused(ModelError, tmp_path / "net.before.onnx", "onnxruntime refuses it"):
        neon8.CutModel.open(path)
    rewritten(path, "before", after.read_bytes())
    with refused(ModelError, path, "before takes 'g'", "no part makes"):
        neon8.CutModel.open(path)
    model = onnx.load(whole.n8.with_name("net.before.onnx"))
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 9
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    rewritten(path, "before", model.SerializeToString())
    with (
        neon8.CutModel.open(path) as opened,
        opened.session() as session,
        refused(DataError, tmp_path / "net.before.onnx", "onnxruntime"),
    ):
        session.run(whole.samples[0])
    rewritten(path, "inside", b"\x89N8")
    with refused(ModelError, tmp_path / "net.n8"):
        neon8.CutModel.open(path)


def changed(**entries):
    return lambda value: value | entries


def without(key):
    return lambda value: {name: v for name, v in value.items() if name != key}


def end(**entries):
    """With another first input."""
    return lambda value: value | {"inputs": [value["inputs"][0] | entries]}


def part(**entries):
    return lambda value: value | {"inside": value["inside"] | entries}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda _: [], "no description"),
        (lambda _: {}, "no description"),
        (changed(format="neon8"), "no description"),
        (changed(version=2), "version"),
        (changed(version=True), "version"),
        (changed(more=1), "'more', which is unknown"),
        (without("inside"), "lacks 'inside'"),
        (without("outputs"), "lacks 'outputs'"),
        (changed(compiled_from="0"), "'compiled_from' is no SHA-256"),
        (changed(compiled_from=5), "'compiled_from'"),
        (changed(inputs={}), "'inputs' is not a list"),
        (changed(outputs=[]), "'outputs' is not a list"),
        (changed(inputs=[3]), "expected an object"),
        (end(name=""), "not empty"),
        (end(type=None), "an input has a type and a shape"),
        (end(shape=None), "an input has a type and a shape"),
        (end(type="string"), "'type'"),
        (end(type=[]), "'type'"),
        (end(shape=[-1]), "-1 is not a whole number"),
        (end(shape=[2**31]), "is not a whole number"),
        (end(shape=[1.0]), "is not a whole number"),
        (end(shape="1"), "'shape'"),
        (end(shape=[1] * 9), "'shape'"),
        (lambda v: v | {"inputs": v["inputs"] * 2}, "is there twice"),
        (part(file="../net.n8"), "beside the description"),
        (part(file="/etc/passwd"), "beside the description"),
        (part(file=".."), "beside the description"),
        (part(file="a\0b"), "beside the description"),
        (part(file=""), "not empty"),
        (part(sha256="A" * 64), "no SHA-256"),
        (part(more=1), "unknown"),
        (changed(inside="net.n8"), "expected an object"),
        (lambda v: without("before")(without("after")(v)), "before or after"),
        (lambda v: v | {"outputs": [{"name": "z", "type": None, "shape": None}]},
         "the network gives 'z', which no part makes"),
    ],
)  # fmt: skip
def test_hostile_descriptions(whole, tmp_path, change, word):
    path = copied(whole, tmp_path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with refused(ModelError, path, word):
        neon8.CutModel.open(path)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (None, "No such file"),
        (b"", "JSON"),
        (b"\xff", "UTF-8"),
        (b"[" * 10**5, "nested"),
        (b'{"format": 1, "format": 2}', "twice"),
        (b" " * (2**22 + 1), "larger than"),
    ],
)
def test_descriptions_that_are_none(tmp_path, data, word):
    path = tmp_path / "net.cut.json"
    if data is not None:
        path.write_bytes(data)
    with refused(ModelError, path, word):
        neon8.CutModel.open(path)


def test_a_model_is_no_description(whole):
    with refused(ModelError, whole.json, "open it with CutModel"):
        neon8.Model.open(whole.json)
