# SPDX-License-Identifier: Apache-2.0
"""Names of a model never become code."""

import ast
import keyword
import re
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neon8.package import names

HOSTILE = st.one_of(
    st.text(),
    st.text(alphabet="\"\\/*?<>'\n\r\t%{}#$`-_ aZ9\u202e\u2028\x00é"),
    st.sampled_from([*sorted(names.WORDS), *map(str.upper, sorted(names.WORDS))]),
)


@given(st.lists(HOSTILE, max_size=8))
@example(["class", "Class", "CLASS", "class_", "_class"])
@example(["a" * 9999, "a" * 9999 + "b", "a" * names.LONGEST + "_2"])
@example(["", "\n", "../../etc", "1", "n8_session_run", "\ud800"])
def test_identifiers(given_names):
    found = names.identifiers(given_names, "tensor", taken=("tensor_2", "net_run"))
    assert len(set(found)) == len(found) == len(given_names)
    for each in found:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", each)
        assert len(each) <= names.LONGEST + 12
        assert not keyword.iskeyword(each)
        assert each not in {*names.WORDS, "tensor_2", "net_run"}
        assert each.partition("_")[0] not in names.PREFIXES
        assert names.camel(each).isidentifier()


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("image", "image"),
        ("images:0", "images_0"),
        ("serving_default_inputMean", "serving_default_input_mean"),
        ("class", "tensor_class"),
        ("1x3", "tensor_1x3"),
        ("n8_model_open", "tensor_n8_model_open"),
        ("出力", "tensor"),
    ],
)
def test_an_identifier_is_what_one_would_write(name, identifier):
    assert names.identifiers([name], "tensor") == (identifier,)


def test_two_names_that_become_one():
    assert names.identifiers(["a b", "a.b", "A_B"], "value") == (
        "a_b",
        "a_b_2",
        "a_b_3",
    )


@given(HOSTILE)
@example('*/ int main;\n#include <x>\n--> ??/\n]]>"""' + "x" * 9999)
def test_a_comment_goes_on(name):
    shown = names.shown(name)
    assert re.fullmatch(r"[0-9A-Za-z_.,:;/()=+ -]*", shown)
    assert "--" not in shown
    assert len(shown) <= names.LONGEST_SHOWN


def unescaped(literals):
    """The bytes that C makes of string literals."""
    body = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).encode()
    return re.sub(
        rb"\\([0-7]{3}|.)",
        lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else m[1],
        body,
    )


@given(st.binary(max_size=300))
def test_bytes_in_c(data):
    literals = names.c_bytes(data)
    assert unescaped(literals) == data
    assert "?" not in literals.replace("\\?", "")
    assert literals.isascii()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_in_c(text):
    literal = names.c_text(text)
    assert unescaped(literal) == text.encode()
    assert literal.isprintable()
    assert not re.search(r"\?[?]", literal)


@given(HOSTILE)
def test_a_text_in_python(text):
    literal = names.python_text(text)
    assert ast.literal_eval(literal) == text
    assert literal.isprintable()


@settings(max_examples=5)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=40))
def test_c_reads_the_same_texts(tmp_path_factory, texts):
    texts = [text.replace("\0", "") for text in texts]
    folder = tmp_path_factory.mktemp("texts")
    lines = "".join(f"    puts({names.c_text(text)});\n" for text in texts)
    code = f"#include <stdio.h>\nint main(void) {{\n{lines}    return 0;\n}}\n"
    (folder / "texts.c").write_text(code)
    warn = ["-std=c11", "-Wall", "-Wextra", "-Wtrigraphs", "-Werror"]
    command = ["gcc", *warn, "-o", folder / "texts", folder / "texts.c"]
    subprocess.run(command, check=True)
    out = subprocess.run([folder / "texts"], capture_output=True, check=True).stdout
    assert out == b"".join(text.encode() + b"\n" for text in texts)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example('\\u0022 "\n\N{GRINNING FACE}')
def test_a_text_in_java(text):
    literal = names.java_text(text)
    assert re.fullmatch(r'"([ !#-\[\]-~]|\\[0-7]{3}|\\u[0-9a-f]{4})*"', literal)
    # Java reads these before all others: none is a sign that ends a literal.
    assert not re.search(r"\\u00[0-6]", literal)
    units = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), literal[1:-1])
    assert units == re.sub(
        r"[^\x00-\x7e]+",
        lambda m: "".join(
            f"\\u{u}" for u in re.findall("....", m[0].encode("utf-16-be").hex())
        ),
        text,
    )


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_in_c(value):
    literal = names.c_float(value)
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?f", literal)
    import numpy as np

    assert np.float32(ast.literal_eval(literal[:-1])) == np.float32(value)


def test_a_long_call_is_broken():
    broken = names.broken("void f(", ["int a", "int b", "int c"], most=24)
    assert broken == "void f(int a, int b,\n       int c"
