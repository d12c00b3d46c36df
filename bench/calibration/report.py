# SPDX-License-Identifier: Apache-2.0
"""How fast calibration is and how much memory it takes, against its targets.

Every figure is a ratio of two things measured in one run, best of three; every
measurement has a process of its own. Prints a table, writes build/bench/*.json.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "build" / "bench"
SQUEEZENET = {"color": "bgr", "mean": [104.0, 117.0, 123.0], "limit": 100}
NET20 = {"color": "rgb", "mean": [124.0, 116.0, 104.0], "limit": 100}
ROUNDS = 3

TARGETS = {
    "statistics of conv and FC inputs / inference": 0.10,
    "statistics of every tensor / inference": 0.35,
    "calibrate / inference by one thread": 1.25,
    "calibrate / inference by all threads": None,
    "calibrate / onnxruntime Entropy, 128 bins": 0.2,
    "calibrate / onnxruntime Entropy, 2048 bins": 0.2,
    "neon8 calibrate, process / minimal script": 1.5,
    "peak memory, 1024 - 64 samples, MiB": 8.0,
    "kl solve, ms a tensor": 5.0,
    "mse solve, ms a tensor": 2.0,
}


def measure(name: str, model: Path, *options: int) -> dict[str, float]:
    """What measure.py says."""
    command = [sys.executable, "-m", "bench.calibration.measure", name, model]
    command += map(str, options)
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(f"  {model.stem} {name} {' '.join(map(str, options))}", file=sys.stderr)
    return json.loads(text.splitlines()[-1])


def processes(model: Path, images: Path, settings: dict) -> dict[str, float]:
    """Seconds of `neon8 calibrate` and of minimal.py, from start to end."""
    toml = OUT / f"{model.stem}.toml"
    toml.write_text(f'color = "{settings["color"]}"\nmean = {settings["mean"]}\n')
    limit = str(settings["limit"])
    ours = [sys.executable, "-m", "neon8", "calibrate", model, "--data", images]
    ours += ["--preprocess", toml, "--limit", limit, "--method", "mse", "--quiet"]
    ours += ["-o", OUT / f"{model.stem}.scales.json"]
    script = [sys.executable, HERE / "minimal.py", model, images, json.dumps(settings)]
    spent = {"neon8": np.inf, "minimal": np.inf}
    # The first run compiles the Python code, as an installer would have done.
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }
    for _ in range(ROUNDS):
        for name, command in (("minimal", script), ("neon8", ours)):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            spent[name] = min(spent[name], time.perf_counter() - start)
    print(f"  {model.stem} processes", file=sys.stderr)
    return {"ratio": spent["neon8"] / spent["minimal"], **spent}


def make_images(folder: Path) -> Path:
    """100 JPEGs of 256 x 256 pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for number in range(100):
        small = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((256, 256), Image.Resampling.BICUBIC)
        image.save(folder / f"{number:03}.jpg", quality=92)
    return folder


def figures(model: Path, images: Path, settings: dict) -> dict:
    """Everything about one network.  figures: in the order of TARGETS."""
    raw: dict = {name: measure(name, model) for name in ("whole", "entropy")}
    # Where a process has its memory makes a difference to the cache.
    raw["statistics"] = [measure("statistics", model) for _ in range(ROUNDS)]
    raw["processes"] = processes(model, images, settings)
    raw["memory"] = {str(n): measure("memory", model, n)["mib"] for n in (64, 1024)}
    raw["solving"] = measure("solving", model)

    def slowest(method: str) -> float:
        return max(raw["solving"][f"{method} {s}"] for s in ("symmetric", "asymmetric"))

    values = (
        min(one["inputs"] for one in raw["statistics"]),
        min(one["all"] for one in raw["statistics"]),
        raw["whole"]["ratio"],
        raw["whole"]["to all threads"],
        raw["entropy"]["ratio"],
        raw["entropy"]["ratio to 2048 bins"],
        raw["processes"]["ratio"],
        raw["memory"]["1024"] - raw["memory"]["64"],
        slowest("kl"),
        slowest("mse"),
    )
    return {"figures": dict(zip(TARGETS, values, strict=True)), "raw": raw}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--squeezenet", type=Path, help="squeezenet1.1 as ONNX")
    parser.add_argument("--jpegs", type=Path, help="a folder of images of 227 x 227")
    arguments = parser.parse_args()
    if (arguments.squeezenet is None) != (arguments.jpegs is None):
        parser.error("--squeezenet and --jpegs go together")
    OUT.mkdir(parents=True, exist_ok=True)
    net20 = OUT / "net20.onnx"
    measure("net20", net20)
    found = {"net20": figures(net20, make_images(OUT / "jpegs"), NET20)}
    if arguments.squeezenet is not None:
        found["squeezenet"] = figures(arguments.squeezenet, arguments.jpegs, SQUEEZENET)
    for name, result in found.items():
        (OUT / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"{'':46}{'at most':>9}" + "".join(f"{name:>12}" for name in found))
    for name, target in TARGETS.items():
        row = f"{name:46}{'' if target is None else format(target, '.2f'):>9}"
        for result in found.values():
            value = result["figures"][name]
            row += (
                f"{value:11.3f}{'!' if target is not None and value > target else ' '}"
            )
        print(row)
    print("! misses its target; details in build/bench")


if __name__ == "__main__":
    main()
