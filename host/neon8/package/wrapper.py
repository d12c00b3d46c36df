# SPDX-License-Identifier: Apache-2.0
"""What a model takes and gives, described once for the wrappers of all languages."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import Array
from neon8.data.arrays import open_runs
from neon8.data.classes import class_names
from neon8.data.samples import loaded
from neon8.package import names
from neon8.runtime.arrays import Bounds, TensorInfo
from neon8.runtime.model import MAX_BYTES, Model, read_model
from neon8.runtime.targets import open_model
from neon8.settings.stages import DataSettings

if TYPE_CHECKING:
    from neon8.data.preprocess import Preprocess

AXES = {
    2: ("batch", "length"),
    3: ("batch", "length", "channels"),
    4: ("batch", "channels", "height", "width"),
}
CHANNELS_LAST = ("batch", "height", "width", "channels")
COLORS = (1, 3)
SPREAD = 16
"""How many integers there are in the sample of an input of int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An open dimension, which a caller chooses.

    identifier: in code.  bounds: what it may be.  usual: what it is if nobody says.
    """

    identifier: str
    bounds: Bounds
    usual: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An input or output.

    name: of the model, anything.  identifier: in code, no two of a model alike.
    info: type, scale, and the shape that is usual where dimensions are open.
    dimensions: of an input, a number or the identifier of an argument; of an output the
    usual ones.  sample: an array of the usual shape; of an output, the result.
    """

    name: str
    identifier: str
    info: TensorInfo
    dimensions: tuple[int | str, ...]
    sample: Array

    @property
    def size(self) -> int:
        """How many values it has, at the usual shape."""
        return self.sample.size

    @property
    def shape(self) -> str:
        """1 x 3 x height x width."""
        return " x ".join(map(str, self.dimensions)) or "one value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A model as packages see it.

    name: of the package, an identifier in lower case; camel: the same for classes.
    source: the name of the file, for people.  model: its bytes.  arguments: the open
    dimensions.  labels: of classes, or none.  labelled: the output whose values they
    name one by one, if there is one.  preprocess: how images become the input, if told.
    version: of the package, of numbers and dots.
    """

    name: str
    camel: str
    source: str
    model: bytes
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    arguments: tuple[Argument, ...]
    labels: tuple[str, ...]
    labelled: Value | None
    preprocess: "Preprocess | None"
    version: str

    @property
    def values(self) -> tuple[Value, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs


def describe(
    path: Path,
    *,
    name: str | None = None,
    labels: Path | None = None,
    preprocess: "Preprocess | Path | None" = None,
    sample: Path | None = None,
    version: str = "1.0",
) -> Wrapper:
    """Open the model at `path`, and run it on a sample.

    sample: a file, as neon8 run takes it, of which the first is run; by default one is
    made up.
    ModelError, DataError: the file of the model, or that of labels, is of no use.
    """
    content, how = read_model(path), loaded(preprocess)
    source = str(path)
    with Model.from_bytes(content, source=source, max_bytes=MAX_BYTES) as model:
        given = _made_up(model.inputs) if sample is None else _read(path, sample, how)
        shapes = {each: array.shape for each, array in given.items()}
        with model.at(shapes) as opened, opened.session(threads=1) as session:
            results = session.run(given)
            infos = {**opened.inputs}, {**opened.outputs}
        bounds = model.bounds
    own = names.package_name(path.stem if name is None else name)
    taken = names.exported(own)
    called = names.identifiers([*infos[0], *infos[1]], "tensor", taken)
    arguments, dimensions = _arguments(bounds, infos[0], (*called, *taken))
    count = len(infos[0])
    inputs = [
        Value(name=n, identifier=i, info=f, dimensions=dimensions[n], sample=given[n])
        for i, (n, f) in zip(called[:count], infos[0].items(), strict=True)
    ]
    outputs = [
        Value(name=n, identifier=i, info=f, dimensions=f.shape, sample=results[n])
        for i, (n, f) in zip(called[count:], infos[1].items(), strict=True)
    ]
    made = [value.info.shape for value in outputs]
    words = () if labels is None else class_names(labels, made)
    return Wrapper(
        name=own,
        camel=names.camel(own),
        source=path.name,
        model=content,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        arguments=arguments,
        labels=words,
        labelled=next((v for v in outputs if words and v.size == len(words)), None),
        preprocess=how,
        version=version,
    )


def _read(model: Path, sample: Path, how: "Preprocess | None") -> dict[str, Array]:
    with open_model(model) as runner:
        taken = runner.taken(runner.dtypes)
        samples = open_runs(sample, taken, DataSettings(preprocess=how))
        return dict(next(iter(samples)).inputs)


def _made_up(inputs: Mapping[str, TensorInfo]) -> dict[str, Array]:
    """The same arrays on every machine: floats in -1 .. 1, bytes, small integers."""
    source = random.Random(0)  # noqa: S311 - no secret
    return {name: _array(info, source) for name, info in inputs.items()}


def _array(info: TensorInfo, source: random.Random) -> Array:
    count = int(np.prod(info.shape))
    drawn = np.frombuffer(source.randbytes(2 * count), "<u2").astype(np.int64)
    drawn = drawn.reshape(info.shape)
    match info.dtype:
        case "float32":
            return (drawn / 2**15 - 1).astype(np.float32)
        case "int32":
            return (drawn % SPREAD).astype(np.int32)
        case "uint8":
            return (drawn >> 8).astype(np.uint8)
        case dtype:
            values = info.lo + drawn % (info.hi - info.lo + 1)
            made: Array = values.astype(dtype)
            return made


def _arguments(
    bounds: Mapping[str, Sequence[Bounds]],
    infos: Mapping[str, TensorInfo],
    taken: Sequence[str],
) -> tuple[tuple[Argument, ...], dict[str, tuple[int | str, ...]]]:
    """The open dimensions with names, and the dimensions of each input."""
    roots: dict[tuple[str, int], tuple[str, Bounds, int]] = {}
    for name, limits in bounds.items():
        axes = _axes(limits)
        for axis, limit in enumerate(limits):
            if limit.open and limit.same == (name, axis):
                roots[name, axis] = axes[axis], limit, infos[name].shape[axis]
    called = names.identifiers([word for word, _, _ in roots.values()], "n", taken)
    by_root = dict(zip(roots, called, strict=True))
    arguments = tuple(
        Argument(identifier=by_root[root], bounds=limit, usual=usual)
        for root, (_, limit, usual) in roots.items()
    )
    dimensions = {
        name: tuple(by_root[limit.same] if limit.open else limit.lo for limit in limits)
        for name, limits in bounds.items()
    }
    return arguments, dimensions


def _axes(limits: Sequence[Bounds]) -> Sequence[str]:
    rank = len(limits)
    if rank == 4 and limits[3].hi in COLORS and limits[1].hi not in COLORS:
        return CHANNELS_LAST
    return AXES.get(rank, [f"dimension_{axis}" for axis in range(rank)])
