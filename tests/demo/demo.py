# SPDX-License-Identifier: Apache-2.0
"""The main job on real data: handwritten digits on this PC and on an emulated ARM core.

Calibrates and compiles digits.onnx as a user would, runs the 600 digits it never saw
three ways and compares what the two int8 libraries computed, byte for byte. Exits with
status 1 when a byte differs or int8 loses more than one point.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

import neon8
from digits import Part, split
from neon8.calibrate.run.reference import Reference
from neon8.data.samples import Sample, open_samples
from neon8.runtime.emulate import EmulatedModel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "demo"
NETWORK = HERE / "digits.onnx"
PREPROCESS = HERE / "digits.toml"
NEON8 = Path(sys.executable).with_name("neon8")
CALIBRATION_SAMPLES = 200
ALLOWED_LOSS = 1.0  # points of top-1

Run = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


def command(*words: str | Path | int) -> None:
    """Shows and runs `neon8 ...` at the top of the checkout."""
    line = [
        str(word.relative_to(ROOT) if isinstance(word, Path) else word)
        for word in words
    ]
    print(f"\n$ neon8 {shlex.join(line)}", flush=True)
    subprocess.run([NEON8, *line], cwd=ROOT, check=True)


def save(name: str, part: Part) -> Path:
    path = BUILD / name
    np.savez(path, x=part.x, y=part.y)
    return path


def outputs(what: str, run: Run, samples: Iterable[Sample]) -> np.ndarray:
    """The logits of all samples: (samples, 10) float32."""
    bar = tqdm(samples, desc=what.ljust(16), unit=" digits")
    return np.concatenate([run(sample.inputs)["logits"] for sample in bar])


def require_neon(model: EmulatedModel) -> None:
    """Stops if a convolution of the emulated model has a C kernel."""
    kernels = {s.name: s.kernel for s in model.steps if s.operation == "conv2d"}
    for name, kernel in kernels.items():
        print(f"  {name:<12} {kernel}")
    if not kernels or any(name.endswith("_c") for name in kernels.values()):
        sys.exit("demo: a convolution did not get a NEON kernel")
    print(f"  all {len(kernels)} convolutions run in NEON kernels")


def main() -> int:
    BUILD.mkdir(parents=True, exist_ok=True)
    learned, unseen = split()
    calibration, test = save("calib.npz", learned), save("test.npz", unseen)
    table, compiled = BUILD / "digits.scales.json", BUILD / "digits.n8"
    print(f"$ cat {PREPROCESS.relative_to(ROOT)}")
    print(PREPROCESS.read_text().strip())

    command(
        *("calibrate", NETWORK, "--data", calibration, "--preprocess", PREPROCESS),
        *("--limit", CALIBRATION_SAMPLES, "-o", table),
    )
    command("compile", NETWORK, "--scales", table, "-o", compiled)

    print("\nThe same 600 digits, three ways:", flush=True)
    preprocess = neon8.Preprocess.load(PREPROCESS)
    samples = open_samples(test, neon8.load_graph(NETWORK), preprocess=preprocess)
    fp32 = outputs("fp32 onnxruntime", Reference(NETWORK).run, samples)
    with neon8.Model.open(compiled) as model, model.session() as session:
        x86 = outputs("int8 x86", session.run, samples)
    with EmulatedModel(compiled, target="aarch64") as model:
        aarch64 = outputs("int8 aarch64", model.run, samples)
        require_neon(model)

    rows = zip(x86, aarch64, strict=True)
    identical = sum(a.tobytes() == b.tobytes() for a, b in rows)
    results = (fp32, x86, aarch64)
    hits = [100 * np.mean(logits.argmax(1) == unseen.y) for logits in results]
    print(
        f"demo: fp32 {hits[0]:.1f}% | int8 x86 {hits[1]:.1f}% "
        f"| int8 aarch64 {hits[2]:.1f}% | identical {identical}/{len(unseen.y)}"
    )
    lost = hits[0] - min(hits[1:])
    return int(identical < len(unseen.y) or lost > ALLOWED_LOSS)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except neon8.errors.Neon8Error as error:
        sys.exit(f"demo: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
