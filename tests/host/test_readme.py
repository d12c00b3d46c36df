# SPDX-License-Identifier: Apache-2.0
"""What the README shows works as it stands there, and links lead somewhere."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neon8
from neon8.cli.main import main
from processes import ran

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
C_LIBRARY = (ROOT / "docs" / "howto" / "c-library.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    """The code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(text: str, language: str) -> str:
    """The one code block in a language."""
    (found,) = blocks(text, language)
    return found


@pytest.fixture
def folder(tiny, tmp_path, monkeypatch):
    """A folder with the files that the examples name."""
    for source, name in (
        (tiny.onnx, "net.onnx"),
        (tiny.data, "train.npz"),
        (tiny.labelled, "test.npz"),
    ):
        shutil.copy(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_lines(folder, capsys):
    lines = "".join(blocks(README, "sh")).splitlines()
    assert len(lines) == 7
    for line in lines:
        program, *words = shlex.split(line)
        assert (program, main(words)) == ("neon8", 0), capsys.readouterr().err
    assert (folder / "net.table").exists()


@pytest.mark.usefixtures("folder")
def test_ten_lines_of_python():
    code = block(README, "python")
    assert len([line for line in code.splitlines() if line]) <= 10
    done = ran(sys.executable, "-W", "error", "-c", code, check=True)
    # The guards of so small a network, and no more.
    assert all(": few:values: " in line for line in done.stderr.splitlines())
    assert "Evaluation(n=24" in done.stdout
    assert "scores" in done.stdout


MAIN = """
#include <stdio.h>
int main(void) {
    static unsigned char file[1 << 20];
    static float image[3 * 8 * 8], scores[6];
    const size_t size = fread(file, 1, sizeof file, stdin);
    for (int i = 0; i < 3 * 8 * 8; i++) image[i] = (float)i / 100.0f - 1.0f;
    if (classify(file, size, image, scores) != N8_OK) return 1;
    return fwrite(scores, sizeof scores, 1, stdout) != 1;
}
"""


@pytest.mark.parametrize(
    ("page", "language", "compiler"),
    [(README, "c", ["gcc", "-std=c11"]), (C_LIBRARY, "cpp", ["g++", "-std=c++17"])],
)
def test_ten_lines_of_c(tiny, tmp_path, page, language, compiler):
    main = MAIN
    if language == "cpp":
        main = main.replace("(classify(file, size,", "(!classify({(char *)file, size},")
        main = main.replace(" != N8_OK", "")
    (tmp_path / f"main.{language}").write_text(block(page, language) + main)
    flags = ["-Wall", "-Wextra", "-Werror", "-Wconversion"]
    library = ROOT / "build" / "native" / "libneon8.a"
    subprocess.run(
        [
            *(*compiler, *flags, f"-I{ROOT / 'runtime' / 'include'}"),
            *(f"main.{language}", str(library), "-lm", "-pthread", "-o", "main"),
        ],
        cwd=tmp_path,
        check=True,
    )
    with tiny.n8.open("rb") as model:
        done = subprocess.run(
            [tmp_path / "main"], stdin=model, capture_output=True, check=True
        )
    image = np.arange(192, dtype=np.float32) / np.float32(100) - np.float32(1)
    with neon8.Model.open(tiny.n8) as net, net.session() as session:
        wanted = session.run({"image": image.reshape(1, 3, 8, 8)})["scores"]
    assert done.stdout == wanted.tobytes()


def test_links_lead_somewhere():
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


NAMED = re.compile(
    r"\b(?:host|runtime|asm|bench|tests|cross|docs)/[\w/]+\.(?:py|c|h|inc|S|md|sh|cmake)\b"
)
"""A file of this checkout, as comments and documentation name it."""
BINARY = (".gz", ".n8", ".onnx", ".png")
RECIPES = {
    *("CONTRIBUTING.md", "test_recipes.py"),
    *(path.name for path in (ROOT / "docs/recipes").iterdir()),
}
"""They name files that a recipe makes, which are not there yet."""


def test_files_that_are_named_are_there():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = ran(*command, cwd=ROOT, check=True).stdout.splitlines()
    missing = set()
    for path in map(ROOT.joinpath, listed):
        if path.suffix in BINARY or path.name in RECIPES:
            continue
        text = path.read_text() if path.is_file() else ""
        named = {name for name in NAMED.findall(text) if not (ROOT / name).exists()}
        missing |= {f"{path.relative_to(ROOT)} names {name}" for name in named}
    assert sorted(missing) == []
