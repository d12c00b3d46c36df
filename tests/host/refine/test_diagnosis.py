# SPDX-License-Identifier: Apache-2.0
"""neon8 diagnose: what is found in whole networks, and what is tried against it."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

import table_nets
from neon8 import calibrate_model, compile_model
from neon8.calibrate.run.reference import Reference
from neon8.errors import CompileError, DataError
from neon8.evaluate.measure import Bench, Figures, before_softmax
from neon8.evaluate.network import open_network
from neon8.graph.importer import load
from neon8.inspection.diagnosis import summary
from neon8.quant.grid import Grid, ends, on_grid
from neon8.refine import remedies
from neon8.refine.diagnosis import diagnose_model
from neon8.refine.inner import pair
from neon8.runtime import Model
from onnx_nets import net, node, save
from quantized_nets import Net

F = np.float32


@pytest.fixture(scope="module", params=["mixed", "residual", "moving"])
def case(request, tmp_path_factory):
    """A network with many operators, its table and data."""
    folder = tmp_path_factory.mktemp(request.param)
    path = save(folder, getattr(table_nets, request.param)())
    shape = load(path).tensors["x"].dims[1:]
    data = np.random.default_rng(1).normal(0, 1, (6, *shape)).astype(F)
    return path, calibrate_model(path, data), data


def test_the_whole_loss_is_that_of_the_library(case):
    path, table, data = case
    graph = before_softmax(load(path))
    reference = Reference(path, graph.outputs)
    signal, noise, same = (np.zeros(len(graph.outputs)) for _ in range(3))
    file = compile_model(graph, table)
    with Model.from_bytes(file) as model, model.session() as session:
        for image in data:
            inputs = {"x": image[np.newaxis]}
            exact, got = reference.run(inputs), session.run(inputs)
            for at, name in enumerate(graph.outputs):
                want = exact[name].astype(np.float64)
                error = got[name] - want
                same[at] += want.argmax() == got[name].argmax()
                if want.size == max(want.shape):
                    want, error = want - want.mean(), error - error.mean()
                signal[at] += (want**2).sum()
                noise[at] += (error**2).sum()
    found = diagnose_model(path, table, data, top=0)
    assert found.n == len(data)
    wanted = -10 * np.log10((noise / signal).mean())
    assert found.sqnr_db == pytest.approx(wanted, rel=1e-9)
    assert found.agreement == 100 * same[0] / len(data)


def test_every_tensor_is_compared_or_inside_of_a_step(case):
    path, table, data = case
    found = diagnose_model(path, table, data, top=0)
    graph = before_softmax(load(path))
    tensors, names = graph.tensors, {each.name for each in found.tensors}
    assert names | set(found.inside) == {
        *graph.inputs,
        *(n for node in graph.nodes for n in node.outputs if tensors[n].observed),
    }
    assert not names & set(found.inside)
    for each in found.tensors:
        assert each.sqnr_db > 15
        assert each.low < each.high


def test_what_a_residual_sum_takes_in_is_inside(tmp_path):
    path = save(tmp_path, table_nets.residual())
    data = np.random.default_rng(1).normal(0, 1, (2, 3, 16, 16)).astype(F)
    found = diagnose_model(path, calibrate_model(path, data), data, top=0)
    assert found.inside == ("c2", "c5")


def pair_of_layers(folder, small=1.0):
    """x -> conv -> relu -> depthwise -> y.  small: of channel 2 between them."""
    rng = np.random.default_rng(5)
    first = rng.normal(0, 0.3, (6, 3, 3, 3)).astype(F)
    second = rng.normal(0, 1, (6, 1, 3, 3)).astype(F)
    first[2] *= F(small)
    second[2] /= F(small)
    nodes = [
        node("Conv", "x w1", "s", "c", pads=[1] * 4),
        node("Relu", "s", "t", "r"),
        node("Conv", "t w2", "y", "dw", pads=[1] * 4, group=6),
    ]
    weights = {"w1": first, "w2": second}
    return save(folder, net(nodes, {"x": (1, 3, 8, 8)}, "y", weights))


def images(count=6):
    return np.random.default_rng(2).normal(0, 1, (count, 3, 8, 8)).astype(F)


def test_a_channel_that_is_small_beside_others_is_named(tmp_path):
    path = pair_of_layers(tmp_path, small=2.0**-9)
    table = calibrate_model(path, images(), plain=True)
    found = diagnose_model(path, table, images(), top=0)
    tensor = next(each for each in found.tensors if each.name == "t")
    worst = tensor.channels[0]
    assert worst.channel == 2
    assert worst.high < 2.0**-6 * tensor.high
    assert worst.sqnr_db < tensor.sqnr_db - 20
    assert found.by_cost()[0].name == "t"


def test_factors_are_in_what_is_told(tmp_path):
    """A network with factors is that which has them in its weights."""
    folder = tmp_path / "plain"
    folder.mkdir()
    plain = pair_of_layers(folder)
    table = calibrate_model(plain, images(), plain=True)
    wanted = diagnose_model(plain, table, images(), top=0)
    path = pair_of_layers(tmp_path, small=2.0**-9)
    factors = tuple(2.0**-9 if c == 2 else 1.0 for c in range(6))
    entry = replace(table.tensors["t"], factors=factors)
    table = replace(
        table, model_digest=load(path).digest, tensors={**table.tensors, "t": entry}
    )
    found = diagnose_model(path, table, images(), top=0)
    assert found.sqnr_db == pytest.approx(wanted.sqnr_db)
    for mine, other in zip(found.layers, wanted.layers, strict=True):
        assert mine.rounding.share == pytest.approx(other.rounding.share, rel=0.1)
        assert mine.sqnr_db == pytest.approx(other.sqnr_db, abs=1.5)
    for mine, other in zip(found.tensors, wanted.tensors, strict=True):
        for one, two in zip(mine.channels, other.channels, strict=True):
            assert one.channel == two.channel
            assert one.sqnr_db == pytest.approx(two.sqnr_db)
            shrunk = mine.name == "t" and one.channel == 2
            assert one.high == two.high * (2.0**-9 if shrunk else 1)


def spoiled(table, what):
    """The table with one thing wrong, and how that is called."""
    name, kind, factor = what
    if kind == "range":
        entry = table.tensors[name]
        low, high = (factor * end for end in ends(entry))
        scale, zero_point = Grid(entry.scheme).cover(low, high)
        entry = on_grid(entry, scale, zero_point, bits=entry.bits)
        return replace(table, tensors={**table.tensors, name: entry})
    layer = table.layers[name]
    if kind == "scales":
        scales = tuple(float(F(factor * each)) for each in layer.weight_scales)
        layer = replace(layer, weight_scales=scales)
    else:
        wrong = factor * np.resize([1.0, -1.0, 0.5], len(layer.weight_scales))
        layer = replace(layer, bias_correction=tuple(wrong.tolist()))
    return replace(table, layers={**table.layers, name: layer})


@pytest.mark.parametrize(
    ("what", "kind", "named"),
    [
        (("t", "range", 0.2), "the range seen here", "tensor 't' costs most"),
        (("t", "range", 9.0), "the range seen here", "tensor 't' costs most"),
        (("x", "range", 0.3), "the range seen here", "tensor 'x' costs most"),
        (("x", "range", 20.0), "the range seen here", "tensor 'x' costs most"),
        (("c", "scales", 0.3), "weight scales solved again", "by its weights"),
        (("dw", "scales", 0.5), "weight scales solved again", "by its weights"),
        (("c", "scales", 12.0), "weight scales solved again", "by its weights"),
        (("dw", "scales", 9.0), "weight scales solved again", "by its weights"),
        (("c", "bias", 0.5), "bias correction", "layer 'c' loses most"),
        (("dw", "bias", 1.0), "bias correction", "by its bias"),
        (("dw", "bias", 0.2), "bias correction", "by its bias"),
    ],
)
def test_what_is_wrong_is_named_and_mended_for_nothing(tmp_path, what, kind, named):
    """Whatever int16 or float32 would bring as well, at a price."""
    path = pair_of_layers(tmp_path)
    good = calibrate_model(path, images(), method="minmax")
    best = diagnose_model(path, good, images(), top=0).sqnr_db
    found = diagnose_model(path, spoiled(good, what), images(), top=5)
    assert found.sqnr_db < best - 3
    first = found.plan[0]
    assert (first.target, first.kind, first.price) == (what[0], kind, 0)
    assert first.sqnr_db == pytest.approx(best, abs=1.0)
    said = summary(found)
    assert named in said
    assert f"{kind} for {what[0]} gives" in said


def test_what_does_not_compile_says_why(tmp_path):
    path = pair_of_layers(tmp_path)
    table = calibrate_model(path, images())
    both = pair(open_network(path), table)
    samples = [{"x": image[np.newaxis]} for image in images(2)]
    wanted = [both.reference.run(each) for each in samples]
    bench = Bench(graph=both.graph, samples=samples, wanted=wanted)
    trials = remedies.Trials(table, bench, Figures(squares=np.ones((2, 1, 2))))
    less = replace(table, tensors={})
    change = remedies.Change(target="t", kind="k", how="h", apply=lambda _: less)
    found = trials.measure(change)
    assert (found.gain_db, found.helps) == (None, False)
    assert "no scale in the table" in found.failure


def remedy(target, price, gain, error=0.0):
    return remedies.Remedy(
        target=target,
        kind="k",
        how="h",
        price=price,
        sqnr_db=gain,
        gain_db=gain,
        error_db=error,
    )


@pytest.mark.parametrize(
    ("gains", "price"),
    [
        ([1.0, 1.9, 3.9], 0),
        ([1.0, 2.1, 5.0], 1),
        ([1.0, 2.1, 5.2], 2),
        ([0.05, 0.4, 0.3], 1),
        ([0.05, 0.05, 0.05], None),
    ],
)
def test_the_cheaper_of_two_that_help_as_much(gains, price):
    given = [remedy("t", at, gain) for at, gain in enumerate(gains)]
    found = [each.price for each in remedies.best(given)]
    assert found == ([] if price is None else [price])


@pytest.mark.parametrize(("price", "errors"), [(0, 3), (1, 2), (2, 2)])
def test_a_gain_that_may_be_an_accident_does_not_count(price, errors):
    assert remedy("t", price, 1.0, error=0.99 / errors).helps
    assert not remedy("t", price, 1.0, error=1.01 / errors).helps


def test_the_error_of_a_gain():
    """For equal samples there is none; of one that is unlike the others there is."""
    before = np.ones((5, 1, 2))
    same = before * [1, 0.5]
    assert remedies.gain_error(before, same) == pytest.approx(0, abs=1e-12)
    unlike = same.copy()
    unlike[3, 0, 1] = 2
    assert remedies.gain_error(before, unlike) > 1
    assert remedies.gain_error(before[:1], unlike[:1]) is None


def test_a_plan_never_loses(case):
    path, table, data = case
    found = diagnose_model(path, table, data, top=3)
    reached = [found.sqnr_db, *(each.sqnr_db for each in found.plan)]
    assert reached == sorted(reached)
    for before, step in zip(reached, found.plan, strict=False):
        assert step.gain_db == pytest.approx(step.sqnr_db - before)
    worths = [each.worth for each in found.remedies]
    assert worths == sorted(worths, reverse=True)


def test_the_sample_that_loses_most_stands_first(tmp_path):
    path = pair_of_layers(tmp_path)
    data = images()
    table = calibrate_model(path, data)
    data[4] *= 8  # far beyond what was seen
    found = diagnose_model(path, table, data, top=0)
    assert found.samples[0].sample == "sample 4"
    worst = min(found.tensors, key=lambda each: each.clipping_db)
    assert worst.samples[0].sample == "sample 4"


def test_dead_channels_are_counted(tmp_path):
    path = pair_of_layers(tmp_path)
    model = onnx.load(path)
    (first,) = [w for w in model.graph.initializer if w.name == "w1"]
    weights = onnx.numpy_helper.to_array(first).copy()
    weights[[1, 4]] = 0
    first.CopyFrom(onnx.numpy_helper.from_array(weights, "w1"))
    onnx.save(model, path)
    found = diagnose_model(path, calibrate_model(path, images()), images(), top=0)
    assert {each.name: each.dead for each in found.tensors} == {"x": 0, "t": 2, "y": 2}
    assert any("2 of 6 channels: dead" in line for line in found.guards)
    assert "layer 'c': dead:1,4" in found.guarded


def test_a_network_that_was_quantized_elsewhere_is_refused(tmp_path):
    table = calibrate_model(pair_of_layers(tmp_path), images())
    grown = Net(1, 3, 8, 8)
    grown.pair("x", 0.1, output="y")
    path = save(tmp_path, net(grown.nodes, grown.inputs, "y", grown.arrays), "q.onnx")
    with pytest.raises(CompileError, match="quantized elsewhere"):
        diagnose_model(path, table, images())


def test_there_must_be_samples(tmp_path):
    path = pair_of_layers(tmp_path)
    table = calibrate_model(path, images())
    with pytest.raises(DataError, match="no samples"):
        diagnose_model(path, table, images(), skip=100)


def test_a_network_that_is_float_throughout_loses_nothing(tmp_path):
    path = pair_of_layers(tmp_path)
    table = calibrate_model(path, images())
    floats = {n: replace(each, float32=True) for n, each in table.tensors.items()}
    found = diagnose_model(path, replace(table, tensors=floats), images())
    assert found.sqnr_db > 100
    assert found.by_cost() == []
    assert found.layers == ()
    assert all(each.bits == 0 for each in found.tensors)


def test_an_output_that_is_not_finite_is_refused(tmp_path):
    path = save(
        tmp_path,
        net(
            [
                node("Conv", "x w", "t", "c"),
                node("Exp", "t", "y", "e"),
            ],
            {"x": (1, 3, 8, 8)},
            "y",
            {"w": np.full((2, 3, 1, 1), 2, F)},
        ),
    )
    table = calibrate_model(path, images())
    with pytest.raises(DataError, match=r"output 'y' .* is not finite"):
        diagnose_model(path, table, 1000 * images())


def test_what_is_not_finite_inside_is_left_out(tmp_path):
    """A division by zero, where ReLU6 makes something finite of it again."""
    nodes = [
        node("Conv", "x w", "t", "c"),
        node("Relu", "t", "r", "relu"),
        node("Reciprocal", "r", "u", "d"),
        node("Clip", "u lo hi", "y", "clip"),
    ]
    weights = {"w": np.eye(3, dtype=F)[:, :, None, None], "lo": F(0), "hi": F(6)}
    path = save(tmp_path, net(nodes, {"x": (1, 3, 8, 8)}, "y", weights))
    data = np.abs(images()) + F(0.5)
    table = calibrate_model(path, data)
    data[0, 0, 0, 0] = 0
    found = diagnose_model(path, table, data, top=0)
    assert np.isfinite([each.sqnr_db for each in found.tensors]).all()


def test_the_default_recipe_is_tried_where_the_table_has_none_of_it(tmp_path):
    path = pair_of_layers(tmp_path)
    plain, whole = (calibrate_model(path, images(), plain=p) for p in (True, False))
    found = diagnose_model(path, plain, images(), top=1)
    (recipe,) = [each for each in found.remedies if each.target == "the network"]
    assert recipe.gain_db != 0
    found = diagnose_model(path, whole, images(), top=1)
    assert "the network" not in {each.target for each in found.remedies}
    # It gives what the table has.
    assert recipe.sqnr_db == pytest.approx(found.sqnr_db, abs=0.01)
