# SPDX-License-Identifier: Apache-2.0
"""The tables of all operators, put together from those of the families."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from neon8 import operators
from neon8.ir.graph import Node
from neon8.ir.program import Op
from neon8.operators.composition import Compose
from neon8.operators.family import Family, Lower, Opset, Step, Write
from neon8.operators.layout import ChangeLayout
from neon8.operators.source import Convert


def _families() -> list[Family]:
    """Each module of this package has one, unless it only serves others."""
    names = (each.name for each in iter_modules(operators.__path__))
    modules = [import_module(f"{operators.__name__}.{name}") for name in names]
    return [module.FAMILY for module in modules if hasattr(module, "FAMILY")]


def _joined(table: str) -> dict[Any, Any]:
    """The rows of all families in this table of theirs."""
    rows = (getattr(family, table).items() for family in FAMILIES)
    return {key: value for each in rows for key, value in each}


FAMILIES = _families()

IMPORTS: dict[str, Convert] = _joined("imports")
INTEGERS: dict[str, Convert] = _joined("integers")
COMPOSITIONS: dict[str, Compose] = _joined("compositions")
LAYOUTS: dict[str, ChangeLayout] = _joined("layouts")
LOWER: dict[type[Node], Lower] = _joined("lower")
LOWER_FLOAT: dict[type[Node], Lower] = _joined("lower_float")
STEPS: dict[type[Op], Step] = _joined("steps")
QDQ: dict[type[Op], Write] = _joined("qdq")
OPSETS: dict[type[Op], Opset] = _joined("opsets")
"""Each as in Family."""
