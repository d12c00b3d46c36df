# SPDX-License-Identifier: Apache-2.0
"""Sums of sums get 16 bits where only sums and normalizations read them."""

import numpy as np
import pytest

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.compile.lower import lower
from neon8.compile.oracle import run
from neon8.evaluate.metrics import sqnr_db
from neon8.graph.importer import load
from onnx_nets import save
from open_nets import Block

SHAPE = (1, 6, 16)
BLOCKS = 8


def stream(*, read=False):
    """Blocks of x + linear(norm(x)), and positions first.  read: by a layer, too."""
    b = Block(3)
    b("Add", "x", "t0", b.random(*SHAPE[1:]))
    for at in range(BLOCKS):
        gamma, beta = np.ones(16, np.float32), np.zeros(16, np.float32)
        b("LayerNormalization", f"t{at}", f"n{at}", gamma, beta, axis=-1)
        b.linear(f"n{at}", f"b{at}", 16, 16)
        source = f"t{at}"
        if read:
            b.linear(source, f"s{at}", 16, 16)
            source = f"s{at}"
        b("Add", f"{source} b{at}", f"t{at + 1}")
    b("LayerNormalization", f"t{BLOCKS}", "n", np.ones(16, np.float32), axis=-1)
    b.linear("n", "y", 16, 4)
    return b.model(SHAPE)


def samples(count=12, seed=0):
    """The last row is small beside the others."""
    rng = np.random.default_rng(seed)
    sizes = np.array([3, 3, 3, 3, 3, 0.05])[:, np.newaxis]
    return [(rng.normal(0, 1, SHAPE) * sizes).astype(np.float32) for _ in range(count)]


def bits(table):
    """By tensor, as ONNX names it; those of another layout have the same."""
    return {name.split("_")[0]: entry.bits for name, entry in table.tensors.items()}


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = save(tmp_path_factory.mktemp("stream"), stream())
    return path, neon8.calibrate_model(path, samples())


def test_all_of_a_stream_has_16_bits_and_nothing_else(network):
    _, table = network
    found = {name for name, count in bits(table).items() if count == 16}
    assert found == {f"t{at}" for at in range(BLOCKS + 1)}
    coded = {n.split("_")[0] for n, e in table.tensors.items() if "int16" in e.reasons}
    assert coded == found


def test_the_small_row_keeps_its_signal(network):
    path, table = network
    plain = neon8.calibrate_model(path, samples(), plain=True)
    assert set(bits(plain).values()) == {8}
    reference = Reference(path)
    exact = [reference.run({"x": one})["y"] for one in samples(4, seed=1)]

    def sqnr(scales):
        program = lower(load(path), scales)
        pairs = [
            (run(program, {"x": one})["y"], want)
            for one, want in zip(samples(4, seed=1), exact, strict=True)
        ]
        noise = sum(float(((got - want)[:, -1] ** 2).sum()) for got, want in pairs)
        signal = sum(float((want[:, -1] ** 2).sum()) for want in exact)
        return sqnr_db(signal, noise)

    assert sqnr(table) > sqnr(plain) + 3


def test_what_a_layer_reads_keeps_8_bits(tmp_path):
    path = save(tmp_path, stream(read=True))
    found = bits(neon8.calibrate_model(path, samples()))
    read = {f"t{at}" for at in range(BLOCKS)} & set(found)
    assert read
    assert {found[name] for name in read} == {8}


def test_a_user_has_the_last_word(network):
    path, _ = network
    own = f"t{BLOCKS}_channels_first"
    wanted = {own: "float"}
    table = neon8.calibrate_model(path, samples(), precision=wanted)
    assert (table.tensors[own].float32, table.tensors[own].bits) == (True, 8)
    assert bits(table)["t4"] == 16


def test_a_short_stream_keeps_8_bits(tmp_path):
    b = Block(1)
    b("LayerNormalization", "x", "n", np.ones(16, np.float32), axis=-1)
    b.linear("n", "b", 16, 16)
    b("Add", "n b", "t")
    b("LayerNormalization", "t", "m", np.ones(16, np.float32), axis=-1)
    b.linear("m", "y", 16, 4)
    path = save(tmp_path, b.model(SHAPE))
    rng = np.random.default_rng(0)
    even = [rng.normal(0, 1, SHAPE).astype(np.float32) for _ in range(8)]
    assert set(bits(neon8.calibrate_model(path, even)).values()) == {8}


def after(blocks):
    """Blocks of norm(x + linear(x)), as in BERT."""
    b = Block(3)
    for at in range(blocks):
        b.linear("x" if at == 0 else f"n{at}", f"b{at}", 16, 16)
        b("Add", f"{'x' if at == 0 else f'n{at}'} b{at}", f"t{at}")
        gamma, beta = np.ones(16, np.float32), np.zeros(16, np.float32)
        b("LayerNormalization", f"t{at}", f"n{at + 1}", gamma, beta, axis=-1)
    b.linear(f"n{blocks}", "y", 16, 4)
    return b.model(SHAPE)


@pytest.mark.parametrize("blocks", [1, BLOCKS])
def test_normalizations_between_sums_continue_the_stream(blocks, tmp_path):
    """The noise of one sum would be little; the layers read 8 bits."""
    rng = np.random.default_rng(2)
    data = [rng.normal(0, 1, SHAPE).astype(np.float32) for _ in range(12)]
    table = neon8.calibrate_model(save(tmp_path, after(blocks)), data)
    found = {name for name, count in bits(table).items() if count == 16}
    assert found == ({f"t{at}" for at in range(blocks)} if blocks > 1 else set())


def test_sums_that_nobody_observes_are_none_of_it(tmp_path):
    """Those inside of a CumSum have no scales."""
    b = Block(3)
    b.linear("x", "h", 16, 16)
    b("CumSum", "h", "c", np.array(2))
    b.linear("c", "y", 16, 4)
    table = neon8.calibrate_model(save(tmp_path, b.model(SHAPE)), samples())
    assert set(bits(table).values()) == {8}
