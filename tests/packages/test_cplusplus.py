# SPDX-License-Identifier: Apache-2.0
"""neon8.h and neon8.hpp in C++: no warning, the golden bytes, and nothing allocated.

The program of neon8.hpp also checks what it refuses, with exceptions and without.
"""

import numpy as np
import pytest
from consumer import CONSUMER, ROOT, assert_runs, newest, run

from neon8.runtime import Model

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


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_of_c(tmp_path, compiler):
    """It is C++11."""
    source = tmp_path / "header.cpp"
    source.write_text("#include <neon8.h>\n")
    flags = ("-std=c++11", *STRICT, f"-I{INCLUDE}")
    run(newest(compiler), *flags, "-fsyntax-only", source)


def test_open_dimensions(tmp_path):
    program, golden = tmp_path / "open", ROOT / "tests" / "golden" / "open.n8"
    flags = ("-std=c++17", *STRICT, f"-I{INCLUDE}")
    run("g++", *flags, CONSUMER / "open.cpp", *LIBRARY, "-o", program)
    run(program, golden, tmp_path / "out")
    with Model.open(golden) as model, model.session() as session:
        shape = tuple(limits.hi for limits in model.bounds["image"])
        values = np.arange(np.prod(shape)) % 17 - 8
        results = session.run({"image": values.astype(np.float32).reshape(shape)})
    wanted = b"".join(array.tobytes() for array in results.values())
    assert (tmp_path / "out").read_bytes() == wanted
