# SPDX-License-Identifier: Apache-2.0
"""How fast calibration is and how much memory it takes, against its targets.

Every figure is a ratio of two things measured in one run, best of three; every
measurement has a process of its own. Prints a table, writes build/bench/*.json.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / "build" / "bench"
ROUNDS = 3

TARGETS = {
    "statistics of conv and FC inputs / inference": 0.10,
    "statistics of every tensor / inference": 0.35,
    "calibrate / inference by one thread": 1.25,
    "calibrate / inference by all threads": None,
    "calibrate / onnxruntime Entropy, 128 bins": 0.2,
    "calibrate / onnxruntime Entropy, 2048 bins": 0.2,
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


def figures(model: Path) -> dict:
    """Everything about one network.  figures: in the order of TARGETS."""
    raw: dict = {name: measure(name, model) for name in ("whole", "entropy")}
    # Where a process has its memory makes a difference to the cache.
    raw["statistics"] = [measure("statistics", model) for _ in range(ROUNDS)]
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
        raw["memory"]["1024"] - raw["memory"]["64"],
        slowest("kl"),
        slowest("mse"),
    )
    return {"figures": dict(zip(TARGETS, values, strict=True)), "raw": raw}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--squeezenet", type=Path, help="squeezenet1.1 as ONNX")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    net20 = OUT / "net20.onnx"
    measure("net20", net20)
    found = {"net20": figures(net20)}
    if arguments.squeezenet is not None:
        found["squeezenet"] = figures(arguments.squeezenet)
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
