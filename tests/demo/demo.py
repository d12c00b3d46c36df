# SPDX-License-Identifier: Apache-2.0
"""The main job on real data: handwritten digits on this PC and on emulated ARM cores.

Calibrates and compiles digits.onnx as a user would, runs the 600 digits it never saw in
float and by each int8 library, and compares what those computed, byte for byte. Exits
with status 1 when a byte differs or int8 loses more than one point.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tqdm import tqdm

import neon8
from digits import Part, split
from neon8.calibrate.run.reference import Reference
from neon8.data.samples import Sample, open_samples
from neon8.machines import EMULATIONS
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


def outputs(
    what: str, run: Run, samples: Iterable[Sample], *, threads: int = 1
) -> np.ndarray:
    """The logits of all samples: (samples, 10) float32."""
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(run, [sample.inputs for sample in samples])
        bar = tqdm(found, desc=what.ljust(16), unit=" digits")
        return np.concatenate([each["logits"] for each in bar])


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

    print("\nThe same 600 digits, in float and by each int8 library:", flush=True)
    preprocess = neon8.Preprocess.load(PREPROCESS)
    samples = open_samples(test, neon8.load_graph(NETWORK), preprocess=preprocess)
    fp32 = outputs("fp32 onnxruntime", Reference(NETWORK).run, samples)
    int8 = {}
    with neon8.Model.open(compiled) as model, model.session() as session:
        int8["x86"] = outputs("int8 x86", session.run, samples)
    for target in EMULATIONS:
        with EmulatedModel(compiled, target) as model:
            int8[target] = outputs(f"int8 {target}", model.run, samples, threads=64)
            require_neon(model)

    rows = zip(*int8.values(), strict=True)
    identical = sum(len({logits.tobytes() for logits in row}) == 1 for row in rows)
    results = {"fp32": fp32, **{f"int8 {name}": y for name, y in int8.items()}}
    hits = {
        name: 100 * np.mean(logits.argmax(1) == unseen.y)
        for name, logits in results.items()
    }
    shares = " | ".join(f"{name} {share:.1f}%" for name, share in hits.items())
    print(f"demo: {shares} | identical {identical}/{len(unseen.y)}")
    lost = hits["fp32"] - min(hits.values())
    return int(identical < len(unseen.y) or lost > ALLOWED_LOSS)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except neon8.errors.Neon8Error as error:
        sys.exit(f"demo: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
