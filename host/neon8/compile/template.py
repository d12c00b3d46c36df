# SPDX-License-Identifier: Apache-2.0
"""A Program with open sizes made from Programs of the same network at several shapes.

They differ in nothing but numbers that follow from the shape: dims of tensors, windows,
and arrays of indices. Each of these is found as an expression of the open dimensions.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.compile.segments import array_of, fitted, resized
from neon8.compile.size_search import SizeBook, Vector
from neon8.errors import CompileError
from neon8.ir.program import Op, Program, Tensor
from neon8.ir.sizes import Form, Segment, Size, Sizes, Symbol, evaluated, link, value

WINDOWS = ("kernel", "pads")
"""Fields of a step in which a size may stand."""

MOST_NUMBERS = 64
"""Entries of an array that is a list of numbers, each with a meaning of its own."""

ROUNDED = (np.dtype(np.int8), np.dtype(np.int16))
"""Types of constants that a layer in float32 does not have."""

LINKS = ("name", "inputs", "output")

REMEDY = "fix that dimension by --shape"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A network compiled at one shape.  values: of the symbols."""

    values: tuple[int, ...]
    program: Program


def structure(program: Program) -> object:
    """What must be equal for two Programs to differ in numbers only."""
    steps = [(type(op), op.name, op.inputs, op.output) for op in program.ops]
    return (program.inputs, program.outputs, tuple(program.tensors), tuple(steps))


def ones(program: Program) -> frozenset[tuple[str, int]]:
    """The dimensions that are 1, where axes are merged that are apart elsewhere."""
    return frozenset(
        (tensor.name, axis)
        for tensor in program.tensors.values()
        for axis, size in enumerate(tensor.dims)
        if size == 1
    )


def same(a: Any, b: Any) -> bool:
    """True if two values of a field are equal, arrays in type and shape, too."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=False))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b)


def sharing(program: Program, other: Program) -> Program:
    """The Program with the arrays of another one where they are equal.

    So that the weights of many samples are in memory once.
    """
    if structure(program) != structure(other):
        return program
    ops = []
    for op, kept in zip(program.ops, other.ops, strict=True):
        fields = {field.name: getattr(kept, field.name) for field in _arrays(op)}
        equal = {n: old for n, old in fields.items() if same(getattr(op, n), old)}
        ops.append(changed(op, equal))
    return replace(program, ops=tuple(ops))


def _arrays(op: Op) -> Iterator[dataclasses.Field[Any]]:
    """The fields of a step that are arrays."""
    for field in dataclasses.fields(op):
        if isinstance(getattr(op, field.name), np.ndarray):
            yield field


def difference(a: Program, b: Program) -> str:
    """Where two Programs of one structure differ first, "" if nowhere."""
    for name, tensor in a.tensors.items():
        if tensor != b.tensors[name]:
            return f"tensor {name!r}: {tensor.dims} and {b.tensors[name].dims}"
    for op, other in zip(a.ops, b.ops, strict=True):
        for field in dataclasses.fields(op):
            if not same(getattr(op, field.name), getattr(other, field.name)):
                return f"layer {op.name!r}: {op.operation} differs in {field.name}"
    return ""


def all_of(numbers: Sequence[int | None]) -> tuple[int, ...]:
    """Numbers that are all found."""
    return tuple(number for number in numbers if number is not None)


def changed(op: Op, fields: Mapping[str, Any]) -> Op:
    """The step with these values of fields."""
    return replace(op, **fields)


class _Derivation:
    """Numbers of the template while they are found."""

    def __init__(self, symbols: Sequence[Symbol], samples: Sequence[Sample]) -> None:
        self.symbols = symbols
        self.samples = samples
        self.programs = [sample.program for sample in samples]
        self.base = self.programs[0]
        values = zip(*(sample.values for sample in samples), strict=True)
        self.book = SizeBook(list(values))
        self.dims: dict[str, list[int | None]] = {
            name: [None] * tensor.rank for name, tensor in self.base.tensors.items()
        }
        self.windows: dict[tuple[int, str], list[int | None]] = {}
        self.forms: dict[tuple[int, str], Form] = {}

    def made(self) -> Program:
        """The template.  CompileError names what follows from no size."""
        pending = list(self._tasks())
        far = False
        while pending:
            left = [task for task in pending if not task(far=far)]
            if far and len(left) == len(pending):
                raise CompileError(left[0].keywords["what"]())
            far = len(left) == len(pending)
            pending = left
        tensors = {
            name: replace(tensor, dims=all_of(self.dims[name]))
            for name, tensor in self.base.tensors.items()
        }
        ops = list(self.base.ops)
        for (place, name), numbers in self.windows.items():
            ops[place] = changed(ops[place], {name: all_of(numbers)})
        program = replace(self.base, tensors=tensors, ops=tuple(ops))
        order = {name: at for at, name in enumerate(self._field_names())}
        forms = sorted(self.forms, key=lambda key: (key[0], order[key]))
        return pruned(
            program,
            Sizes(
                symbols=tuple(self.symbols),
                sizes=tuple(self.book.sizes),
                forms={key: self.forms[key] for key in forms},
            ),
        )

    def _field_names(self) -> Iterator[tuple[int, str]]:
        for place, op in enumerate(self.base.ops):
            for field in dataclasses.fields(op):
                yield place, field.name

    def _tasks(self) -> Iterator[partial[bool]]:
        """What is to be found, in order of execution."""
        for name in self.base.inputs:
            yield from self._of_tensor(name, None)
        for place, op in enumerate(self.base.ops):
            yield from self._of_tensor(op.output, op)
            for field in dataclasses.fields(op):
                seen = [getattr(p.ops[place], field.name) for p in self.programs]
                if field.name in LINKS or all(same(seen[0], s) for s in seen[1:]):
                    continue
                key = place, field.name
                if field.name in WINDOWS:
                    self.windows[key] = [None] * len(seen[0])
                    for at, vector in enumerate(zip(*seen, strict=True)):
                        yield self._task(self._window, key, at, vector)
                elif all(isinstance(each, np.ndarray) for each in seen):
                    yield self._task(self._array, key, seen)
                else:
                    raise CompileError(self._unlike(op, field.name, seen))

    def _of_tensor(self, name: str, maker: Op | None) -> Iterator[partial[bool]]:
        every = [program.tensors[name] for program in self.programs]
        for tensor in every[1:]:
            if replace(tensor, dims=every[0].dims) != every[0]:
                layer = "" if maker is None else f"layer {maker.name!r}: "
                text = f"{layer}the scale of tensor {name!r} depends on the shape"
                keep = "" if maker is None else f", or --keep-float {maker.name}"
                raise CompileError(f"{text}; {REMEDY}{keep}")
        for axis, vector in enumerate(zip(*(t.dims for t in every), strict=True)):
            yield self._task(self._dim, name, maker, axis, vector)

    def _task(self, find: Callable[..., bool], *arguments: Any) -> partial[bool]:
        what = partial(self._missing, *arguments)
        return partial(find, *arguments, what=what)

    # What is found, each True if it is.

    def _dim(
        self, name: str, maker: Op | None, axis: int, vector: Vector, **how: Any
    ) -> bool:
        """Dimension `axis` of a tensor."""
        found = self.book.known(vector)
        if found is None and maker is not None:
            found = self.book.tried(vector, self._rules(maker, axis))
        if found is None and maker is not None:
            near = [*self._column(maker, axis), *self._around(maker)]
            found = self.book.found(vector, near, far=how["far"])
        self.dims[name][axis] = found
        return found is not None

    def _rules(self, op: Op, axis: int) -> Iterator[Callable[[], int]]:
        """How a dimension follows from those of the inputs, as steps define it."""
        along = self._column(op, axis)
        if len(along) > 1:
            yield partial(self._sum, along)
        pads, strides = getattr(op, "pads", None), getattr(op, "strides", None)
        if pads is None or strides is None or axis not in (2, 3) or not along:
            return
        kernel: tuple[int, int] = op.kernel  # type: ignore[attr-defined]
        a, b, source = axis - 2, self.book, along[0]
        stride = strides[a]
        reach = op.dilations[a] * (kernel[a] - 1) + 1  # type: ignore[attr-defined]
        room = pads[a] + pads[a + 2] - reach

        def steps(amount: int) -> int:
            return b.plus(b.make("divide", b.plus(source, amount), stride), 1)

        yield lambda: steps(room)
        yield lambda: steps(room + stride - 1)
        # A last window that would see nothing but padding is left out.
        yield lambda: b.make("minimum", steps(room + stride - 1), steps(pads[a] - 1))

    def _sum(self, numbers: Sequence[int]) -> int:
        total = numbers[0]
        for each in numbers[1:]:
            total = self.book.make("add", total, each)
        return total

    def _column(self, op: Op, axis: int) -> list[int]:
        """The same dimension of all inputs, as far as it is found."""
        found = [self.dims[name][axis : axis + 1] for name in op.inputs]
        return [each for part in found for each in part if each is not None]

    def _around(self, op: Op) -> list[int]:
        """The dimensions of what a step reads and makes, as far as they are found."""
        every = [n for name in (*op.inputs, op.output) for n in self.dims[name]]
        return [each for each in every if each is not None]

    def _window(
        self, key: tuple[int, str], at: int, vector: Vector, **how: Any
    ) -> bool:
        """One number of a kernel or of pads."""
        op = self.base.ops[key[0]]
        found = self.book.known(vector)
        if found is None and key[1] == "pads":
            found = self.book.tried(vector, self._same_pads(op, at % 2))
        if found is None:
            found = self.book.found(vector, self._around(op), far=how["far"])
        self.windows[key][at] = found
        return found is not None

    def _same_pads(self, op: Op, a: int) -> Iterator[Callable[[], int]]:
        """Half of what the windows reach beyond the input, and the other half."""
        source = self.dims[op.inputs[0]][2 + a : 3 + a]
        out = self.dims[op.output][2 + a : 3 + a]
        if not source or not out or source[0] is None or out[0] is None:
            return
        b, size, windows = self.book, source[0], out[0]
        stride: int = op.strides[a]  # type: ignore[attr-defined]
        kernel: int = op.kernel[a]  # type: ignore[attr-defined]
        reach = op.dilations[a] * (kernel - 1) + 1  # type: ignore[attr-defined]

        def total() -> int:
            last = b.plus(b.make("multiply", windows, stride), reach - stride)
            return b.make("maximum", b.make("subtract", last, size), 0)

        yield lambda: b.make("divide", total(), 2)
        yield lambda: b.make("divide", b.plus(total(), 1), 2)

    def _array(self, key: tuple[int, str], seen: list[Array], **how: Any) -> bool:
        """An array, as numbers or as segments."""
        if key in self.forms:
            return True
        op = self.base.ops[key[0]]
        near, far = self._around(op), how["far"]
        plain = {each.dtype for each in seen} <= {np.dtype(np.int32)}
        real = {each.dtype for each in seen} <= {np.dtype(np.float32)}
        shapes = {each.shape for each in seen}
        form: Form | None = None
        if op.listed:
            return self._lists(key, far=far)
        if plain and len(shapes) == 1 and seen[0].size <= MOST_NUMBERS:
            rows = zip(*(each.reshape(-1).tolist() for each in seen), strict=True)
            numbers = [self.book.found(row, near, far=far) for row in rows]
            form = None if None in numbers else tuple(n or 0 for n in numbers)
        elif (plain or real) and not op.inputs:
            flat = [each.reshape(-1) for each in seen]
            form = fitted(flat, self.book, near, far=far)
        if form is None:
            return False
        self.forms[key] = form
        return True

    def _lists(self, key: tuple[int, str], *, far: bool) -> bool:
        """Lists of places in the input, and the weights of pairs of them."""
        place = key[0]
        ops = [program.ops[place] for program in self.programs]
        op, axes = self.base.ops[place], self.base.ops[place].listed
        ends = [self._shapes(op.output), self._shapes(op.inputs[0])]
        arrays = [
            {n: getattr(each, n) for n in ("indices", "values") if hasattr(each, n)}
            for each in ops
        ]
        total = [sum(shape[a] for a in axes) for shape in ends[0]]
        taps = len(arrays[0]["indices"]) // total[0]
        near = self._around(op)
        segments: list[Segment] = []
        begins = [0] * len(ops)
        for axis in axes:
            sizes = [tuple(shape[axis] for shape in end) for end in ends]
            out, size = (self.book.found(each, near, far=far) for each in sizes)
            if out is None or size is None:
                return False
            spans = [
                slice(taps * begin, taps * (begin + n))
                for begin, n in zip(begins, sizes[0], strict=True)
            ]
            begins = [begin + n for begin, n in zip(begins, sizes[0], strict=True)]
            lists = [
                {n: array[span] for n, array in each.items()}
                for each, span in zip(arrays, spans, strict=True)
            ]
            found: tuple[Segment, ...] | None = None
            if taps == 1:
                plain = [each["indices"] for each in lists]
                found = fitted(plain, self.book, near, far=far)
            if found is None:
                one = resized(lists, (size, sizes[1]), (out, sizes[0]), taps)
                found = None if one is None else (one,)
            if found is None:
                return False
            segments += found
        for each in arrays[0]:
            self.forms[place, each] = tuple(segments)
        return True

    def _shapes(self, name: str) -> list[tuple[int, ...]]:
        return [program.tensors[name].shape for program in self.programs]

    # What is wrong.

    def _missing(self, *arguments: Any) -> str:
        """Why there is no template."""
        match arguments:
            case (str() as tensor, maker, int() as axis, vector):
                layer = f"layer {maker.name!r}: " if maker is not None else ""
                text = f"{layer}dimension {axis} of tensor {tensor!r}"
            case ((int() as place, str() as field), int() as at, vector):
                op = self.base.ops[place]
                text = f"layer {op.name!r}: {field}[{at}] of {op.operation}"
            case _:
                (place, field), seen = arguments
                op = self.base.ops[place]
                return self._unlike(op, field, seen)
        shown = ", ".join(
            f"{size} at {self._named(sample.values)}"
            for size, sample in list(zip(vector, self.samples, strict=True))[:3]
        )
        why = "follows from the shape in no way that a file holds"
        return f"{text} {why}: {shown}; {REMEDY}"

    def _named(self, values: Sequence[int]) -> str:
        pairs = zip(self.symbols, values, strict=True)
        return " ".join(f"{symbol.name}={size}" for symbol, size in pairs)

    def _unlike(self, op: Op, field: str, seen: Sequence[Any]) -> str:
        shown = " or ".join(_short(each) for each in seen[:2])
        text = f"layer {op.name!r}: {field} of {op.operation} depends on the shape"
        text += f" in a way that a file does not hold, {shown}; {REMEDY}"
        rounded = isinstance(seen[0], np.ndarray) and seen[0].dtype in ROUNDED
        return text + (f", or --keep-float {op.name}" if rounded else "")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {list(value.shape)}"
    return str(value)


def derived(symbols: Sequence[Symbol], samples: Sequence[Sample]) -> Program:
    """The template of samples that have one structure.  CompileError."""
    return _Derivation(symbols, samples).made()


def pruned(program: Program, found: Sizes) -> Program:
    """The Program with these sizes, of which only those stay that are used."""
    used = set(range(len(found.symbols)))

    def use(number: int) -> int:
        place = link(number)
        if number < 0 and place not in used:
            used.add(place)
            size = found.sizes[place]
            if size.kind not in ("symbol", "number"):
                use(link(size.a))
                use(link(size.b))
        return number

    _with_numbers(program, use)
    for key, form in found.forms.items():
        _renumbered(form, program, key, use)
    kept = sorted(used)
    moved = {old: new for new, old in enumerate(kept)}

    def again(number: int) -> int:
        return link(moved[link(number)]) if number < 0 else number

    sizes = tuple(
        size
        if size.kind in ("symbol", "number")
        else Size(size.kind, moved[size.a], moved[size.b])
        for size in (found.sizes[place] for place in kept)
    )
    forms = {
        key: _renumbered(form, program, key, again) for key, form in found.forms.items()
    }
    return replace(
        _with_numbers(program, again),
        open=replace(found, sizes=sizes, forms=forms),
    )


def _window_of(op: Op, name: str) -> tuple[int, ...]:
    """A field of a step where sizes may stand, () if it has none of its own."""
    if name not in {field.name for field in dataclasses.fields(op)}:
        return ()
    found: tuple[int, ...] = getattr(op, name)
    return found


def _renumbered(
    form: Form, program: Program, key: tuple[int, str], change: Callable[[int], int]
) -> Form:
    """Each number of a form changed.  key: the step and the field that it is of."""
    real = getattr(program.ops[key[0]], key[1]).dtype.kind == "f"
    made: list[Any] = []
    for part in form:
        if isinstance(part, Segment):
            run = part.kind == "run"
            numbers = (True, not (run and real), run and not real, run, run)
            pairs = zip(part.words, numbers, strict=True)
            words = tuple(change(w) if counts else w for w, counts in pairs)
            made.append(replace(part, words=words))
        else:
            made.append(change(part))
    return tuple(made)


def _with_numbers(program: Program, change: Callable[[int], int]) -> Program:
    """Each number of dims and windows changed."""
    tensors: dict[str, Tensor] = {
        name: replace(tensor, dims=tuple(map(change, tensor.dims)))
        for name, tensor in program.tensors.items()
    }
    ops = []
    for op in program.ops:
        windows = {name: tuple(map(change, _window_of(op, name))) for name in WINDOWS}
        ops.append(changed(op, {name: each for name, each in windows.items() if each}))
    return replace(program, tensors=tensors, ops=tuple(ops))


def at(template: Program, values: Sequence[int]) -> Program:
    """The Program of fixed shapes where the symbols have these values.

    CompileError: a size is too large.
    """
    found = template.open
    if found is None:
        return template
    sizes = evaluated(found.sizes, values)
    program = _with_numbers(template, lambda number: value(number, sizes))
    ops = list(program.ops)
    for (place, name), form in found.forms.items():
        old = getattr(ops[place], name)
        numbers = [part for part in form if not isinstance(part, Segment)]
        segments = [part for part in form if isinstance(part, Segment)]
        if numbers:
            entries = [value(number, sizes) for number in numbers]
            made = np.array(entries, old.dtype).reshape(old.shape)
        else:
            made = array_of(segments, sizes, old.dtype)
        ops[place] = changed(ops[place], {name: made})
    return replace(program, ops=tuple(ops), open=None)
