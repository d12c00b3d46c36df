# SPDX-License-Identifier: Apache-2.0
"""Models on boards: the bytes of this PC, whatever happens on the way."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from neon8.errors import ModelError, SettingsError, SetupError
from neon8.runtime import Model
from neon8.runtime.board import batch
from neon8.runtime.board.board import Board, link_to
from neon8.runtime.board.model import BoardModel, same_bytes
from neon8.runtime.targets import open_model
from neon8.settings.stages import TargetSettings

ROOT = Path(__file__).resolve().parents[4]
SMALL, OPEN = (ROOT / "tests" / "golden" / f"{name}.n8" for name in ("small", "open"))
DROP = "kill -9 $PPID; exit 1"
"""Ends the connection: the parent is the sshd that serves it."""
SIGNAL = "sh -c 'kill -{} $$'; exit $?"


def samples(path, count):
    made = np.random.default_rng(count)
    with Model.open(path) as model, model.session() as session:
        inputs = [
            {
                name: made.standard_normal(info.shape).astype(info.dtype)
                for name, info in model.inputs.items()
            }
            for _ in range(count)
        ]
        return inputs, [session.run(each) for each in inputs]


def run(target, inputs, path=SMALL, **options):
    where = TargetSettings(target=target, **options)
    with open_model(path, where) as runner, ThreadPoolExecutor(8) as pool:
        assert runner.best == runner.most
        return list(pool.map(runner.run, inputs))


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert {n: a.tobytes() for n, a in one.items()} == {
            n: a.tobytes() for n, a in other.items()
        }


@pytest.mark.parametrize(("way", "machine"), [("ssh", "aarch64"), ("adb", "armv7l")])
def test_outputs_come_back(request, way, machine):
    board = request.getfixturevalue(f"{way}_board")
    board.machine(machine)
    inputs, wanted = samples(SMALL, 20)
    same(run(board.target, inputs, isa="neon"), wanted)
    assert "--isa neon" in board.log()
    assert board.runs() < 20, "samples were not sent in batches"


def test_shapes_of_their_own(adb_board):
    made = np.random.default_rng(1)
    inputs = [
        {"image": made.random((n, 3, 6, 6 + 2 * n), np.float32)} for n in (1, 2, 3, 1)
    ]
    with Model.open(OPEN) as model, model.session() as session:
        wanted = [session.run(each) for each in inputs]
    same(run(adb_board.target, inputs, OPEN), wanted)


def test_dropped_connection_resumes(ssh_board):
    """A batch that was done is not run again; the one that was lost is, once."""
    inputs, wanted = samples(SMALL, 3)
    where = TargetSettings(target=ssh_board.target)
    with open_model(SMALL, where) as runner:
        same([runner.run(inputs[0])], wanted[:1])
        before = ssh_board.runs()
        once = f"rm {ssh_board.folder}/hook"
        part = 'sh -c "$command" | head -c 50'
        ssh_board.hook(f'case $command in *" run "*) {once}; {part}; {DROP};; esac')
        same([runner.run(inputs[1])], wanted[1:2])
        assert ssh_board.runs() == before + 2
        same([runner.run(inputs[2])], wanted[2:])
        assert ssh_board.runs() == before + 3


def test_board_that_reboots(ssh_board):
    """Its temporary files have gone, and come back."""
    inputs, wanted = samples(SMALL, 2)
    where = TargetSettings(target=ssh_board.target)
    with open_model(SMALL, where) as runner:
        same([runner.run(inputs[0])], wanted[:1])
        gone = f"rm -rf {ssh_board.place}/neon8-*; rm {ssh_board.folder}/hook"
        ssh_board.hook(f'case $command in *" run "*) {gone}; {DROP};; esac')
        same([runner.run(inputs[1])], wanted[1:])
        assert len(ssh_board.left()) == 1


def test_folder_that_vanishes(adb_board):
    """Somebody cleans up there."""
    inputs, wanted = samples(SMALL, 2)
    with open_model(SMALL, TargetSettings(target=adb_board.target)) as runner:
        same([runner.run(inputs[0])], wanted[:1])
        for folder in adb_board.place.glob("neon8-*"):
            subprocess.run(["rm", "-rf", folder], check=True)
        same([runner.run(inputs[1])], wanted[1:])


def test_tries_have_a_bound(ssh_board):
    ssh_board.hook(f'case $command in *" describe "*) {DROP};; esac')
    with pytest.raises(SetupError, match=r"^ssh:board: lost 4 times, and given up: "):
        run(ssh_board.target, [])
    ssh_board.hook("")


def client(tmp_path, old, new):
    path = tmp_path / "client"
    text = path.read_text()
    assert old in text
    path.write_text(re.sub(old + ".*", new, text))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "UserKnownHostsFile",
            "UserKnownHostsFile /dev/null",
            "Host key verification failed.*; its key is not known here, or has changed",
        ),
        (
            "IdentityFile",
            "IdentityFile {sshd}/stranger",
            r"Permission denied.*; it takes none of your keys: run `ssh-copy-id board`",
        ),
        ("Port", "Port 1", "Connection refused; is sshd running there, at this port"),
        ("HostName", "HostName nowhere.invalid", "Could not resolve.*; check the name"),
    ],
)
def test_no_way_there(ssh_board, sshd, tmp_path, old, new, said):
    client(tmp_path, old, new.format(sshd=sshd))
    with pytest.raises(SetupError, match=f"^ssh:board: .*{said}") as seen:
        Board(link_to(ssh_board.target, ""))
    assert "\n" not in str(seen.value)


FULL = """case $command in "sh -c 'cat >"*"{0}"*) cat >/dev/null
echo "cat: write error: No space left on device" >&2; exit 1;; esac"""


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (
            "echo This account is currently not available.; exit 1",
            r"has no POSIX shell for this user \(it said: This account is",
        ),
        ("chmod() { :; }; PATH={folder}/tools:$PATH", "mounted noexec.*; set TMPDIR"),
        (
            FULL.format("/neon8-runner"),
            "neon8-runner cannot be copied: .*No space left",
        ),
        (FULL.format(".n8"), r"\.n8 cannot be copied: .*; its disk is full; make"),
        (
            f'case $command in *" digest"*) {SIGNAL.format("ILL")};; esac',
            "the processor lacks an instruction; try --isa neon",
        ),
        (
            f'case $command in *" describe "*) {SIGNAL.format("KILL")};; esac',
            "the runner was killed; out of memory",
        ),
        (
            'case $command in *" digest"*) echo nonsense; exit 0;; esac',
            "the runner's answer is damaged",
        ),
    ],
)
def test_what_a_board_lacks(ssh_board, sshd, hook, said):
    tools = sshd / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("chmod",):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o700)
    ssh_board.hook(hook.replace("{folder}", str(sshd)))
    with pytest.raises(SetupError, match=f"^ssh:board: .*{said}") as seen:
        run(ssh_board.target, [])
    assert "\n" not in str(seen.value)
    ssh_board.hook("")


def test_full_disk(ssh_board, tmp_path):
    """A real one, where this user may mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("no mounts here; test_what_a_board_lacks has a stand-in")
    try:
        ssh_board.hook(f"export TMPDIR={disk}")
        with pytest.raises(SetupError, match=r"No space left.*make room") as seen:
            Board(link_to(ssh_board.target, ""))
        assert "\n" not in str(seen.value)
        assert list(disk.iterdir()) == []
    finally:
        ssh_board.hook("")
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("machine", ["armv6l", "mips64", "riscv64"])
def test_wrong_machine(adb_board, machine):
    adb_board.machine(machine)
    with pytest.raises(SetupError, match=f"is '{machine}', for which there is no run"):
        Board(link_to(adb_board.target, ""))


def test_machine_that_is_another_one(ssh_board):
    """It says armv7l, and cannot run that."""
    ssh_board.machine("armv7l")
    (ssh_board.folder / "qemu").write_text("qemu-aarch64")
    with pytest.raises(SetupError, match="armv7/neon8-runner does not run there"):
        Board(link_to(ssh_board.target, ""))


def test_model_that_is_refused_there(adb_board):
    with pytest.raises(ModelError, match=r"\.n8: on adb:board: model: .*memory"):
        run(adb_board.target, [], max_bytes=1000)


def test_damage_on_the_way_back(ssh_board):
    flip = "sh -c \"$command\" | sed '1s/N8BATCH1/N8BOTCH1/'; exit 0"
    inputs, _ = samples(SMALL, 1)
    with open_model(SMALL, TargetSettings(target=ssh_board.target)) as runner:
        ssh_board.hook(f'case $command in *" run "*) {flip};; esac')
        with pytest.raises(
            ModelError, match="what came back from ssh:board is damaged"
        ):
            runner.run(inputs[0])
        ssh_board.hook("")


def test_other_bytes_are_an_error(adb_board, monkeypatch):
    inputs, wanted = samples(SMALL, 1)
    with BoardModel.open(SMALL, adb_board.target, "") as model:
        name = next(iter(wanted[0]))
        other = {n: a.copy() for n, a in wanted[0].items()}
        other[name].flat[3] += 1
        monkeypatch.setattr(model, "_run_there", lambda _: other)
        with pytest.raises(
            ModelError, match=f"output '{name}' of adb:board differs .*3"
        ):
            model.run(inputs[0])


def test_same_bytes_tells_zeros_apart():
    zeros = np.zeros(4, np.float32)
    same_bytes("y", zeros, zeros.copy(), "it")
    with pytest.raises(ModelError, match="in 4 of 4 values, first in value 0"):
        same_bytes("y", -zeros, zeros, "it")
    with pytest.raises(ModelError, match="another shape"):
        same_bytes("y", zeros[:3], zeros, "it")


@pytest.mark.usefixtures("adb_board")
@pytest.mark.parametrize("text", ["adb:other", "adb"])
def test_which_device(text):
    if text == "adb":
        Board(link_to(text, "")).close()
        return
    with pytest.raises(
        SetupError, match="device 'other' not found; `adb devices` lists"
    ):
        Board(link_to(text, ""))


def test_device_that_goes_away(adb_board):
    inputs, wanted = samples(SMALL, 1)
    with open_model(SMALL, TargetSettings(target=adb_board.target)) as runner:
        once = f"rm {adb_board.folder}/hook; echo adb: device offline >&2; exit 1"
        adb_board.hook(f'case "$command $*" in *" run "*) {once};; esac')
        same([runner.run(inputs[0])], wanted)
        adb_board.hook(
            "[ $command = pull ] || { echo adb: device offline >&2; exit 1; }"
        )
        with pytest.raises(SetupError, match=r"lost 4 times, and given up: .*offline"):
            runner.run(inputs[0])
        adb_board.hook("")


@pytest.mark.parametrize("tool", ["ssh", "adb"])
def test_tool_that_is_missing(tool, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        SetupError, match=f"^{tool} is not installed; it is in the pack"
    ):
        link_to({"ssh": "ssh:board", "adb": "adb"}[tool], "")


@pytest.mark.parametrize(
    "text",
    [
        *("ssh", "ssh:", "ssh:-oProxyCommand=x", "ssh:a@-b", "ssh:a b", "ssh:a:0"),
        *("ssh:a:65536", "ssh:a:x", "ssh:a;b", "ssh:$(x)", "ssh:a\n", "ssh:@a", "adb:"),
        *("adb:-x", "adb:a b", "adb:`x`", "usb", "arm", "", "ssh:a/b", "SSH:a"),
    ],
)
def test_targets_that_are_none(text):
    with pytest.raises(SettingsError, match=r"target: .* is not one of native, "):
        TargetSettings(target=text)


@pytest.mark.parametrize(
    "text",
    [
        *("ssh:pi", "ssh:pi@raspberrypi.local:2222", "ssh:root@192.168.1.2"),
        *("ssh:a@[::1]:22", "ssh:my-board", "adb", "adb:emulator-5554"),
        "adb:192.168.1.7:5555",
    ],
)
def test_targets(text):
    assert TargetSettings(target=text).target == text


def test_interrupted_run_cleans_up(ssh_board, tmp_path):
    """Ctrl-C, as a terminal sends it: to all processes of the group."""
    np.save(tmp_path / "x.npy", samples(SMALL, 1)[0][0]["image"])
    ssh_board.hook('case $command in *" --threads "*) sleep 60;; esac')
    code = (
        "import sys; sys.path.insert(0, 'tests/host/runtime/board')\n"
        "from pathlib import Path; from neon8.runtime.board import board\n"
        "board.prebuilt_file = lambda t, n: Path('build') / t[6:] / n\n"
        "from neon8.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["run", SMALL, "--input", tmp_path / "x.npy", "--target", ssh_board.target]
    # A shell's background jobs ignore it, and so would what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    with process:
        until = time.monotonic() + 60
        while "--threads" not in ssh_board.log() and time.monotonic() < until:
            time.sleep(0.05)
        assert len(ssh_board.left()) == 1
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"neon8: interrupted\n")
    assert ssh_board.left() == []
    ssh_board.hook("")


def test_records_that_are_damaged():
    data = batch.batch([batch.record([np.zeros((1, 2), np.int8)])])
    with Model.open(SMALL) as model:
        for size in range(len(data)):
            with pytest.raises(batch.DamagedError):
                batch.results(data[:size], 1, model.outputs)
