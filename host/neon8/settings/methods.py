# SPDX-License-Identifier: Apache-2.0
"""The methods, and their names with settings, like "percentile:99.9:all".

A method is a row of METHODS and a function of the same name,

    def method(histogram: Histogram, grid: Grid, **settings) -> tuple[float, float]

which returns the range (lo, hi) that the grid should cover, or None where the histogram
has too few bins for it. It gets no dead tensor and none with less than 1000 values, and
a range that clips more than 0.1 % of the energy is widened (guards.py). Help, parsing
and compare read the row. eq looks at layers, too: see choose.py.

This module is light, so that help needs no numpy.
"""

import textwrap
from dataclasses import dataclass

from neon8.errors import CalibrationError


@dataclass(frozen=True, slots=True)
class Setting:
    """What may follow a method's name.

    name: the function's keyword.  default: the first of `choices`, or a number above 0
    and up to `most`.
    """

    name: str
    default: str | float
    choices: tuple[str, ...] = ()
    most: float = 100.0


@dataclass(frozen=True, slots=True)
class Row:
    """module: of this package, with a function called `name`.  summary: for help.

    compared: what `neon8 compare` tries.
    """

    name: str
    module: str
    summary: str
    settings: tuple[Setting, ...] = ()
    compared: tuple[str, ...] = ()


PERCENT = Setting("percent", 99.99)

METHODS = (
    Row("mse", "mse", "least squared error of what is rounded and clipped (default)"),
    Row("kl", "kl", "least Kullback-Leibler divergence, exact zeros left out"),
    Row(
        "percentile",
        "percentile",
        "99.99 % of what was seen, exact zeros left out; percentile:99.9:all keeps "
        "99.9 % and counts zeros, percentile:99.9 does not count them",
        (PERCENT, Setting("of", "nonzero", ("nonzero", "all"))),
        ("percentile", "percentile:99.99:all"),
    ),
    Row(
        "aciq",
        "aciq",
        "least expected error for a Gaussian or Laplace distribution, whichever fits "
        "better",
    ),
    Row(
        "legacy",
        "legacy",
        "like TensorRT's legacy calibrator: 99.99 % of |x|, exact zeros included; "
        "legacy:99.9:0.8 ignores values above 0.8 times the largest",
        (PERCENT, Setting("cutoff", 1.0, most=1.0)),
    ),
    Row(
        "kl2017", "kl", "the pseudo-code published for TensorRT in 2017, to the letter"
    ),
    Row("minmax", "minmax", "everything that was seen"),
    Row(
        "eq",
        "eq",
        "least error at the output of the layers that read the tensor, among 0.5 to 2 "
        "times the range of mse; eq:cosine looks at the angle only",
        (Setting("metric", "error", ("error", "cosine")),),
    ),
)
REMOVED = {
    "auto": "it was no better than mse on samples that it had not seen; take mse, or "
    "what `neon8 compare` advises"
}
"""Methods that old tables may name, and what to take instead."""
ROWS = {row.name: row for row in METHODS}
COMPARED = tuple(text for row in METHODS for text in (row.compared or (row.name,)))


@dataclass(frozen=True, slots=True)
class Method:
    """A method and the values of all its settings, in the order of its row."""

    name: str
    values: tuple[str | float, ...] = ()

    @property
    def settings(self) -> dict[str, str | float]:
        """The values by name."""
        names = (setting.name for setting in ROWS[self.name].settings)
        return dict(zip(names, self.values, strict=True))

    def __str__(self) -> str:
        """The text that parse() reads, without settings if all are defaults."""
        usual = tuple(setting.default for setting in ROWS[self.name].settings)
        if self.values == usual:
            return self.name
        return ":".join((self.name, *map(_text, self.values)))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def parse(text: str) -> Method:
    """The method that `text` names: a name of METHODS, then values of its settings.

    CalibrationError says what is wrong with it.
    """
    name, *given = text.split(":")
    if name in REMOVED:
        raise CalibrationError(f"method {name!r} was removed: {REMOVED[name]}")
    if name not in ROWS:
        known = ", ".join(ROWS)
        raise CalibrationError(f"method {name!r} is unknown: expected one of {known}")
    settings = ROWS[name].settings
    if len(given) > len(settings):
        raise CalibrationError(f"method {text!r}: {name} has {len(settings)} settings")
    values = [_value(text, *pair) for pair in zip(settings, given, strict=False)]
    values += [setting.default for setting in settings[len(given) :]]
    return Method(name, tuple(values))


def _value(text: str, setting: Setting, given: str) -> str | float:
    if setting.choices:
        if given not in setting.choices:
            known = ", ".join(setting.choices)
            raise CalibrationError(f"method {text!r}: {given!r} is not one of {known}")
        return given
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    if not 0 < value <= setting.most:
        raise CalibrationError(
            f"method {text!r}: {given!r} is not a number above 0 and up to "
            f"{setting.most:g}"
        )
    return value


def describe() -> str:
    """The list of all methods, for help."""
    return "\n".join(
        textwrap.fill(
            row.summary,
            width=87,
            initial_indent=f"  {row.name:<12} ",
            subsequent_indent=15 * " ",
            break_on_hyphens=False,
        )
        for row in METHODS
    )
