# SPDX-License-Identifier: Apache-2.0
"""The files of packages, written from templates."""

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined

from neon8.package import names
from neon8.package.wrapper import Value, Wrapper
from neon8.runtime.structs import TYPES
from neon8.version import __version__

C_TYPES = {
    "float32": "float",
    **{name: f"{name}_t" for name in ("int8", "int16", "int32", "uint8")},
}
JAVA_TYPES = {
    "float32": "float",
    "int8": "byte",
    "int16": "short",
    "int32": "int",
    "uint8": "byte",
}
ORDERS = {"rgb": "red, green, blue", "bgr": "blue, green, red", "gray": "gray"}


def described(value: Value) -> str:
    """A line for a comment: 'input "image": 1 x 3 x 8 x 8 float32'."""
    return f"{names.shown(value.name)}: {value.shape}, {value.info.dtype}"


def java_info(value: Value) -> str:
    """The arguments by which a wrapper in Java knows it, but for the shape."""
    info = value.info
    return f'"{info.dtype.upper()}", {names.c_float(info.scale)}, {info.zero_point}'


def _environment() -> Environment:
    made = Environment(
        loader=BaseLoader(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - no HTML: names pass through names.py
    )
    made.filters |= {
        "broken": lambda head, parts, most=100: names.broken(head, parts, most=most),
        "c_bytes": names.c_bytes,
        "c_float": names.c_float,
        "c_text": names.c_text,
        "ctype": C_TYPES.__getitem__,
        "described": described,
        "java_info": java_info,
        "java_int": "int {}".format,
        "java_text": names.java_text,
        "jtype": JAVA_TYPES.__getitem__,
        "n8_type": TYPES.__getitem__,
        "python": names.python_text,
        "shown": names.shown,
    }
    return made


ENVIRONMENT = _environment()


def render(template: str, wrapper: Wrapper, **more: Any) -> str:
    """A file of templates/ for a model.  more: further variables."""
    text = (files(__package__) / "templates" / template).read_text("utf-8")
    parameters = [
        *(f"const {C_TYPES[v.info.dtype]} *{v.identifier}" for v in wrapper.inputs),
        *(f"{C_TYPES[v.info.dtype]} *{v.identifier}" for v in wrapper.outputs),
    ]
    return ENVIRONMENT.from_string(text).render(
        w=wrapper,
        upper=wrapper.name.upper(),
        parameters=parameters,
        arguments=[f"int32_t {each.identifier}" for each in wrapper.arguments],
        preprocessing=_preprocessing(wrapper),
        maintainer=_maintainer(),
        version=__version__,
        **more,
    )


def _maintainer() -> str:
    """Who makes the package, as Debian's tools are told."""
    name = os.environ.get("DEBFULLNAME", "Unknown")
    address = os.environ.get("DEBEMAIL", "unknown@localhost")
    return " ".join(f"{name} <{address}>".split())


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files, and the folders that they are in."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def raw_samples(wrapper: Wrapper) -> dict[str, str | bytes]:
    """The inputs of the sample and the results, as a C program reads them."""
    return {f"sample/{v.identifier}.raw": v.sample.tobytes() for v in wrapper.values}


def _preprocessing(wrapper: Wrapper) -> dict[str, Any]:
    how = wrapper.preprocess
    if how is None:
        return {}
    steps = {
        "none": "cropped at the centre",
        "stretch": "stretched to the size of the input",
        "short": f"resized to {how.short} pixels along the short side, then cropped",
    }
    return {
        "steps": steps[how.resize],
        "order": ORDERS[how.color],
        "mean": how.mean,
        "std": how.std,
    }
