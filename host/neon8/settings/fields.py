# SPDX-License-Identifier: Apache-2.0
"""Fields of settings objects: their values, help texts and options.

A field is written once, as

    bits: int = setting(8, "bits of all activations", one_of(BITS), metavar="N")

and appears in --help, in the signature and docstring of the Python functions and among
the keys of a settings file. Its Kind says which values it takes.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

from neon8.errors import Neon8Error, SettingsError
from neon8.files import STDOUT
from neon8.text import suggested

KEY = "setting"
"""Where a field's metadata has its Setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The values that a field takes.

    parse: reads a word of the command line.  check: converts a value of Python or TOML
    to that of the field.  Both raise SettingsError with the cause.  choices: all
    values, for help.  metavar: what help calls a value.  repeated: the option may be
    given several times.  several: it takes several words.  join: combines them.
    writes: the value is a file to write.
    """

    parse: Callable[[str], Any]
    check: Callable[[Any], Any]
    choices: tuple[Any, ...] | None = None
    metavar: str | None = None
    repeated: bool = False
    several: bool = False
    join: Callable[[Sequence[Any]], Any] = tuple
    writes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The metadata of a field.

    default, type: of the field.  option: its spelling on the command line.  metavar:
    instead of the Kind's.  needs: fields of the same object, one of which must be set
    for this one to mean something.  unit: of the value in Python and TOML, where an
    option has another.
    """

    help: str
    kind: Kind
    default: Any
    type: Any = None
    option: str = ""
    metavar: str | None = None
    needs: tuple[str, ...] = ()
    unit: str = ""


def setting(default: Any, help_: str, kind: Kind, **more: Any) -> Any:
    """Declare a field of a settings object.  more: see Setting."""
    made = Setting(help=help_, kind=kind, default=default, **more)
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={KEY: made})
    return field(default=default, metadata={KEY: made})


class Stage:
    """Base of all settings objects: values are checked however one is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check every field.  SettingsError names the one that is wrong."""
        for name, each in settings_of(type(self)).items():
            value = getattr(self, name)
            if value is None and each.default is None:
                continue
            try:
                object.__setattr__(self, name, each.kind.check(value))
            except Neon8Error as error:
                raise SettingsError(f"{name}: {error.text}") from error
        self.agree()

    def agree(self) -> None:
        """Check fields against each other.  SettingsError."""


def settings_of(stage: type[Stage]) -> dict[str, Setting]:
    """Field -> its Setting, in order."""
    found = {}
    for each in fields(stage):  # type: ignore[arg-type] # made by @dataclass
        made: Setting = each.metadata[KEY]
        option = made.option or f"--{each.name.replace('_', '-')}"
        shown = made.metavar or made.kind.metavar
        found[each.name] = replace(made, type=each.type, option=option, metavar=shown)
    return found


def meant(name: str, known: Iterable[str]) -> str:
    """'did you mean ...?', or a list of all known names."""
    names = [str(each) for each in known]
    near = suggested(name, names).removeprefix("; ")
    return near or f"there are {', '.join(names)}"


def flag() -> Kind:
    """True or False; on the command line, there or not."""

    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise SettingsError(f"{value!r} is not True or False")
        return value

    return Kind(parse=bool, check=check)


def whole(least: int | None = None) -> Kind:
    """A whole number."""
    what = "a whole number" + ("" if least is None else f" of {least} or more")

    def parse(word: str) -> int:
        digits = word.removeprefix("-") if least is None else word
        if not digits.isascii() or not digits.isdigit():
            raise SettingsError(f"{word!r} is not {what}")
        return check(int(word))

    def check(value: Any) -> int:
        integral = isinstance(value, Integral) and not isinstance(value, bool)
        if not integral or (least is not None and value < least):
            raise SettingsError(f"{value!r} is not {what}")
        return int(value)

    return Kind(parse=parse, check=check, metavar="N")


def number(
    what: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    percent: bool = False,
) -> Kind:
    """A finite number within bounds.

    what: for messages, with article and unit.  percent: a word of the command line is a
    hundred times the value.
    """
    times = 100 if percent else 1

    def bounded(value: float, shown: object, times: int) -> float:
        if math.isfinite(value) and least <= value <= most and value > above:
            return value
        bounds = [f"above {above * times:g}"] if above > -math.inf else []
        bounds += [f"from {least * times:g} on"] if least > -math.inf else []
        bounds += [f"up to {most * times:g}"] if most < math.inf else []
        raise SettingsError(f"{shown!r} is not {what} {' and '.join(bounds)}")

    def parse(word: str) -> float:
        try:
            value = float(word) / times
        except ValueError:
            value = math.nan
        return bounded(value, word, times)

    def check(value: Any) -> float:
        real = isinstance(value, Real) and not isinstance(value, bool)
        return bounded(float(value) if real else math.nan, value, 1)

    return Kind(parse=parse, check=check)


def one_of(known: Collection[Any]) -> Kind:
    """One of these, which are all of a type."""
    (type_,) = {type(each) for each in known}

    def parse(word: str) -> Any:
        try:
            return check(type_(word))
        except ValueError as error:
            raise SettingsError(f"{word!r} is unknown; {meant(word, known)}") from error

    def check(value: Any) -> Any:
        if isinstance(value, bool) or value not in known:
            raise SettingsError(f"{value!r} is unknown; {meant(str(value), known)}")
        return value

    return Kind(parse=parse, check=check, choices=tuple(known))


def _is(value: Any, also: type | str) -> bool:
    """True if a value is of a class, given as such or by its full name."""
    if isinstance(also, type):
        return isinstance(value, also)
    return also in [f"{c.__module__}.{c.__qualname__}" for c in type(value).mro()]


def text(read: Callable[[str], object] = str, *, also: type | str = str) -> Kind:
    """A text.  read: raises a Neon8Error if it means nothing.  also: see path()."""

    def check(value: Any) -> Any:
        if isinstance(value, str):
            read(value)
        elif not _is(value, also):
            raise SettingsError(f"{value!r} is not a text")
        return value

    return Kind(parse=check, check=check)


def path(*, also: type | str = str) -> Kind:
    """A file to read.  also: the class of what is in such a file, or its full name."""

    def check(value: Any) -> Any:
        if isinstance(value, str | PathLike):
            return existing(str(value))
        if not _is(value, also):
            raise SettingsError(f"{value!r} is not a path")
        return value

    return Kind(parse=existing, check=check)


def output() -> Kind:
    """A file to write; on the command line - is standard output."""
    return Kind(parse=output_file, check=path().check, writes=True)


def existing(word: str) -> Path:
    """A path.  SettingsError: the word is empty, like a variable that is not set."""
    if not word:
        raise SettingsError("is empty; is a variable not set?")
    return Path(word)


def output_file(word: str) -> Path:
    """A file to write; './-' is a file of that name."""
    return STDOUT if word == "-" else existing(word)


def several(kind: Kind, *, repeated: bool = False) -> Kind:
    """A tuple of values of a kind.

    repeated: the option is given once for each, and not with all of them.
    """

    def check(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str) or not isinstance(value, Collection):
            raise SettingsError(f"{value!r} is not a list of values")
        return tuple(map(kind.check, value))

    return replace(kind, check=check, repeated=repeated, several=not repeated)


def table(parse: Callable[[str], tuple[str, Any]], check: Callable[[Any], Any]) -> Kind:
    """A mapping, name -> value; the option is given once for each.

    parse: a word to name and value.  check: a value.
    """

    def join(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if found.setdefault(name, value) != value:
                raise SettingsError(f"{name!r} is given two values")
        return found

    def check_all(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise SettingsError(f"{value!r} is not a table of names and values")
        return {str(name): check(each) for name, each in value.items()}

    return Kind(parse=parse, check=check_all, repeated=True, join=join)
