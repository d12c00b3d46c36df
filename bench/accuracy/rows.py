# SPDX-License-Identifier: Apache-2.0
"""One network by one recipe: calibrated, compiled, run on samples it has not seen."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import onnx

import neon8
from bench.accuracy import peers
from bench.accuracy.harden import EXACT, harden
from bench.accuracy.networks import Network, prepared
from neon8.calibrate.run.reference import Reference
from neon8.data.samples import gather
from neon8.errors import Neon8Error
from neon8.evaluate.detection import Matching
from neon8.evaluate.evaluate import reading_of
from neon8.evaluate.heads import Option, parse
from neon8.evaluate.metrics import Squares, tally_of
from neon8.evaluate.runner import open_float
from neon8.evaluate.tasks import Setup
from neon8.files import write_atomic
from neon8.settings.stages import JudgeSettings
from neon8.text import finite

FP32 = "FP32"
OPTIONS = {
    "plain": {"plain": True},
    "default": {},
    "thorough": {"thorough": True},
    "mixed 1.1": {"max_cost": 1.1},
    "mixed 1.25": {"max_cost": 1.25},
    "plain of 1": {"plain": True, "limit": 1},
    "default of 1": {"limit": 1},
}
"""What calibrate_model() is given."""
SEARCHES = ("mixed 1.1", "mixed 1.25")
"""Take minutes, so they are for networks that ask for them."""
REWRITTEN = (FP32, "plain", "default", "onnxruntime")
"""What shows how much of a network its rewritings keep."""
RECIPES = (FP32, *OPTIONS, *peers.PEERS)

Row = dict[str, Any]
"""finite() of an Evaluation with `samples`, see Watched; or {"refused": why}.

setting: of a peer, the best.  failed: why, of those that failed.
"""


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

    @property
    def recipes(self) -> tuple[str, ...]:
        """Those of the page."""
        if self.rewriting:
            return REWRITTEN
        left = set(SEARCHES) - set(self.network.searches)
        return tuple(recipe for recipe in RECIPES if recipe not in left)


def cases(network: Network, folder: Path) -> Iterator[Case]:
    """The network and its rewritings, which are written into the folder."""
    network = prepared(network, folder)
    yield Case(network, "", network.model, network.model)
    for by in network.harden:
        path = folder / f"{network.name}.{by}.onnx"
        model = onnx.load(network.model)
        harden(model, by)
        write_atomic(path, model.SerializeToString(deterministic=True))
        yield Case(network, by, path, network.model if by in EXACT else path)


def measure(case: Case, recipe: str, folder: Path) -> Row:
    """What the recipe loses on the samples after those that calibrate.

    folder: of the environments of peers, and what they made.
    """
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "network.onnx"
        if recipe == FP32:
            return _evaluated(case, case.model)
        if recipe in OPTIONS:
            made = made.with_suffix(".n8")
            try:
                _compiled(case, OPTIONS[recipe], made)
            except Neon8Error as error:
                return {"refused": str(error)}
            return _evaluated(case, made)
        network = case.network
        inputs = Reference(case.model).inputs
        samples = gather(network.data, inputs, preprocess=network.preprocess)
        first = [dict(one.inputs) for one in islice(samples, network.calibrate)]

        best: Row = {"refused": ""}
        failed = {}
        for setting in peers.PEERS[recipe].settings:
            try:
                model = peers.made(recipe, setting, case.model, first, folder)
            except peers.PeerError as error:
                failed[setting] = str(error)
                continue
            onnx.save(peers.exact(model), made)
            row = _evaluated(case, made) | {"setting": setting, "failed": failed}
            best = max(best, row, key=_rank)
        return best if "setting" in best else {"refused": "; ".join(failed.values())}


def _rank(row: Row) -> float:
    value = decibels(row)
    return -math.inf if "refused" in row else math.inf if value is None else value


def decibels(row: Row) -> float | None:
    """The SQNR of the worst output, if there are several.

    None: refused, or no error at all, which JSON cannot say otherwise.
    """
    if len(row.get("outputs", ())) > 1:
        each = (one["sqnr_db"] for one in row["outputs"])
        return min((value for value in each if value is not None), default=None)
    centred = row.get("sqnr_centred_db")
    return row.get("sqnr_db") if centred is None else centred


@dataclass(slots=True)
class Watched:
    """What each sample adds, so that networks can be compared in pairs.

    errors: squares of the scores, or of each of several outputs.  right: top-1.  boxes:
    those matched, and those of this network and of FP32 together.
    """

    reference: Path
    detection: Option
    errors: list[list[Squares]] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    boxes: list[tuple[int, int]] = field(default_factory=list)

    def each(self, several: Iterable[Any]) -> Iterator[Any]:
        """For evaluate_model's watch."""
        with open_float(self.reference) as runner:
            setup = Setup.of(JudgeSettings(), runner.inputs, runner.maker)
            found, read = Matching(self.detection, setup.image), None
            for ran in several:
                yield ran
                got, wanted = list(ran.outputs.values()), list(ran.wanted.values())
                read = read or reading_of(runner, ran.wanted)
                tally = tally_of(
                    got, labels=ran.sample.labels, reference=wanted, reading=read
                )
                scored = len(got) == 1 and read.kind is not None
                each = [output.whole for output in tally.outputs]
                self.errors.append([tally.scores] if scored else each)
                self.right.append(bool(tally.top1))
                before = len(found.overlaps), found.boxes + found.reference_boxes
                found.add(ran.wanted, got)
                after = len(found.overlaps), found.boxes + found.reference_boxes
                self.boxes.append((after[0] - before[0], after[1] - before[1]))

    @property
    def noise(self) -> list[float]:
        """Squared error of each sample, of the outputs in parts of what they hold."""
        whole = [
            sum(one.signal for one in each) for each in zip(*self.errors, strict=True)
        ]
        return [
            sum(one.noise / (of or 1) for one, of in zip(each, whole, strict=True))
            for each in self.errors
        ]


def _evaluated(case: Case, model: Path) -> Row:
    network = case.network
    detection = parse(network.detection) if network.detection else Option()
    watched = Watched(case.reference, detection)
    result = neon8.evaluate_model(
        model,
        network.data,
        reference=case.reference,
        preprocess=network.preprocess,
        detection=detection,
        skip=network.calibrate,
        limit=network.evaluate,
        workers=1,
        watch=watched.each,
    )
    samples = {key: getattr(watched, key) for key in ("noise", "right", "boxes")}
    return finite(result) | {"samples": samples}


def _compiled(case: Case, options: Mapping[str, Any], made: Path) -> None:
    """Write the .n8 file.  Neon8Error."""
    network = case.network
    given = {"preprocess": network.preprocess, "limit": network.calibrate} | options
    table = neon8.calibrate_model(case.model, network.data, **given)
    neon8.save_model(neon8.compile_model(case.model, table), made)
