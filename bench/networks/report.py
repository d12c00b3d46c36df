# SPDX-License-Identifier: Apache-2.0
"""What whole networks cost in int8: a row for each, and docs/networks.md of them.

Networks with random weights are built from their published definitions; trained ones
are given by --model.  With --beside, what int8 by onnxruntime loses is shown instead.
"""

import logging
import sys
from pathlib import Path

from bench import pages
from bench.networks import beside
from bench.networks.catalogue import NETWORKS
from bench.networks.measure import (
    CALIBRATION,
    HEADER,
    TEST,
    Row,
    random_network,
    real_network,
)
from neon8.data.preprocess import Preprocess

PROGRAM = ".venv/bin/python -m bench.networks.report"
LEEWAY = 0.5
"""dB by which onnxruntime may be ahead."""
WORDS = ("input", "float islands", "ARM = x86")
INTRODUCTION = f"""\
Made by

    {{command}}

Every network is calibrated, compiled, and run in int8 on this machine and on emulated
AArch64 and ARMv7. The first table has published architectures with **random weights**,
which `bench/networks` builds: layers, multiply-accumulates, memory, file size and the
equality of bytes do not depend on the weights. SQNR does: weights are He's,
normalisations have the statistics of their inputs, images are synthetic,
{CALIBRATION} calibrate and {TEST} others judge. Nothing was trained to stand noise,
so depth costs more than in a trained network, where the output is read pixel by pixel
above all: mobilenet_v1 has 11 dB before its global pooling, which averages the noise
away, and ssd_mobilenet has the same layers without one.
Read it as "nothing is broken" and to compare versions of neon8, not as the accuracy to
expect.

- **MMACs**: millions of multiply-accumulates of one run. **layers**: steps of the plan.
- **float islands**: groups of steps between the first and the last convolution or
  MatMul that compute in float32, and what they do. Heads after that are no islands.
- **weights**: packed, in memory; **arena**: all activations of a run, and how it
  compares with the largest set of tensors that are alive at once.
- **SQNR**: of all outputs against FP32 by onnxruntime. yolov8n_nms and rtdetr_r18 rank
  boxes or queries, and of random weights near ties come out in another order, so that
  their rows say next to nothing; what they rank has what the row of yolov8n says,
  and 22 dB (the scores before TopK of rtdetr_r18).
- **ARM = x86**: runs on AArch64 and on ARMv7 that gave the same bytes.
"""

TRAINED = """\
## Trained networks, real samples

Their accuracy is in [](accuracy.md).
"""


def table(results: list[Row]) -> str:
    return pages.table(HEADER, (one.cells for one in results), left=WORDS)


def document(command: str, built: list[Row], given: list[Row]) -> str:
    """The first part of docs/networks.md; exports.py writes the other."""
    parts = [INTRODUCTION.format(command=command)]
    if built:
        parts.append(f"## Published architectures, random weights\n\n{table(built)}\n")
    if given:
        parts += [TRAINED, table(given)]
    return "\n".join(parts).rstrip("\n")


def main() -> int:
    """0 if every network ran and all bytes were equal."""
    parser = pages.options(__doc__)
    parser.add_argument("--only", nargs="*", choices=NETWORKS, metavar="NAME")
    parser.add_argument(
        *("--model",),
        nargs=3,
        action="append",
        default=[],
        metavar=("FILE.onnx", "DATA", "SETTINGS.toml"),
        help="a trained network, its samples, their preprocessing or '-'",
    )
    parser.add_argument(
        *("--beside",),
        action="store_true",
        help="compare with onnxruntime's int8: networks with attention, or --only",
    )
    arguments = parser.parse_args()
    logging.getLogger("neon8").setLevel(logging.ERROR)
    if arguments.beside:
        return compared(arguments.only, arguments.write)
    names = list(NETWORKS) if arguments.only is None else arguments.only
    built = [shown(random_network(name)) for name in names]
    given = []
    for file, data, settings in arguments.model:
        preprocess = None if settings == "-" else Preprocess.load(settings)
        result = real_network(Path(file), Path(data), preprocess)
        given.append(shown(result))
    words = [PROGRAM]
    if arguments.only is not None:
        words += ["--only", *names]
    for file, data, settings in arguments.model:
        words += ["--model", Path(file).name, Path(data).name, settings]
    if arguments.write:
        words += ["--write", str(arguments.write)]
        text = document(" ".join(words), built, given)
        pages.write(arguments.write, PROGRAM, text)
    return int(not all(result.equal for result in (*built, *given)))


def compared(only: list[str] | None, write: Path | None) -> int:
    """0 if neon8 is nowhere behind by more than LEEWAY."""
    results = []
    for name in beside.NETWORKS if only is None else only:
        results.append(beside.beside(name))
        print("  ".join(results[-1].cells), flush=True)
    if write:
        chosen = [] if only is None else ["--only", *only]
        words = [PROGRAM, "--beside", *chosen, "--write", str(write)]
        write.write_text(beside.document(" ".join(words), results))
    return int(any(one.ahead < -LEEWAY for one in results))


def shown(result: Row) -> Row:
    print("  ".join(filter(None, result.cells)), flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
