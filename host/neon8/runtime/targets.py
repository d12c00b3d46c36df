# SPDX-License-Identifier: Apache-2.0
"""Where an .n8 file runs: here, in an emulated ARM process or on a board."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neon8.arrays import Array
from neon8.data.inputs import Input, of_shapes, with_bounds
from neon8.errors import ModelError
from neon8.files import open_regular, reading
from neon8.machines import NATIVE
from neon8.runtime.arrays import Bounds, StepInfo, TensorInfo, any_open
from neon8.runtime.board.model import BoardModel
from neon8.runtime.closable import Closable
from neon8.runtime.cut import Around
from neon8.runtime.model import MAGIC, Model, Shapes
from neon8.runtime.session import Session
from neon8.settings.shapes import Open
from neon8.settings.stages import TargetSettings

HERE = TargetSettings()


@dataclass(frozen=True, slots=True)
class Runner:
    """A network that is open.

    run: name -> array as `inputs` describes them to name -> array, in the order of the
    network; several threads may call it at the same time.  outputs: those of an .n8
    file that runs as it is, otherwise empty.  most: how many threads have room in the
    memory that the model may take; best: how many it wants, None: one for each
    processor.  stop: ends the runs of onnxruntime or of a board.  loose: the outputs
    whose dimensions only a run shows.  bounds: what the dimensions of inputs may be,
    where some are open.
    """

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    run: Callable[[dict[str, Array]], dict[str, Array]]
    steps: tuple[StepInfo, ...] = ()
    most: int = 1
    best: int | None = None
    stop: Callable[[], None] = field(default=lambda: None)
    loose: frozenset[str] = frozenset()
    bounds: Mapping[str, tuple[Bounds, ...]] = field(default_factory=dict)

    @property
    def open_dimensions(self) -> bool:
        """True if inputs may have more shapes than `shapes`."""
        return any_open(self.bounds)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input, as in ONNX."""
        return {name: info.shape for name, info in self.inputs.items()}

    def taken(self, dtypes: Mapping[str, str]) -> dict[str, Input]:
        """What it takes of samples, with bounds where dimensions are open.

        dtypes: those that are not float32.
        """
        if not self.open_dimensions:
            return of_shapes(self.shapes, dtypes)
        bounds = {
            name: [Open(b.lo, b.hi, b.step) if b.open else b.lo for b in limits]
            for name, limits in self.bounds.items()
        }
        symbols = {
            name: ["{}[{}]".format(*limit.same) for limit in limits]
            for name, limits in self.bounds.items()
        }
        least = {n: tuple(b.lo for b in limits) for n, limits in self.bounds.items()}
        return with_bounds(of_shapes(least, dtypes), bounds, symbols)

    @property
    def dtypes(self) -> dict[str, str]:
        """The type of each input, as numpy calls it."""
        return {name: info.dtype for name, info in self.inputs.items()}


class Sessions(Closable):
    """As many sessions as threads run at once, each opened when it is needed.

    Close it when no thread runs any more.
    """

    __slots__ = ("_free", "_open", "_stack")

    def __init__(self, another: Callable[[], Session]) -> None:
        """another: opens one more."""
        self._open = another
        # The one that ran last has its memory in the cache; both ends are thread-safe.
        self._free: deque[Session] = deque()
        self._stack = ExitStack()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, in a session that no other thread has."""
        try:
            session = self._free.pop()
        except IndexError:
            session = self._open()
            self._stack.callback(session.close)
        try:
            return session.run(inputs)
        finally:
            self._free.append(session)

    def close(self) -> None:
        """Close all of them."""
        self._stack.close()


CUT = ".json"
"""The end of the name of a cut network's description."""


def is_model_file(path: Path) -> bool:
    """True for what open_model() opens, by its name or by its first bytes.

    ModelError: the file cannot be read.
    """
    if path.suffix in (".n8", CUT):
        return True
    with reading(path, ModelError), open_regular(path) as file:
        return file.read(len(MAGIC)) == MAGIC


def opened(
    path: Path, where: TargetSettings, *, shapes: Shapes | None = None
) -> Model | BoardModel:
    """An .n8 file, opened where it is to run.

    shapes: as of BoardModel, which describes the model there.  ModelError, SetupError.
    """
    isa, most = where.isa, where.max_bytes
    if where.target == NATIVE:
        return Model.open(path, isa=isa, max_bytes=most)
    target, core = where.target, where.core
    return BoardModel.open(path, target, core, isa, max_bytes=most, shapes=shapes)


@contextmanager
def open_model(path: Path, where: TargetSettings = HERE) -> Iterator[Runner]:
    """An .n8 file, run as it is, or a cut network, whole: its .n8 file runs there.

    Of a cut network only the outputs that are numbers are there.  ModelError,
    SetupError.
    """
    if path.suffix == CUT:
        around = Around(path)
        with _opened(around.path, where) as inside:
            around.check(inside.inputs, inside.outputs)
            numbers = {n: info for n, info in around.outputs.items() if info.dtype}

            def run(inputs: dict[str, Array]) -> dict[str, Array]:
                found = around.run(inputs, inside.run, inside.inputs)
                return {name: found[name] for name in numbers}

            yield Runner(
                around.inputs,
                numbers,
                run,
                inside.steps,
                inside.most,
                inside.best,
                _both(around.stop, inside.stop),
                around.loose,
            )
        return
    with _opened(path, where) as runner:
        yield runner


@contextmanager
def _opened(path: Path, where: TargetSettings) -> Iterator[Runner]:
    """An .n8 file."""
    with ExitStack() as stack:
        model = opened(path, where)
        stack.enter_context(model)
        if isinstance(model, Model):
            sessions = stack.enter_context(Sessions(model.session))
            most = model.memory.sessions(model.max_bytes)
            run, best, stop = sessions.run, None, lambda: None
        else:
            run, most, best, stop = model.run, model.ahead, model.ahead, model.stop
        yield Runner(
            model.inputs,
            model.outputs,
            run,
            model.steps,
            most,
            best,
            stop,
            bounds=model.bounds,
        )


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    """Call one and the other."""

    def call() -> None:
        first()
        second()

    return call
