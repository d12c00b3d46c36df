# SPDX-License-Identifier: Apache-2.0
"""One network by one recipe: calibrated, compiled, run on samples it has not seen."""

import contextlib
import hashlib
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import onnx
import onnxruntime

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


class Rows:
    """Rows that are measured once: they are kept as files in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def known(self, case: Case, recipe: str) -> Row | None:
        """The row, if nothing that it depends on has changed since."""
        path = self._path(case, recipe)
        return json.loads(path.read_text()) if path.exists() else None

    def measured(self, case: Case, recipe: str) -> Row:
        """The row, kept."""
        row = self.known(case, recipe)
        if row is None:
            row = measure(case, recipe)
            path = self._path(case, recipe)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, json.dumps(row, indent=1).encode())
        return row

    def _path(self, case: Case, recipe: str) -> Path:
        network = case.network
        facts = [
            *(file_digest(case.model), file_digest(case.reference)),
            *(data_digest(network.data), network.preprocess),
            *(network.calibrate, network.evaluate),
            *(maker_digest(recipe), OPTIONS.get(recipe)),
        ]
        digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        words = f"{case.name} {recipe}".replace(" ", ".")
        return self.folder / f"{words}.{digest[:16]}.json"


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


@cache
def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def data_digest(path: Path) -> str:
    """Of all files; of pictures, their names and sizes stand for them."""
    if path.is_file():
        return file_digest(path)
    files = sorted(each for each in path.rglob("*") if each.is_file())
    listed = [(str(each.relative_to(path)), each.stat().st_size) for each in files]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def maker_digest(recipe: str) -> str:
    """Of the programs that a row depends on: neon8, or what compares and the peer."""
    package = Path(neon8.__file__).parent
    if recipe in OPTIONS:
        return _sources(package, package.parents[1] / "build" / "native")
    own = _sources(package / "evaluate")
    return f"{own} {onnxruntime.__version__} {file_digest(Path(peer.__file__))}"


@cache
def _sources(*folders: Path) -> str:
    """Of the Python sources and libraries in them."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".so"):
                digest.update(
                    f"{path.relative_to(folder)} {file_digest(path)}".encode()
                )
    return digest.hexdigest()
