# SPDX-License-Identifier: Apache-2.0
"""What exports of torch packages cost in int8: the columns of report.py.

Nothing is installed: --python names an interpreter whose environment has torch,
torchvision, timm, transformers, ultralytics, onnx and onnxscript. Files that FOLDER has
already, NETWORK.EXPORTER.onnx, are taken as they are.
"""

import logging
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import pages
from bench.networks import samples
from bench.networks.measure import CALIBRATION, TEST, Arrays, Row, calibrated, refused
from bench.networks.report import shown, table

COMMAND = ".venv/bin/python -m bench.networks.exports FOLDER --python PYTHON"
EXPORTERS = ("torchscript", "dynamo")
SEED = 1
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a network is from.  shape: of its input without the batch.

    words: below what integers of the input are; 0: it has float32.
    """

    package: str
    model: str
    shape: tuple[int, ...]
    words: int = 0


NETWORKS = {
    "mobilenet_v3_large": Source("torchvision", "mobilenet_v3_large", (3, 224, 224)),
    "lraspp": Source("torchvision", "lraspp_mobilenet_v3_large", (3, 256, 256)),
    "yolov8n": Source("ultralytics", "yolov8n", (3, 320, 320)),
    "yolo11n": Source("ultralytics", "yolo11n", (3, 320, 320)),
    "rtdetr_r18": Source("transformers", "rtdetr_r18", (3, 320, 320)),
    "mobilevit_s": Source("timm", "mobilevit_s", (3, 256, 256)),
    "mobilevitv2_050": Source("timm", "mobilevitv2_050", (3, 256, 256)),
    "efficientformer_l1": Source("timm", "efficientformer_l1", (3, 224, 224)),
    "efficientvit_b0": Source("timm", "efficientvit_b0", (3, 224, 224)),
    "fastvit_t8": Source("timm", "fastvit_t8", (3, 256, 256)),
    "edgenext_xx_small": Source("timm", "edgenext_xx_small", (3, 256, 256)),
    "tiny_vit_5m": Source("timm", "tiny_vit_5m_224", (3, 224, 224)),
    "mobilenetv4_hybrid": Source("timm", "mobilenetv4_hybrid_medium", (3, 224, 224)),
    "deit_tiny": Source("timm", "deit_tiny_patch16_224", (3, 224, 224)),
    "swin_tiny": Source("timm", "swin_tiny_patch4_window7_224", (3, 224, 224)),
    "segformer_b0": Source("transformers", "segformer_b0", (3, 256, 256)),
    "depth_anything": Source("transformers", "depth_anything", (3, 252, 252)),
    "tinybert": Source("transformers", "tinybert", (128,), 30522),
    "whisper_tiny": Source("transformers", "whisper_tiny", (80, 3000)),
}

INTRODUCTION = """\
## Exports of torch packages, random weights

Each network is built by its package, exported by both exporters of torch, and taken
through the line as above. Weights are what the package initializes, but batch
normalisations have the statistics of their inputs and scales between 0.5 and 1.5.
Nothing was trained to stand noise: a low figure compares versions of neon8 and
exporters, and says little of the network. Of a detector that keeps its best queries,
other queries than FP32's count as noise.
"""


def exported(
    source: Source, exporter: str, data: list[Arrays], path: Path, python: str
) -> str:
    """Write the ONNX file; the last line of what the exporter said if it failed."""
    known = path.with_suffix(".npz")
    np.savez(known, x=np.concatenate([sample["x"] for sample in data]))
    script = [python, "-m", "bench.networks.export_torch"]
    words = [source.package, source.model, exporter, str(known), str(path)]
    done = subprocess.run(
        [*script, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    known.unlink()
    if not done.returncode:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1][:200] if lines else f"exit status {done.returncode}"


def row(name: str, exporter: str, folder: Path, python: str) -> Row:
    source = NETWORKS[name]
    words = {"x": source.words} if source.words else {}
    data = samples.images(
        {"x": source.shape}, CALIBRATION + TEST, seed=SEED, words=words
    )
    title = f"{name}, {exporter}"
    path = folder.absolute() / f"{name}.{exporter}.onnx"
    if not path.exists():
        fault = exported(source, exporter, data[:CALIBRATION], path, python)
        if fault:
            return refused(title, f"not exported ({fault})")
    return calibrated(title, path, data[:CALIBRATION], data[CALIBRATION:])


def main() -> int:
    """0 if every network ran and all bytes were equal."""
    parser = pages.options(__doc__, networks=NETWORKS)
    parser.add_argument("folder", type=Path, help="of the ONNX files")
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    logging.getLogger("neon8").setLevel(logging.ERROR)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    wanted = [(name, each) for name in arguments.networks for each in EXPORTERS]
    results = [shown(row(*pair, arguments.folder, arguments.python)) for pair in wanted]
    if arguments.write:
        text = f"{INTRODUCTION}\n{table(results)}"
        pages.write(arguments.write, COMMAND, text)
    return int(not all(result.equal for result in results))


if __name__ == "__main__":
    sys.exit(main())
