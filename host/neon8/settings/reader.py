# SPDX-License-Identifier: Apache-2.0
"""Settings from keywords of Python, from options of the command line, or from TOML.

All three end in chosen(); they differ in how a wrong name is refused.
"""

import argparse
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, TypeVar

from neon8.errors import Neon8Error, SettingsError
from neon8.settings.fields import Setting, meant, settings_of
from neon8.settings.stages import DEFAULTS, STAGES, Settings
from neon8.settings.toml_file import read_toml

Values = Mapping[str, Mapping[str, Any]]
"""Stage -> field -> value, of what is given."""
Function = TypeVar("Function", bound=Callable[..., Any])
WIDTH = 80


def chosen(base: Settings, given: Values) -> Settings:
    """Replace what is given in `base`.  SettingsError names the field."""
    made = {
        stage: replace(getattr(base, stage), **values)
        for stage, values in given.items()
    }
    return replace(base, **made)


def load_settings(path: str | PathLike[str], base: Settings = DEFAULTS) -> Settings:
    """Read a TOML file with a table for each stage, such as [solve].

    Paths in it are relative to the working directory.  DataError: it is no TOML.
    SettingsError names file, table and key.
    """
    made = base
    for table, values in read_toml(path).items():
        if table not in STAGES:
            raise SettingsError(f"{path}: [{table}] is unknown; {meant(table, STAGES)}")
        where = f"{path}: [{table}]"
        if not isinstance(values, dict):
            raise SettingsError(f"{where} is no table of settings; write one")
        known = settings_of(STAGES[table])
        for key in values:
            if key not in known:
                raise SettingsError(f"{where} {key} is unknown; {meant(key, known)}")
        try:
            made = chosen(made, {table: values})
        except Neon8Error as error:
            raise SettingsError(f"{where} {error.text}") from error
    return made


def takes(*stages: str) -> Callable[[Function], Function]:
    """Give a function `settings` from keywords, which are the fields of these stages.

    Its signature and docstring show them all.  A caller may hand over ready Settings
    instead, or both: keywords win.
    """
    every = [
        (name, (stage, each))
        for stage in stages
        for name, each in settings_of(STAGES[stage]).items()
    ]
    fields = dict(every)
    if len(fields) < len(every):
        raise ValueError(f"two of the stages {', '.join(stages)} have one name")

    def decorate(function: Function) -> Function:
        own = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args: Any, settings: Settings = DEFAULTS, **keywords: Any) -> Any:
            given: dict[str, dict[str, Any]] = {}
            others = {}
            for name, value in keywords.items():
                if name in fields:
                    given.setdefault(fields[name][0], {})[name] = value
                elif name in own:
                    others[name] = value
                else:
                    raise TypeError(
                        f"{function.__name__}() has no argument {name!r}; "
                        f"{meant(name, [*fields, *own])}"
                    )
            return function(*args, settings=chosen(settings, given), **others)

        call.__signature__ = _signature(function, fields)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(function)}\n\n{_described(fields)}"
        return call  # type: ignore[return-value]

    return decorate


def _signature(
    function: Callable[..., Any], fields: Mapping[str, tuple[str, Setting]]
) -> inspect.Signature:
    """The function's own parameters, and a keyword for each field."""
    signature = inspect.signature(function)
    own = [
        each
        for each in signature.parameters.values()
        if each.kind is not each.VAR_KEYWORD
    ]
    made = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=each.type,
        )
        for name, (_, each) in fields.items()
    ]
    last = [each for each in own if each.name == "settings"]
    own = [each for each in own if each.name != "settings"]
    parameters = sorted([*own, *made, *last], key=lambda each: each.kind)
    return signature.replace(parameters=parameters)


def _described(fields: Mapping[str, tuple[str, Setting]]) -> str:
    """A paragraph for each keyword."""
    lines = ["Settings, each a keyword:"]
    for name, (_, each) in fields.items():
        unit = f" ({each.unit})" if each.unit else ""
        lines += textwrap.wrap(
            f"{name}: {each.help}{unit}{_default(each)}",
            width=WIDTH,
            initial_indent="    ",
            subsequent_indent="        ",
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _default(each: Setting) -> str:
    """' (default: mse)', or nothing where the help says enough."""
    value = each.default
    if value in (None, False, "") or isinstance(value, dict | tuple):
        return ""
    return f" (default: {value})"


def add_options(parser: argparse.ArgumentParser, *stages: str) -> None:
    """Add an option for each field of these stages, and --settings."""
    for stage in stages:
        group = parser.add_argument_group(f"[{stage}]", _title(STAGES[stage]))
        for name, each in settings_of(STAGES[stage]).items():
            _add(group, stage, name, each)
    parser.add_argument(
        "--settings",
        type=argument(load_settings),
        default=DEFAULTS,
        metavar="FILE.toml",
        help="a TOML file with the settings of all stages, in the tables whose names "
        "are in brackets here; its keys are the keywords of the Python functions, such "
        "as max_sqnr_loss; options win over it, and --no-plain takes back plain = true",
    )
    parser.set_defaults(stages=stages)


def _title(stage: type) -> str:
    said = inspect.getdoc(stage) or ""
    return said.rstrip(".")


def _add(group: Any, stage: str, name: str, each: Setting) -> None:
    kind = each.kind
    words: dict[str, Any] = {
        "dest": f"{stage}.{name}",
        "default": argparse.SUPPRESS,
        "help": each.help.replace("%", "%%") + _default(each),
    }
    if isinstance(each.default, bool):
        group.add_argument(each.option, action="store_true", **words)
        words["help"] = argparse.SUPPRESS
        group.add_argument(f"--no-{each.option[2:]}", action="store_false", **words)
        return
    metavar = each.metavar
    if kind.choices and metavar is None:
        words["choices"] = kind.choices
    elif metavar is None:
        metavar = name.upper()
    words["type"] = argument(kind.parse)
    if kind.repeated:
        words["action"] = "append"
    if kind.several:
        words["nargs"] = "+"
    group.add_argument(each.option, metavar=metavar, **words)


def argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make a type for argparse, whose errors name the option."""

    def parse(word: str) -> Any:
        try:
            return read(word)
        except Neon8Error as error:
            raise argparse.ArgumentTypeError(error.text) from error

    return parse


def from_options(arguments: argparse.Namespace) -> Settings:
    """Make settings from what add_options() has parsed.

    SettingsError names the option.
    """
    given: dict[str, dict[str, Any]] = {}
    for dest, value in vars(arguments).items():
        stage, dot, name = dest.partition(".")
        if not dot:
            continue
        each = settings_of(STAGES[stage])[name]
        try:
            joined = each.kind.join(value) if each.kind.repeated else value
        except SettingsError as error:
            raise SettingsError(f"{each.option}: {error}") from error
        given.setdefault(stage, {})[name] = joined
    made = chosen(arguments.settings, given)
    for stage, values in given.items():
        _check_needs(getattr(made, stage), values)
    return made


def _check_needs(stage: Any, given: Iterable[str]) -> None:
    """SettingsError: a field was given that means nothing without another."""
    known = settings_of(type(stage))
    for name in given:
        needs = known[name].needs
        if needs and not any(getattr(stage, need) for need in needs):
            owners = " or ".join(known[need].option for need in needs)
            option = known[name].option
            raise SettingsError(f"{option} means nothing without {owners}: add that")
