# SPDX-License-Identifier: Apache-2.0
"""report_model(): everything that a report says, each thing computed once."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from neon8.calibrate import calib_file
from neon8.data.classes import class_names
from neon8.data.picture import picture
from neon8.data.samples import Data, loaded
from neon8.errors import ModelError
from neon8.evaluate.evaluate import evaluate_model
from neon8.evaluate.network import open_network
from neon8.machines import NATIVE
from neon8.progress import Stages, nobody, through
from neon8.quant import table_json
from neon8.quant.scale_table import ScaleTable
from neon8.refine.diagnosis import SAMPLES, diagnose_model
from neon8.report import figures, search
from neon8.report.compared import compared, load_table
from neon8.report.facts import Report, SampleFacts, Values
from neon8.report.layers import layers_of, seen_values, tensors_of
from neon8.report.predicted import predicted
from neon8.report.samples import Book, Kept
from neon8.runtime import Model, StepInfo
from neon8.runtime.cut import Around
from neon8.runtime.targets import CUT, opened
from neon8.settings.reader import takes
from neon8.settings.shapes import settled
from neon8.settings.stages import DEFAULTS, Settings, TargetSettings
from neon8.settings.words import options_again
from neon8.version import __version__

HERE = "this machine"
NO_PATH = "DATA"
"""In commands: samples that are arrays."""


@takes("network", "data", "target", "run", "evaluate", "judge", "diagnose", "report")
def report_model(
    model: str | Path,
    table: str | Path,
    compiled: str | Path,
    data: Data,
    *,
    progress: Stages = nobody,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Report:
    """Gather what is known of a network, its scale table and its .n8 file.

    data: a path, or arrays, see observe_model(), that can be gone through several
    times; take samples that did not calibrate the network.  All of them are run; the
    diagnosis takes the first 20.  The int8 network runs on this machine, with the
    results of any other; target, cpu and isa say whose kernels are told.  progress:
    told a stage, how much of it is done, and of how much.

    As evaluate_model() and diagnose_model().  CalibrationError, TableError: a file is
    of another network.  ModelError: the .n8 file is of another network or table.
    Of a network that must be cut `compiled` is NET.cut.json, and diagnosed is the part
    that neon8 runs.
    """
    onnx, wanted = Path(model), settings.report
    shapes, usual = settings.network.shapes, table_json.load(table).shapes
    network = open_network(onnx, shapes=shapes, usual=usual)
    scales = load_table(Path(table), network.graph.digest)
    network = network.runnable(scales)
    graph, n8 = network.graph, Path(compiled)
    if n8.suffix == CUT:
        n8 = Around(n8).path
    elif network.cut:
        text = "is a part of a network; give NET.cut.json, which tells of all its files"
        raise ModelError(f"{compiled}: {text}")
    others = [
        (path, None if path.suffix == ".n8" else load_table(path, graph.digest))
        for path in wanted.others
    ]
    curve = () if wanted.search is None else search.load(wanted.search, graph.digest)
    fixed = None if shapes is None else settled(shapes, usual)
    at_usual = replace(settings, network=replace(settings.network, shapes=fixed))
    predictions = tuple(predicted(n8, name, at_usual) for name in wanted.boards)
    made = [graph.tensors[name].dims for name in graph.outputs]
    names = () if wanted.labels is None else class_names(wanted.labels, made)
    seen: dict[str, Values] = {}
    if wanted.calibration is not None:
        observation = calib_file.load(wanted.calibration)
        seen = seen_values(observation, graph, scales)
    with opened(n8, settings.target) as there:
        facts, memory, steps = there.facts, there.memory, there.steps
    _check(n8, facts.digest, steps, graph.digest, scales)
    for path in (path for path, other in others if other is None):
        with Model.open(path) as other_model:
            _check(path, other_model.facts.digest, (), graph.digest, scales)

    asked = replace(settings.evaluate, reference=settings.evaluate.reference or onnx)
    here = replace(settings, evaluate=asked, target=TargetSettings())
    watch = partial(through, progress=progress, stage="evaluate")
    book = Book(wanted.shown)
    evaluation = evaluate_model(
        compiled, data, settings=here, watch=watch, seen=book.add
    )
    few = min(settings.data.limit or SAMPLES, SAMPLES)
    part = replace(here, data=replace(settings.data, limit=few))
    diagnosis = diagnose_model(onnx, table, data, settings=part, progress=progress)
    measure = partial(
        compared,
        table=scales,
        mine=book.figures(),
        model=onnx,
        data=data,
        settings=replace(here, compile=replace(here.compile, cut=network.cut)),
    )
    found = tuple(measure(path, other) for path, other in others)
    tensors = tensors_of(graph, scales, diagnosis, seen)
    files = (str(model), str(table), str(compiled), _path(data))
    said = _commands(files, here, settings, few)
    preprocess = loaded(settings.data.preprocess)
    folder = f"{Path(files[3]).parent}/" if files[3] != NO_PATH else ""
    show = partial(
        _shown, folder=folder, bgr=preprocess is not None and preprocess.color == "bgr"
    )
    return Report(
        model=files[0],
        table=files[1],
        compiled=files[2],
        data=files[3],
        version=__version__,
        where=_where(settings.target),
        inputs=graph.inputs,
        outputs=graph.outputs,
        figures=(
            *figures.of_evaluation(evaluation, said["evaluate"]),
            *figures.of_model(facts.size, memory.total(), steps, said["inspect"]),
            *figures.of_table(
                len(diagnosis.guards), shlex.join(["neon8", "inspect", files[1]])
            ),
            *figures.of_predictions(predictions),
            *figures.of_compared(found, said["report"]),
        ),
        evaluation=evaluation,
        diagnosis=diagnosis,
        diagnose=said["diagnose"],
        layers=layers_of(graph, scales, diagnosis, tensors, steps),
        taken=tuple(tensors[name] for name in graph.inputs if name in tensors),
        samples=tuple(map(show, book.kept())),
        confusions=book.confusions(),
        compared=found,
        curve=curve,
        predictions=predictions,
        names=names,
    )


def _commands(
    files: tuple[str, str, str, str], here: Settings, settings: Settings, few: int
) -> dict[str, str]:
    """What shows the figures, by the word after neon8, ready to paste."""
    model, table, compiled, data = files
    samples = ("--data", data)
    measured = ("network", "data", "evaluate", "judge")
    part = replace(settings, data=replace(settings.data, limit=None))
    looked = options_again(part, "network", "data", "judge", "diagnose")
    stages = ("network", "data", "target", "evaluate", "judge", "diagnose")
    others = ("--compare", *map(str, settings.report.others), "-o", "report.html")
    lines = {
        "evaluate": (compiled, *samples, *options_again(here, *measured)),
        "diagnose": (model, table, *samples, *looked, "--limit", str(few)),
        "inspect": (compiled, *options_again(settings, "target")),
        "report": (
            *(model, table, compiled, *samples),
            *(*options_again(settings, *stages), *others),
        ),
    }
    return {name: shlex.join(["neon8", name, *own]) for name, own in lines.items()}


def _path(data: Data) -> str:
    """The path of the samples, or what stands for arrays."""
    return str(data) if isinstance(data, str | Path) else NO_PATH


def _where(target: TargetSettings) -> str:
    return HERE if target.target == NATIVE else f"{target.target}, {target.core}"


def _check(
    path: Path,
    digest: str,
    steps: Iterable[StepInfo],
    wanted: str,
    table: ScaleTable,
) -> None:
    """ModelError: the .n8 file was compiled from another network or table."""
    if digest != wanted:
        raise ModelError(
            f"{path}: was compiled from another network ({digest[:12]}..., not "
            f"{wanted[:12]}...); compile this one"
        )
    for step in steps:
        entry = table.tensors.get(step.output)
        if entry is not None and step.quantized and step.scale != entry.scale:
            raise ModelError(
                f"{path}: was compiled with another table: {step.output!r} has scale "
                f"{step.scale:.6g}, not {entry.scale:.6g}; compile with this one"
            )


def _shown(kept: Kept, *, folder: str, bgr: bool) -> SampleFacts:
    """The facts of a sample, with its picture.  folder: left out of its name."""
    facts = replace(kept.facts, name=kept.facts.name.removeprefix(folder))
    if kept.image is None:
        return facts
    return replace(facts, picture=picture(kept.image, bgr=bgr))
