# SPDX-License-Identifier: Apache-2.0
"""Networks of today in int8, by neon8 and by onnxruntime with each of its settings."""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Both in dB.  theirs: by setting, or why there is no such network."""

    name: str
    ours: float
    theirs: Mapping[str, float | str]

    @property
    def best(self) -> float:
        found = [each for each in self.theirs.values() if not isinstance(each, str)]
        return max(found, default=math.nan)


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
    return Beside(name=name, ours=ours, theirs=theirs)


def cells(result: Beside) -> list[str]:
    theirs = [
        "failed" if isinstance(each, str) else f"{each:.1f}"
        for each in result.theirs.values()
    ]
    ahead = f"{result.ours - result.best:+.1f}"
    return [result.name, f"{result.ours:.1f}", *theirs, ahead]


def document(command: str, results: list[Beside]) -> str:
    """The page of a table for all networks, as Markdown."""
    version = peers.PEERS[PEER].version.replace("==", " ")
    settings = peers.PEERS[PEER].settings
    header = ("network", "neon8", *settings, "ahead")
    notes = [
        f"- {result.name}, {setting}: {why}."
        for result in results
        for setting, why in result.theirs.items()
        if isinstance(why, str)
    ]
    table = pages.table(header, map(cells, results))
    text = INTRODUCTION.format(command=command, version=version)
    return "\n".join([text + table, *(["", *notes] if notes else []), ""])
