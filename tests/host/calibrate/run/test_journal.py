# SPDX-License-Identifier: Apache-2.0
"""The journal when more than one run writes it."""

import subprocess
import sys
from pathlib import Path

import pytest

import neon8
from calib_nets import branchy, images
from neon8.calibrate import calib_file, container
from neon8.calibrate.run import journal
from neon8.errors import CalibrationError
from onnx_nets import save

SAVES = """
import sys
from pathlib import Path
from neon8.calibrate import calib_file
from neon8.calibrate.run import journal

calib, path = map(Path, sys.argv[1:])
observation = calib_file.loads(calib.read_bytes(), source="x")
entry = journal.Entry(settings={}, observation=observation, names={}, points=())
for _ in range(30):
    journal.save(path, entry)
    assert journal.load(path, {}) is not None
"""


def observed(folder):
    model = save(folder, branchy())
    return neon8.observe_model(model, images(3))


def test_two_runs_for_one_output(tmp_path):
    """Each snapshot is whole, whoever wrote it."""
    calib, path = tmp_path / "a.calib", tmp_path / "b.calib.journal"
    calib.write_bytes(calib_file.dumps(observed(tmp_path)))
    command = [sys.executable, "-c", SAVES, str(calib), str(path)]
    runs = [subprocess.Popen(command) for _ in range(3)]
    assert [run.wait(60) for run in runs] == [0, 0, 0]


def test_what_dead_runs_left_is_cleared_away(tmp_path):
    path = tmp_path / "a.calib.journal"
    other = tmp_path / "other.calib.journal.7.new"
    for file in (path, tmp_path / "a.calib.journal.7.new", other):
        file.write_bytes(b"half")
    journal.remove(path)
    assert list(tmp_path.iterdir()) == [other]


def test_a_pipe_has_no_journal(tmp_path):
    assert journal.journal_of(tmp_path / "a.calib") == tmp_path / "a.calib.journal"
    assert journal.journal_of(Path("/dev/stdout")) is None
    assert journal.journal_of(Path("/dev/null")) is None
    assert journal.journal_of(None) is None


def test_whatever_is_in_it_is_one_error(tmp_path):
    """Damaged, of an older version, or with other things in it than a journal has."""
    path = tmp_path / "a.calib.journal"
    facts, arrays = calib_file.pack(observed(tmp_path))
    sound = {"settings": {}, "names": {}, "points": [], "observation": facts}
    path.write_bytes(container.dumps(journal.KIND, sound, arrays))
    assert journal.load(path, {}).names == {}
    whole = path.read_bytes()
    contents = [
        whole[:-1],
        b"",
        b"n8journal 2\n" + whole,
        calib_file.dumps(observed(tmp_path)),
    ]
    for key in sound:
        for value in (None, 7, "x", [1], [[]], {"x": []}):
            if (key, value) != ("settings", {"x": []}) and (key, value) != (
                "names",
                {"x": []},
            ):
                changed = {**sound, key: value}
                contents.append(container.dumps(journal.KIND, changed, arrays))
    for data in contents:
        path.write_bytes(data)
        with pytest.raises(CalibrationError, match=r"journal: .*delete it to start"):
            journal.load(path, {"--limit": None})
