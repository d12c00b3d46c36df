# SPDX-License-Identifier: Apache-2.0
"""What calibration has seen, a .calib file or the journal of a run, as text."""

from pathlib import Path

from neon8 import text
from neon8.calibrate import calib_file
from neon8.calibrate.observation import Observation
from neon8.calibrate.run import journal
from neon8.errors import SetupError

CALIB = b"n8calib\n"
"""How a .calib file begins, of whatever version."""
JOURNAL = ".journal"


def recognise(path: Path, head: bytes) -> bool:
    """True if the file is one of the two.  head: how it begins."""
    return path.suffix == JOURNAL or head.startswith(CALIB)


def describe(path: Path) -> str:
    """The model, the samples, and every tensor and layer.

    CalibrationError: the file is damaged.
    """
    if path.suffix != JOURNAL:
        return "\n".join(_lines(path, "calibration file", calib_file.load(path)))
    entry = journal.load(path, {})
    if entry is None:
        raise SetupError(f"{path}: cannot be read: No such file or directory")
    note = "the run that wrote it goes on from here when it is started again"
    return "\n".join((*_lines(path, "journal", entry.observation), "", note))


def _lines(path: Path, kind: str, seen: Observation) -> list[str]:
    tensors = [
        (
            name,
            str(tensor.histogram.total),
            text.number(tensor.histogram.minimum),
            text.number(tensor.histogram.maximum),
            str(tensor.histogram.zeros),
            str(tensor.histogram.nans + tensor.histogram.infs),
        )
        for name, tensor in seen.tensors.items()
    ]
    layers = [
        (
            name,
            layer.input,
            text.shape(layer.weight_shape),
            str(layer.groups),
            text.number(float(layer.weight_absmax.max())),
        )
        for name, layer in seen.layers.items()
    ]
    engine = ", ".join(f"{key} {value}" for key, value in seen.engine.items())
    digest = seen.preprocess_digest
    preprocessing = f"sha256 {digest}" if digest else "none"
    fields = (
        (kind, str(path)),
        ("of", f"{seen.model_name}, sha256 {seen.model_digest}"),
        ("samples", str(len(seen.samples))),
        ("engine", engine),
        ("preprocessing", preprocessing),
    )
    titles = ("name", "values", "min seen", "max seen", "zeros", "not finite")
    names = ("name", "input", "weights", "groups", "largest weight")
    return [
        *text.fields(fields),
        "",
        "tensors",
        *text.columns(tensors, header=titles),
        "layers",
        *text.columns(layers, header=names),
    ]
