# SPDX-License-Identifier: Apache-2.0
"""The names of methods with their settings, as text: "percentile:99.9:all"."""

from dataclasses import dataclass

from neon8.errors import CalibrationError

NAMES = (
    "mse",
    "kl",
    "kl2017",
    "minmax",
    "percentile",
    "aciq",
    "legacy",
    "eq",
    "auto",
)
PERCENTILE = 99.99
OF = ("nonzero", "all")
METRICS = ("error", "cosine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method and what it needs.

    percent: of the values that percentile and legacy keep.  of: which values percentile
    counts, "nonzero" or "all".  cutoff: the share of the largest value above which
    legacy looks at nothing.  metric: what eq minimises, "error" or "cosine".
    """

    name: str
    percent: float = PERCENTILE
    of: str = "nonzero"
    cutoff: float = 1.0
    metric: str = "error"

    def __str__(self) -> str:
        """The text that parse() takes; settings left out where they are the usual."""
        settings = {
            "percentile": (f"{self.percent:.12g}", self.of),
            "legacy": (f"{self.percent:.12g}", f"{self.cutoff:.12g}"),
            "eq": (self.metric,),
        }.get(self.name, ())
        usual = str(PERCENTILE), "nonzero"
        defaults = {"legacy": (usual[0], "1"), "eq": ("error",)}.get(self.name, usual)
        return self.name if settings == defaults else ":".join((self.name, *settings))


def parse(text: str) -> Method:
    """The method that `text` names.

    One of NAMES, or percentile:PERCENT[:nonzero|all], legacy:PERCENT[:CUTOFF],
    eq:error|cosine.  CalibrationError says what else is wrong with it.
    """
    name, *settings = text.split(":")
    if name not in NAMES:
        known = ", ".join(NAMES)
        raise CalibrationError(f"method {name!r} is unknown: expected one of {known}")
    most = {"percentile": 2, "legacy": 2, "eq": 1}.get(name, 0)
    if len(settings) > most:
        raise CalibrationError(f"method {text!r}: {name} has {most} settings")
    if name == "eq":
        return Method(name=name, metric=_one_of(text, METRICS, *settings))
    percent, *rest = settings or [str(PERCENTILE)]
    if name == "legacy":
        cutoff = _number(text, rest[0], most=1.0) if rest else 1.0
        return Method(name=name, percent=_number(text, percent), cutoff=cutoff)
    if name == "percentile":
        of = _one_of(text, OF, *rest)
        return Method(name=name, percent=_number(text, percent), of=of)
    return Method(name=name)


def _one_of(text: str, known: tuple[str, ...], value: str | None = None) -> str:
    if value is None:
        return known[0]
    if value not in known:
        raise CalibrationError(
            f"method {text!r}: {value!r} is not one of {', '.join(known)}"
        )
    return value


def _number(text: str, digits: str, *, most: float = 100.0) -> float:
    try:
        value = float(digits)
    except ValueError:
        value = -1.0
    if not 0 < value <= most:
        raise CalibrationError(
            f"method {text!r}: {digits!r} is not a number above 0 and up to {most:g}"
        )
    return value
