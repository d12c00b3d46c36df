# SPDX-License-Identifier: Apache-2.0
"""Audit of libneon8.so for each machine.

Each audit is shown a library that offends, too, so that a silent audit is an audit that
works.
"""

import re

import pytest
from audits import (
    declared,
    executable_stack,
    foreign_libraries,
    small_pages,
    text_relocations,
    too_large,
    wrong_exports,
    wrong_machine,
)


@pytest.fixture
def library(build):
    return build / "libneon8.so"


@pytest.mark.parametrize(
    "audit",
    [
        wrong_machine,
        foreign_libraries,
        text_relocations,
        executable_stack,
        small_pages,
    ],
)
def test_library(audit, library, machine):
    assert audit(library, machine) == []


def test_exports_are_the_public_header(build, library):
    functions = declared(build / "neon8_cdef.h")
    assert {"n8_model_open", "n8_session_run"} <= functions
    assert all(re.fullmatch(r"n8_[a-z0-9_]+", name) for name in functions)
    assert wrong_exports(library, functions) == []


def test_size(library, machine):
    assert too_large(library, machine) == []


CODE = "int n8_code(void) { return 1; }"


@pytest.mark.parametrize(
    ("audit", "flags", "complaint"),
    [
        (wrong_machine, ["-c"], "ET_REL"),
        (foreign_libraries, ["-Wl,--no-as-needed", "-lresolv"], "libresolv.so.2"),
        (executable_stack, ["-Wl,-z,execstack"], "executable"),
    ],
)
def test_audit_sees_a_bad_library(audit, flags, complaint, machine, cross):
    shared = [] if "-c" in flags else ["-shared"]
    problems = audit(cross(CODE, "-fPIC", *shared, *flags), machine)
    assert problems
    assert complaint in problems[0]


def test_audit_sees_small_pages(machine, cross):
    page = machine.page // 2
    sizes = (f"-Wl,-z,max-page-size={page}", f"-Wl,-z,common-page-size={page}")
    problems = small_pages(cross(CODE, "-fPIC", "-shared", *sizes), machine)
    assert problems
    assert f"{page:#x}" in problems[0]


def test_audit_sees_text_relocations(machine, cross):
    source = f".text\n.{machine.bits // 8}byte elsewhere\n"
    bad = cross(source, "-shared", "-Wl,-z,notext", language="assembler")
    assert "DT_TEXTREL" in text_relocations(bad, machine)


def test_audit_sees_wrong_exports(cross):
    bad = cross(CODE, "-fPIC", "-shared")
    problems = wrong_exports(bad, {"n8_other"})
    assert problems == ["n8_code is exported", "n8_other is missing"]


def test_audit_sees_a_large_library(machine, cross):
    source = f"const char n8_large[{machine.loaded}] = {{1}};"
    bad = cross(source, "-fPIC", "-shared")
    assert too_large(bad, machine)
