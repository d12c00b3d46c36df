# SPDX-License-Identifier: Apache-2.0
"""What calibration has seen, a .calib file or the journal of a run, as text."""

from pathlib import Path

from neon8 import text
from neon8.calibrate import calib_file
from neon8.calibrate.observation import Observation
from neon8.calibrate.run import journal
from neon8.errors import SetupError


def recognise(head: bytes) -> bool:
    """True if a file that begins like this is one of the two, of whatever version."""
    return head.startswith((calib_file.KIND.magic, journal.KIND.magic))


def describe(path: Path, data: bytes) -> list[text.Part]:
    """The model, the samples, and every tensor and layer.  data: of the file.

    CalibrationError: the file is damaged.
    """
    if data.startswith(calib_file.KIND.magic):
        seen = calib_file.loads(data, source=str(path))
        return _parts(path, "calibration file", seen)
    entry = journal.load(path, {})
    if entry is None:
        raise SetupError(f"{path}: is gone: the run that wrote it has just ended")
    note = "the run that wrote it goes on from here when it is started again"
    return [*_parts(path, "journal", entry.observation), "", note]


def _parts(path: Path, kind: str, seen: Observation) -> list[text.Part]:
    tensors = [
        (
            name,
            tensor.histogram.total,
            text.number(tensor.histogram.minimum),
            text.number(tensor.histogram.maximum),
            tensor.histogram.zeros,
            tensor.histogram.nans + tensor.histogram.infs,
        )
        for name, tensor in seen.tensors.items()
    ]
    layers = [
        (
            name,
            layer.input,
            text.shape(layer.weight_shape),
            layer.groups,
            text.number(float(layer.weight_absmax.max())),
        )
        for name, layer in seen.layers.items()
    ]
    engine = ", ".join(f"{key} {value}" for key, value in seen.engine.items())
    digest = seen.preprocess_digest
    preprocessing = f"sha256 {digest}" if digest else "none"
    usual = seen.usual_shapes
    most = "" if usual is None else f", most often {text.shapes(usual)}"
    fields = (
        (kind, str(path)),
        ("of", f"{seen.model_name}, sha256 {seen.model_digest}"),
        ("samples", len(seen.samples)),
        *([("shapes", f"{len(seen.shapes)}{most}")] if usual else []),
        ("engine", engine),
        ("preprocessing", preprocessing),
    )
    titles = ("name", "values", "min seen", "max seen", "zeros", "not finite")
    names = ("name", "input", "weights", "groups", "largest weight")
    return [
        text.Fields(fields),
        "",
        text.Table("tensors", tensors, titles),
        text.Table("layers", layers, names),
    ]
