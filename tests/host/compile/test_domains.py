# SPDX-License-Identifier: Apache-2.0
"""Which nodes run in float32, and why."""

import pytest

from neon8.compile.domains import BETWEEN, KEPT, RESULT
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.operators.movement import Concat, Reshape
from neon8.operators.softmax import Softmax
from small_graphs import RELU, conv, graph_of, kinds, table_of

FLAT = (1, 100)


def flat(output, source):
    return Reshape(
        name=f"flat_{output}", inputs=(source,), output=output, operator="Flatten"
    )


def softmax(output, source):
    return Softmax(name=f"soft_{output}", inputs=(source,), output=output)


def islands(*nodes, io="float", keep=(), without=(), partial=False, **options):
    graph = graph_of(*nodes, **options)
    table = table_of(graph, without=without)
    prog = lower(graph, table, io=io, keep_float=frozenset(keep), partial=partial)
    return prog.islands, kinds(prog)


def test_a_plain_network_has_none():
    assert islands(conv("h"), conv("y", "h"))[0] == {}


def test_a_head_is_float_from_its_convolutions_on():
    """Nothing between the convolutions and the softmax is rounded to int8."""
    nodes = (
        *(conv("a"), conv("b"), flat("fa", "a"), flat("fb", "b")),
        Concat(name="join", inputs=("fa", "fb"), output="j", axis=1),
        softmax("y", "j"),
    )
    shapes = {"fa": FLAT, "fb": FLAT, "j": (1, 200), "y": (1, 200)}
    found, ops = islands(*nodes, shapes=shapes)
    assert found == {
        **dict.fromkeys(("flat_fa", "flat_fb", "join"), BETWEEN),
        "soft_y": RESULT,
    }
    assert ops == [
        *("Quantize", "Conv2d", "Conv2d", "Reshape", "Reshape", "Concat", "Softmax")
    ]


@pytest.mark.parametrize("break_at", ["reader", "activation", "io"])
def test_one_int8_link_keeps_a_chain_in_int8(break_at):
    activation = {"activation": RELU} if break_at == "activation" else {}
    nodes = [conv("h", **activation), flat("f", "h"), flat("y", "f")]
    outputs = ["y"]
    shapes = {"f": FLAT, "y": FLAT, "z": (1, 4)}
    if break_at == "reader":
        nodes.append(conv("z", "f", channels=100))
        outputs.append("z")
    io = "int8" if break_at == "io" else "float"
    found, _ = islands(*nodes, outputs=tuple(outputs), shapes=shapes, io=io)
    assert found == {}


def test_a_concat_follows_what_must_be_float():
    """A part that is int8 is dequantized: rounding the other would lose more."""
    nodes = (
        *(conv("h"), softmax("p", "h"), conv("r", activation=RELU)),
        Concat(name="join", inputs=("p", "r"), output="y", axis=1),
    )
    found, ops = islands(*nodes, shapes={"y": (1, 8, 5, 5)})
    assert found == {"soft_p": RESULT, "join": BETWEEN}
    assert ops[-2:] == ["Dequantize", "Concat"]


@pytest.mark.parametrize("name", ["flat_y", "Flatten"])
def test_kept_by_name_and_by_operator(name):
    nodes = conv("h", activation=RELU), flat("y", "h")
    found, ops = islands(*nodes, shapes={"y": FLAT}, keep=[name])
    assert found == {"flat_y": KEPT}
    assert ops == ["Quantize", "Conv2d", "Dequantize", "Reshape"]


def test_unknown_names_are_refused_with_near_ones():
    nodes = conv("h"), flat("y", "h")
    with pytest.raises(CompileError, match=r"'Flaten'.* did you mean 'Flatten'"):
        islands(*nodes, shapes={"y": FLAT}, keep=["Flaten"])


def test_a_partial_table():
    nodes = conv("h"), flat("y", "h")
    options = {"shapes": {"y": FLAT}, "without": ("h",)}
    found, ops = islands(*nodes, partial=True, **options)
    assert found == {"flat_y": "tensor 'h' has no scale in the table"}
    assert ops == ["Quantize", "Conv2d", "Reshape"]
    with pytest.raises(CompileError, match="tensor 'h' has no scale"):
        islands(*nodes, io="int8", **options)
