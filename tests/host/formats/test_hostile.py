# SPDX-License-Identifier: Apache-2.0
"""Files made to take time or memory: refused before they do, in one short line."""

import pytest

from neon8.errors import TableError
from neon8.files import MAX_TEXT_BYTES
from neon8.formats import ncnn, ncnn_param
from neon8.formats.conversion import read, read_names
from neon8.quant.table_json import load

HASH = b"---\nGraphPreLowerHash: 0x1\n---\n"
FILES = {
    "scales of one layer": ("ncnn", b"a_param_0" + b" 1" * (ncnn.MOST_SCALES + 1)),
    "digits": ("ncnn", b"a_param_0 " + b"1" * 100_000),
    "name": ("ncnn", b"a" * 100_000 + b" 1"),
    "hexadecimal digits": ("trt", b"TRT-8601-x\na: " + b"f" * 100_000),
    "no colon": ("trt", b"TRT-8601-x\n" + b"a" * 100_000),
    "objects": ("ort", b'{"a":[' + b"{}," * (1 << 21) + b"1]}"),
    "lists": ("ort-overrides", b'{"a":[' + b"[]," * (1 << 21) + b"1]}"),
    "numbers": ("ort", b'{"a":[' + b"1," * (1 << 24) + b"1]}"),
    "lines": ("ncnn", b"a_param_0 1\n" + b"\n" * (1 << 18)),
    "tensors": ("trt", b"TRT-8601-x\n" + b"\n" * (1 << 18)),
    "depth": ("neon8", b'{"a":' + b"[" * 100_000),
    "whole number": ("ort", b'{"a":' + b"9" * 100_000 + b"}"),
    "string": ("neon8", b'{"' + b"a" * 100_000 + b'":1}'),
    "depth of YAML": ("glow", HASH + b"[" * 100_000),
    "documents": ("glow", b"---\nNodeOutputName\n" * 100_000),
    "keys": ("glow", HASH + b"? a\n" * 100_000),
    "key": ("glow", HASH + b"- " + b"a" * 1000 + b": 1\n"),
    "bins": ("glow", HASH + b"- Histogram: [" + b"1, " * 100_000 + b"1]\n"),
    "too large": ("trt", b"TRT-8601-x\n" + b"\n" * MAX_TEXT_BYTES),
}


@pytest.mark.parametrize(("name", "data"), FILES.values(), ids=FILES)
def test_a_short_error(tmp_path, name, data):
    path = tmp_path / "t"
    path.write_bytes(data)
    with pytest.raises(TableError, match=rf"^{path}:.{{,299}}\Z"):
        read(path, source_format=name)


@pytest.mark.parametrize("word", ["0=" + "1" * 100_000, "1" * 100_000, "a" * 100_000])
def test_a_short_error_for_a_param(word):
    text = f"7767517\n1 1\nConvolution a 1 1 b c {word}\n"
    with pytest.raises(TableError, match=r"^.{,299}\Z"):
        ncnn_param.loads(text.encode(), source="p")


@pytest.mark.parametrize("reader", [load, read_names, ncnn_param.load])
def test_no_reader_takes_a_file_of_any_size(tmp_path, reader):
    path = tmp_path / "t"
    with path.open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    with pytest.raises(TableError, match="larger than"):
        reader(str(path))
