# SPDX-License-Identifier: Apache-2.0
"""What int8 costs: top-1, top-5, agreement and SQNR, one sample at a time.

The metrics are pure functions. Only a few sums are kept, so memory does not depend on
the number of samples.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neon8.data.inputs import batch_of
from neon8.data.preprocess import Preprocess
from neon8.data.samples import Data, Sample, gather
from neon8.errors import DataError
from neon8.evaluate.runner import FloatRunner, open_float
from neon8.graph.onnx_file import Shapes

Array = npt.NDArray[np.generic]

TOP = 5
SAME_LAYOUT = (
    "compare one that lies as the reference: compiled without --io-layout nhwc and "
    "--io-image, its values are the same"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """n: samples seen; top1, top5, agreement: percentages, 0 to 100.

    None: no labels, or no reference.  sqnr_db is infinite where the outputs are equal.
    """

    n: int
    top1: float | None
    top5: float | None
    agreement: float | None
    sqnr_db: float | None


def as_json(result: Evaluation) -> dict[str, float | None]:
    """A JSON object; None for what is not known, and for infinity, which JSON lacks."""
    return {
        name: None if value is None or math.isinf(value) else value
        for name, value in asdict(result).items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sums over the samples seen so far; signal, noise: sums of squares."""

    n: int = 0
    labelled: int = 0
    top1: int = 0
    top5: int = 0
    compared: int = 0
    agreed: int = 0
    signal: float = 0.0
    noise: float = 0.0


def rank(scores: Array, index: int) -> int:
    """The number of entries before `index`: larger, or equal with a lower index.

    scores: any shape, read flat.  NaN is smaller than everything.
    """
    values = _comparable(scores)
    own = values[index]
    return int(np.count_nonzero(values > own)) + int(
        np.count_nonzero(values[:index] == own)
    )


def top1(scores: Array) -> int:
    """Index of the largest entry, the lowest where several are equal."""
    return int(np.argmax(_comparable(scores)))


def _comparable(scores: Array) -> npt.NDArray[np.float64]:
    values = np.asarray(scores, np.float64).reshape(-1)
    return np.where(np.isnan(values), -np.inf, values)


def sqnr_db(signal: float, noise: float) -> float:
    """10 log10(signal / noise); infinite without noise, else -inf without signal."""
    if noise == 0:
        return math.inf
    if signal == 0:
        return -math.inf
    return 10 * (math.log10(signal) - math.log10(noise))


def add_sample(
    tally: Tally,
    outputs: list[Array],
    *,
    rows: int = 1,
    labels: Sequence[int] = (),
    reference: list[Array] | None = None,
) -> Tally:
    """The tally with one more run.

    outputs, reference: real values, the first being the one that is classified.  rows:
    how many samples the network takes at once.  labels: the class of each, or none.
    """
    scores = by_row(outputs[0], rows)
    places = [rank(each, label) for each, label in zip(scores, labels, strict=False)]
    compared = agreed = 0
    signal = noise = 0.0
    if reference is not None:
        compared = len(scores)
        pairs = zip(scores, by_row(reference[0], rows), strict=True)
        agreed = sum(top1(got) == top1(wanted) for got, wanted in pairs)
        for wanted, got in zip(reference, outputs, strict=True):
            want = np.asarray(wanted, np.float64).reshape(-1)
            error = want - np.asarray(got, np.float64).reshape(-1)
            signal += float(want @ want)
            noise += float(error @ error)
    return Tally(
        n=tally.n + rows,
        labelled=tally.labelled + len(places),
        top1=tally.top1 + sum(place == 0 for place in places),
        top5=tally.top5 + sum(place < TOP for place in places),
        compared=tally.compared + compared,
        agreed=tally.agreed + agreed,
        signal=tally.signal + signal,
        noise=tally.noise + noise,
    )


def by_row(scores: Array, rows: int) -> list[Array]:
    """The scores of each sample; all as one if their first axis is not the samples."""
    return list(scores) if rows > 1 and scores.shape[:1] == (rows,) else [scores]


def summary(tally: Tally) -> Evaluation:
    """The figures that follow from the sums."""

    def percent(part: int, whole: int) -> float | None:
        return 100.0 * part / whole if whole else None

    return Evaluation(
        n=tally.n,
        top1=percent(tally.top1, tally.labelled),
        top5=percent(tally.top5, tally.labelled),
        agreement=percent(tally.agreed, tally.compared),
        sqnr_db=sqnr_db(tally.signal, tally.noise) if tally.compared else None,
    )


def evaluate_model(
    model: str | Path,
    data: Data,
    *,
    reference: str | Path | None = None,
    target: str = "native",
    cpu: str = "max",
    isa: str | None = None,
    max_bytes: int | None = None,
    shapes: Shapes | None = None,
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
    watch: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
) -> Evaluation:
    """Run an ONNX or .n8 file on samples and measure it.

    data: see neon8.data.samples.gather.  reference: the FP32 network to compare with,
    with the same inputs and with its outputs in the same order.  target, cpu, isa,
    max_bytes: where an .n8 file runs, and in how much memory.  shapes: of inputs whose
    dimensions an ONNX file leaves open.  watch: wraps the
    samples, as tqdm does.  GraphError, ModelError, DataError, SetupError.
    """
    with ExitStack() as stack:
        runner = stack.enter_context(
            open_float(
                Path(model),
                shapes=shapes,
                target=target,
                cpu=cpu,
                isa=isa,
                max_bytes=max_bytes,
            )
        )
        compared = None
        if reference is not None:
            compared = stack.enter_context(open_float(Path(reference), shapes=shapes))
            _check_same_inputs(Path(reference), runner, compared)
        tally, rows = Tally(), batch_of(runner.inputs)
        samples = gather(
            data, runner.inputs, preprocess=preprocess, limit=limit, skip=skip
        )
        for sample in watch(samples):
            outputs = float_outputs(str(model), runner, sample)
            wanted = None
            if compared is not None:
                wanted = float_outputs(str(reference), compared, sample)
                _check_same_sizes(sample, outputs, wanted)
            check_labels(sample, outputs[0], rows)
            tally = add_sample(
                tally, outputs, rows=rows, labels=sample.labels, reference=wanted
            )
    if tally.n == 0:
        raise DataError("no samples to evaluate")
    return summary(tally)


def float_outputs(path: str, runner: FloatRunner, sample: Sample) -> list[Array]:
    """The outputs for one sample, float32.  DataError: NaN or infinity among them."""
    outputs = runner.run(dict(sample.inputs))
    for name, array in outputs.items():
        if not np.isfinite(array).all():
            raise DataError(
                f"{sample.name}: output {name!r} of {path} is not finite; check the "
                "input's range and the network"
            )
    return list(outputs.values())


def _check_same_inputs(path: Path, runner: FloatRunner, reference: FloatRunner) -> None:
    mine, other = (
        {name: each.shape for name, each in one.inputs.items()}
        for one in (runner, reference)
    )
    if mine != other:
        raise DataError(
            f"{path}: takes {_listed(other)}, but the network to evaluate takes "
            f"{_listed(mine)}; {SAME_LAYOUT}"
        )


def _listed(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name!r} {list(dims)}" for name, dims in shapes.items())


def _check_same_sizes(
    sample: Sample, outputs: list[Array], wanted: list[Array]
) -> None:
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


def check_labels(sample: Sample, scores: Array, rows: int) -> None:
    """DataError: a label that is no index of the scores of its sample."""
    if not sample.labels:
        return
    each = by_row(scores, rows)
    if len(each) != rows:
        raise DataError(
            f"{sample.name}: labels for {rows} samples, but the first output is "
            f"{list(scores.shape)}"
        )
    for label in sample.labels:
        if not 0 <= label < each[0].size:
            raise DataError(
                f"{sample.name}: label {label}, but the first output has "
                f"{each[0].size} values"
            )
