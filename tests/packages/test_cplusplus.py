# SPDX-License-Identifier: Apache-2.0
"""neon8.hpp compiles without a warning, gives the golden bytes, and allocates nothing.

Its program also checks what the header refuses, with exceptions and without.
"""

import pytest
from consumer import CONSUMER, ROOT, assert_runs, newest, run

INCLUDE = ROOT / "runtime" / "include"
LIBRARY = (ROOT / "build" / "native" / "libneon8.a", "-lm", "-pthread")
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Wshadow", "-Werror")
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize(
    ("compiler", "standard", "flags"),
    [
        ("g++", "c++17", SANITIZE),
        ("g++", "c++20", ("-fno-exceptions", *SANITIZE)),
        ("clang++", "c++17", ("-fno-exceptions",)),
        ("clang++", "c++20", ()),
    ],
)
def test_header(tmp_path, compiler, standard, flags):
    program = tmp_path / "main"
    run(
        *(newest(compiler), f"-std={standard}", *STRICT, *flags, f"-I{INCLUDE}"),
        *(CONSUMER / "main.cpp", *LIBRARY, "-o", program),
    )
    assert_runs(tmp_path, program)


def test_a_type_that_no_tensor_has(tmp_path):
    source = tmp_path / "double.cpp"
    text = "#include <neon8.hpp>\ndouble x[3];\nneon8::Input input(x);\n"
    source.write_text(text)
    compile_it = ("g++", f"-I{INCLUDE}", "-fsyntax-only", source)
    with pytest.raises(AssertionError, match="no tensor has values of this type"):
        run(*compile_it)
    source.write_text(text.replace("double x", "float x"))
    run(*compile_it)
