# SPDX-License-Identifier: Apache-2.0
"""A network on samples, alone or beside the FP32 network."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.calibrate.run.threads import cores
from neon8.data.inputs import batch_of, of_sample
from neon8.data.parallel import side_by_side
from neon8.data.samples import Data, Sample, gather
from neon8.errors import LOG, DataError
from neon8.evaluate.detection import Matching
from neon8.evaluate.heads import Heads, Option
from neon8.evaluate.labels import check_labels, hint, with_offset
from neon8.evaluate.metrics import Evaluation, Tally, by_row, summary, tally_of
from neon8.evaluate.runner import FloatRunner, open_float
from neon8.evaluate.scores import LEAST, Reading, reading
from neon8.evaluate.tasks import Judged, Setup, Task, tasks_of
from neon8.graph.onnx_file import Shapes
from neon8.progress import nobody
from neon8.settings.reader import takes
from neon8.settings.stages import DEFAULTS, Settings

SAME_LAYOUT = (
    "compare one that lies as the reference: compiled without --io-layout nhwc and "
    "--io-image, its values are the same"
)


@dataclass(frozen=True, slots=True)
class _Ran:
    """A sample, and what both networks make of it; wanted: None without a reference."""

    sample: Sample
    outputs: dict[str, Array]
    wanted: dict[str, Array] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """A run of a network beside its reference, whose outputs are `wanted`.

    rows: how many samples it has.  tasks: names; values: what each says of the samples.
    reading, floor: of the scores of the first output, as tally_of() takes them.  heads:
    of a detector.
    """

    sample: Sample
    wanted: dict[str, Array]
    got: dict[str, Array]
    rows: int
    tasks: tuple[str, ...]
    values: list[list[float]]
    reading: Reading
    floor: float
    heads: Heads | None


@takes("network", "data", "target", "run", "evaluate", "judge")
def evaluate_model(
    model: str | Path,
    data: Data,
    *,
    watch: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    seen: Callable[[Seen], None] = nobody,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Evaluation:
    """Run an ONNX or .n8 file, or a cut network, on samples and measure it.

    data: a path, or arrays, see observe_model().  A reference has the same inputs; its
    first output is the one that is classified, and outputs are paired by name, or in
    order if the names differ.  watch: wraps what there is for each sample, as tqdm
    does.  seen: told each run beside a reference, in their order.  GraphError,
    ModelError, DataError, SetupError, SettingsError.
    """
    asked, shapes = settings.evaluate, settings.network.shapes
    reference, label_offset = asked.reference, asked.label_offset
    option = Setup(detection=settings.judge.detection).option
    with ExitStack() as stack:
        runner = stack.enter_context(open_float(Path(model), shapes, settings.target))
        compared, loose = None, runner.loose
        if loose:
            left = ", ".join(map(repr, sorted(loose)))
            text = "%s: the sizes of outputs %s depend on the data: not judged"
            LOG.warning(text, model, left)
        if reference is not None:
            compared = stack.enter_context(
                open_float(reference, shapes or bounds_of(runner))
            )
            check_same_inputs(reference, runner, compared)
        elif option != Option():
            raise DataError("detection: boxes are matched with those of a --reference")
        elif settings.judge.metric:
            raise DataError("metric: outputs are compared with those of a --reference")
        samples = gather(data, runner.inputs, settings=settings)
        tally, read = Tally(), None
        names: tuple[str, ...] = ()
        rows, boxes, judged = batch_of(runner.inputs), Matching(option), Judged()
        tasks: dict[tuple[tuple[int, ...], ...], tuple[Task, ...]] = {}

        def run(raw: Sample) -> _Ran:
            sample = with_offset(raw, label_offset)
            outputs = float_outputs(str(model), runner, sample, loose)
            wanted = None
            if compared is not None:
                wanted = float_outputs(str(reference), compared, sample, loose)
                if outputs.keys() == wanted.keys():
                    outputs = {name: outputs[name] for name in wanted}
            return _Ran(sample, outputs, wanted)

        both = [each for each in (runner, compared) if each is not None]
        most = [each.most for each in both if each.most is not None]
        threads = min([settings.run.workers or runner.best or cores(), *most])
        several = stack.enter_context(side_by_side(samples, run, workers=threads))
        for each in both:
            stack.callback(each.stop)  # before waiting for the threads
        for ran in watch(several):
            sample, mine, wanted = ran.sample, list(ran.outputs.values()), None
            if ran.wanted is not None and compared is not None:
                wanted, names = list(ran.wanted.values()), tuple(ran.wanted)
                check_same_sizes(sample, mine, wanted)
                shapes_here = tuple(each.shape for each in sample.inputs.values())
                here = Setup.of(
                    settings.judge,
                    of_sample(runner.inputs, sample.inputs),
                    compared.maker,
                    labelled=bool(sample.labels),
                )
                boxes.add(ran.wanted, mine, rows, here.image)
                if shapes_here not in tasks:
                    tasks[shapes_here] = tasks_of(ran.wanted, here)
                    judged.begin(tasks[shapes_here], sample.name)
                got = dict(zip(ran.wanted, mine, strict=True))
                values = [
                    task.values(ran.wanted, got, sample.labels, rows)
                    for task in tasks[shapes_here]
                ]
                judged.add(values)
                read = read or reading_of(compared, ran.wanted, rows)
            check_labels(sample, mine[0], rows, label_offset)
            step = runner.steps.get(next(iter(ran.outputs)), 0.0)
            floor = max(LEAST, step / 2)  # what the first output tells from 0
            tally += tally_of(
                mine,
                rows=rows,
                labels=sample.labels,
                reference=wanted,
                reading=read,
                floor=floor,
            )
            if ran.wanted is not None and read is not None:
                seen(
                    Seen(
                        sample=sample,
                        wanted=ran.wanted,
                        got=got,
                        rows=rows,
                        tasks=tuple(task.name for task in judged.tasks),
                        values=values,
                        reading=read,
                        floor=floor,
                        heads=boxes.at_sizes[here.image],
                    )
                )
    if tally.n == 0:
        raise DataError("no samples to evaluate")
    return summary(
        tally,
        names=names,
        reading=read,
        hint=hint(tally, label_offset),
        detection=boxes.result(),
        tasks=judged.figures(),
    )


def bounds_of(runner: FloatRunner) -> Shapes | None:
    """As --shape gives them, of a network with open dimensions."""
    if not any(each.bounds for each in runner.inputs.values()):
        return None
    return {name: each.bounds or each.shape for name, each in runner.inputs.items()}


def reading_of(
    runner: FloatRunner, outputs: dict[str, Array], rows: int = 1
) -> Reading:
    """How the scores of the FP32 network are read, by its file or its first sample."""
    name, scores = next(iter(outputs.items()))
    return reading(runner.maker(name), by_row(scores, rows)[0])


def float_outputs(
    path: str,
    runner: FloatRunner,
    sample: Sample,
    loose: frozenset[str] = frozenset(),
) -> dict[str, Array]:
    """The outputs for one sample, float32, without those in `loose`.

    DataError: NaN or infinity among them, none, or a first one without values.
    """
    found = runner.run(dict(sample.inputs))
    outputs = {name: array for name, array in found.items() if name not in loose}
    if not outputs:
        text = "the sizes of all outputs depend on the data, so nothing can be judged"
        raise DataError(f"{path}: {text}; add an output that stands before them")
    for name, array in outputs.items():
        if not np.isfinite(array).all():
            raise DataError(
                f"{sample.name}: output {name!r} of {path} is not finite; check the "
                "input's range and the network"
            )
    name, scores = next(iter(outputs.items()))
    if scores.size == 0:
        raise DataError(f"{sample.name}: output {name!r} of {path} is empty")
    return outputs


def check_same_inputs(path: Path, runner: FloatRunner, reference: FloatRunner) -> None:
    """DataError: the two networks do not take the same arrays."""
    mine, other = (
        {name: each.may_be for name, each in one.inputs.items()}
        for one in (runner, reference)
    )
    every = (*runner.inputs.values(), *reference.inputs.values())
    if any(each.bounds for each in every):  # each sample shows whether both take it
        mine, other = dict.fromkeys(mine, ""), dict.fromkeys(other, "")
    if mine != other:
        raise DataError(
            f"{path}: takes {_listed(reference)}, but the network to evaluate takes "
            f"{_listed(runner)}; {SAME_LAYOUT}"
        )
    for name in sorted(runner.converted ^ reference.converted):
        raise DataError(
            f"{path}: {name!r} of one of the two networks lies N H W C and that of the "
            f"other N C H W, which the dimensions do not show; {SAME_LAYOUT}"
        )


def _listed(runner: FloatRunner) -> str:
    return ", ".join(
        f"{name!r} {each.may_be if each.bounds else list(each.shape)}"
        for name, each in runner.inputs.items()
    )


def check_same_sizes(sample: Sample, outputs: list[Array], wanted: list[Array]) -> None:
    """DataError: outputs that cannot be compared value by value."""
    sizes, expected = ([array.size for array in a] for a in (outputs, wanted))
    if sizes != expected:
        raise DataError(
            f"{sample.name}: outputs of {sizes} values, the reference has {expected}"
        )
    for output, other in zip(outputs, wanted, strict=True):
        # Dimensions of 1 move nothing, and what is flattened keeps its order.
        order, theirs = ([n for n in a.shape if n != 1] for a in (output, other))
        if output.ndim == other.ndim and order != theirs:
            raise DataError(
                f"{sample.name}: an output of {list(output.shape)}, the reference has "
                f"{list(other.shape)}; {SAME_LAYOUT}"
            )
