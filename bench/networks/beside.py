# SPDX-License-Identifier: Apache-2.0
"""Networks of today in int8, by neon8 and by onnxruntime with each of its settings."""

import math
import tempfile
from pathlib import Path
from typing import NamedTuple

import onnx

from bench import pages
from bench.accuracy import peers
from bench.networks import catalogue, samples
from bench.networks.measure import REFUSALS, sqnr
from neon8 import calibrate_model, compile_model
from neon8.calibrate.run.reference import Reference
from neon8.runtime import Model

CALIBRATION = 4
TEST = 2
PEER = "onnxruntime"
BUILD = Path(__file__).resolve().parents[2] / "build" / "accuracy" / "peers"
NETWORKS = (
    *("deit_tiny", "swin_tiny", "mobilevit_s", "efficientformer_l1", "segformer_b0"),
    *("depth_anything", "tinybert", "whisper_tiny", "silero_vad"),
    *("ppocr_detector", "ppocr_recogniser", "yolov8n", "yolo11n", "mobilefacenet"),
)
"""Those with attention, and the modern ones that are used beside them."""

INTRODUCTION = f"""\
# Beside onnxruntime

Made by

    {{command}}

SQNR in dB of all outputs against FP32, of networks with random weights that
`bench/networks` builds (see [networks](networks.md)): {CALIBRATION} samples calibrate,
{TEST} others judge. **neon8** is `neon8 calibrate` without options, run by the library;
**onnxruntime** is `quantize_static` of {{version}} with Q/DQ and a scale for each
channel of weights, computed in floats that are rounded where its Q/DQ says, and its
Softmax left in float32. **ahead** is by how much neon8 has more than the best of these
settings.

"""


class Beside(NamedTuple):
    """A row.  ahead: dB more than the best of the peer; notes: why settings failed."""

    cells: list[str]
    ahead: float
    notes: list[str]


def beside(name: str) -> Beside:
    """A network of the catalogue by both.  Raises what REFUSALS lists."""
    net, proto = catalogue.build(name)
    data = samples.inputs(net, CALIBRATION + TEST, seed=1)
    known, unseen = data[:CALIBRATION], data[CALIBRATION:]
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder) / f"{name}.onnx", Path(folder) / "made.onnx"
        onnx.save(proto, path)
        wanted = list(map(Reference(path).run, unseen))
        file = made.with_suffix(".n8")
        file.write_bytes(compile_model(path, calibrate_model(path, known)))
        with Model.open(file) as model, model.session() as session:
            ours = sqnr(map(session.run, unseen), wanted)

        def by_peer(setting: str) -> float | str:
            try:
                found = peers.made(PEER, setting, path, known, BUILD)
                onnx.save(peers.exact(found), made)
                return sqnr(map(Reference(made).run, unseen), wanted)
            except (peers.PeerError, *REFUSALS) as error:
                return str(error)

        theirs = {each: by_peer(each) for each in peers.PEERS[PEER].settings}
    failed = {each: why for each, why in theirs.items() if isinstance(why, str)}
    found = [theirs[each] for each in theirs if each not in failed]
    ahead = ours - max(found, default=math.nan)
    shown = ("failed" if each in failed else f"{theirs[each]:.1f}" for each in theirs)
    cells = [name, f"{ours:.1f}", *shown, f"{ahead:+.1f}"]
    return Beside(cells, ahead, [f"- {name}, {n}: {why}." for n, why in failed.items()])


def document(command: str, results: list[Beside]) -> str:
    """The page of a table for all networks, as Markdown."""
    version = peers.PEERS[PEER].version.replace("==", " ")
    header = ("network", "neon8", *peers.PEERS[PEER].settings, "ahead")
    notes = [note for result in results for note in result.notes]
    table = pages.table(header, (result.cells for result in results))
    text = INTRODUCTION.format(command=command, version=version)
    return "\n".join([text + table, *(["", *notes] if notes else []), ""])
