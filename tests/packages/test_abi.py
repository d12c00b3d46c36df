# SPDX-License-Identifier: Apache-2.0
"""Programs compiled for the last release go on with this library."""

import gzip
import re

import abi
import pytest

HEADER = abi.HEADER.read_text(encoding="utf-8")
STRUCT = re.search(r"struct n8_model_options \{.*?\};", HEADER, re.DOTALL)[0]
FIELDS, WORDS = re.fullmatch(
    r"(.*)    uint32_t reserved\[(\d+)\];\n\};", STRUCT, re.DOTALL
).groups()
VERSION = "N8_API const char *n8_version(void);"
THREADS = "    int32_t threads; "


def ending(fields, more):
    """A struct with further fields and so many more words of room."""
    return f"{FIELDS}{fields} uint32_t reserved[{int(WORDS) + more}];\n}};"


HARMLESS = {
    "a field in the room": [(STRUCT, ending("void (*a)(void); void *b;", -6))],
    "less room": [(STRUCT, ending("", -1))],
    "a function": [(VERSION, VERSION + "\nN8_API int n8_new(const void *);")],
    "a constant": [("    N8_E_SHAPE = 10,", "    N8_E_SHAPE = 10, N8_E_NEW = 11,")],
}
HARMFUL = {
    "more room": [(STRUCT, ending("", 4))],
    "a field before": [(THREADS, "    int32_t a; int32_t threads; ")],
    "a field of another type": [(THREADS, "    float threads; ")],
    "a field of another width": [(THREADS, "    int64_t threads; ")],
    "no struct": [
        ("struct n8_dimension {\n    int32_t lo, hi, step;", "struct n8_dimension {")
    ],
    "another constant": [("    N8_TYPE_S16 = 5,", "    N8_TYPE_S16 = 6,")],
    "no function": [(VERSION, "")],
    "another argument": [("n8_threads_create(int32_t", "n8_threads_create(int64_t")],
    "another result": [(VERSION, "N8_API int n8_version(void);")],
}


def changed(replacements):
    header = HEADER
    for old, new in replacements:
        assert header.count(old) == 1, old
        header = header.replace(old, new)
    return header


@pytest.fixture(params=abi.COMPILERS)
def machine(request):
    return request.param


def test_as_the_last_release(machine):
    old = gzip.decompress(abi.stored(machine).read_bytes())
    assert abi.changes(old, abi.dump(HEADER, machine)) == ""


@pytest.fixture(scope="module")
def now():
    return {machine: abi.dump(HEADER, machine) for machine in abi.COMPILERS}


@pytest.mark.parametrize("change", HARMLESS)
def test_additions_do_no_harm(change, machine, now):
    new = abi.dump(changed(HARMLESS[change]), machine)
    assert abi.changes(now[machine], new) == ""


@pytest.mark.parametrize("change", HARMFUL)
def test_changes_are_seen(change, machine, now):
    assert abi.changes(now[machine], abi.dump(changed(HARMFUL[change]), machine))
