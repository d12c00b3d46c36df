# SPDX-License-Identifier: Apache-2.0
"""package_model: a model as what a user's build takes.

A kind of package is a module with

    TARGETS                                 what it can be made for, all by default
    fill(folder, wrapper, targets, embed=)  writes the files into an empty folder
    check(folder, wrapper, targets)         builds and runs what it can, and yields a
                                            line for each target; SetupError: it fails

and a word of KINDS, with - for _.
"""

import importlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from neon8.errors import SettingsError, SetupError
from neon8.package import KINDS
from neon8.package import folder as folders
from neon8.package.wrapper import Wrapper, describe
from neon8.settings.fields import meant
from neon8.settings.reader import takes
from neon8.settings.stages import DEFAULTS, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """What was written.

    wrapper: the model.  targets: those it was made for.  checked: lines on what was
    built and run, and what could not be.
    """

    wrapper: Wrapper
    targets: tuple[str, ...]
    checked: tuple[str, ...]


@takes("package")
def package_model(
    model: str | PathLike[str],
    kind: str,
    output: str | PathLike[str],
    *,
    settings: Settings = DEFAULTS,
) -> Packaged:
    """Write the model at `model` as a package into the folder `output`.

    kind: one of KINDS.
    SetupError: something is missing, or the example does not build, or gives other
    bytes; nothing is written then.
    """
    chosen, place = settings.package, Path(output)
    maker = _maker(kind)
    targets = tuple(dict.fromkeys(chosen.targets)) or maker.TARGETS
    for target in targets:
        if target not in maker.TARGETS:
            known = ", ".join(maker.TARGETS)
            text = f"target {target!r} is none of --for {kind}; there are {known}"
            raise SettingsError(text)
    folders.check_place(place, force=chosen.force)
    wrapper = describe(
        Path(model),
        name=chosen.name,
        labels=chosen.labels,
        preprocess=chosen.preprocess,
        sample=chosen.sample,
        version=chosen.release,
    )
    with folders.written(place, kind=kind) as beside:
        maker.fill(beside, wrapper, targets, embed=chosen.embed)
        lines = maker.check(beside, wrapper, targets) if chosen.check else ()
        checked = tuple(lines)
    return Packaged(wrapper=wrapper, targets=targets, checked=checked)


def _maker(kind: str) -> Any:
    if kind not in KINDS:
        raise SettingsError(f"{kind!r} is unknown; {meant(kind, KINDS)}")
    try:
        return importlib.import_module(f"neon8.package.{kind.replace('-', '_')}")
    except ModuleNotFoundError as error:
        if error.name != "jinja2":
            raise
        remedy = "pip install 'neon8[package]'"
        raise SetupError(f"packages are written by jinja2: {remedy}") from error
