# SPDX-License-Identifier: Apache-2.0
"""One network by one recipe: calibrated, compiled, run on samples it has not seen."""

import contextlib
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import onnx

import neon8
from bench.accuracy import peer
from bench.accuracy.harden import EXACT, harden
from bench.accuracy.networks import Network
from neon8.calibrate.run.reference import Reference
from neon8.cli.main import main as neon8_command
from neon8.data.preprocess import Preprocess
from neon8.data.samples import gather
from neon8.evaluate.metrics import as_json
from neon8.files import write_atomic

FP32 = "FP32"
OPTIONS = {
    "plain": ("--plain",),
    "default": (),
    "thorough": ("--thorough",),
    "mixed": ("--max-cost", "1.1"),
}
"""What `neon8 calibrate` is given."""
PEER = "onnxruntime"
PEERS = {f"{PEER}-{method}": method for method in peer.METHODS}
RECIPES = (FP32, *OPTIONS, *PEERS)

Row = dict[str, object]
"""as_json() of an Evaluation, or {"refused": why}."""


@dataclass(frozen=True, slots=True)
class Case:
    """A float network, rewritten or, if rewriting is "", as it is.

    reference: computes what is wanted.
    """

    network: Network
    rewriting: str
    model: Path
    reference: Path

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.network.name, self.rewriting)))


def cases(network: Network, folder: Path) -> Iterator[Case]:
    """The network and its rewritings, which are written into the folder."""
    yield Case(network, "", network.model, network.model)
    folder.mkdir(parents=True, exist_ok=True)
    for by in network.harden:
        path = folder / f"{network.name}.{by}.onnx"
        model = onnx.load(network.model)
        harden(model, by)
        write_atomic(path, model.SerializeToString(deterministic=True))
        yield Case(network, by, path, network.model if by in EXACT else path)


def measure(case: Case, recipe: str) -> Row:
    """What the recipe loses on the samples after those that calibrate."""
    network = case.network
    with tempfile.TemporaryDirectory() as name:
        folder, settings = Path(name), None
        if network.preprocess:
            settings = folder / "preprocess.toml"
            settings.write_text(network.preprocess)
        preprocess = None if settings is None else Preprocess.load(settings)
        if recipe == FP32:
            made = case.model
        elif recipe in PEERS:
            made = folder / "quantized.onnx"
            samples = gather(
                network.data, Reference(case.model).inputs, preprocess=preprocess
            )
            first = (one.inputs for one in islice(samples, network.calibrate))
            peer.quantized(case.model, first, PEERS[recipe], made)
        else:
            made = folder / "network.n8"
            refused = _compiled(case, settings, OPTIONS[recipe], made)
            if refused:
                return {"refused": refused.replace(f"{folder}/", "")}
        return as_json(
            neon8.evaluate_model(
                made,
                network.data,
                reference=case.reference,
                preprocess=preprocess,
                skip=network.calibrate,
                limit=network.evaluate,
            )
        )


def _compiled(
    case: Case, settings: Path | None, options: tuple[str, ...], made: Path
) -> str:
    """Write the .n8 file as a user would.  Why it cannot be, or ""."""
    table = made.with_name("scales.json")
    data = [*("--data", case.network.data), *("--limit", case.network.calibrate)]
    if settings is not None:
        data += ["--preprocess", settings]
    for words in (
        ("calibrate", case.model, *data, *options, "-o", table, "--quiet"),
        ("compile", case.model, "--scales", table, "-o", made, "--quiet"),
    ):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            status = neon8_command([str(word) for word in words])
        if status:
            return said.getvalue().strip().removeprefix("neon8: error: ")
    return ""
