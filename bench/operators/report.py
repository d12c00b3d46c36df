# SPDX-License-Identifier: Apache-2.0
"""Which ONNX operators run, and in what: docs/operators.md, made by running them."""

import argparse
import logging
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import onnx

from bench import pages
from neon8.operators.registry import COMPOSITIONS, IMPORTS
from node_tests import NEWEST, Result, collect, run

COMMAND = (
    "PYTHONPATH=tests/host/shared .venv/bin/python -m bench.operators.report "
    "--write docs/operators.md"
)
SHOWN = 4
"""Names of node tests that are refused for the same reason."""

NOTES = {
    "Abs": "",
    "Add": "Two tensors, or a tensor and a constant.",
    "AveragePool": "One to three spatial dimensions; any attributes.",
    "BatchNormalization": "With the statistics of training; folded where it can be.",
    "Cast": "Between types of real numbers; computes nothing.",
    "CastLike": "Between types of real numbers; computes nothing.",
    "Conv": "One to three spatial dimensions; constant weights; any attributes.",
    "ConvTranspose": "One to three spatial dimensions; constant weights.",
    "Dropout": "Computes nothing; not in training mode.",
    "Elu": "",
    "Flatten": "Any axis.",
    "GlobalAveragePool": "",
    "GlobalMaxPool": "",
    "Identity": "",
    "LRN": "An odd size.",
    "MaxPool": "One to three spatial dimensions; any attributes.",
    "ReduceL2": "Constant axes.",
    "ReduceMax": "Constant axes.",
    "ReduceMean": "Constant axes.",
    "ReduceMin": "Constant axes.",
    "ReduceSum": "Constant axes.",
    "Reshape": "A shape that is known at import.",
    "Squeeze": "Constant axes.",
    "Transpose": "Up to eight dimensions.",
    "Unsqueeze": "Constant axes.",
}
"""What the description of an operator's import does not say."""

INTRODUCTION = f"""\
# Operators

Made by

    {COMMAND}

and checked by `tests/host/graph/test_node_tests.py`. An operator that is not here, or
is here and asks for what its line excludes, is an opaque node: `observe`, `calibrate`
and `convert` work on the network, `inspect` lists it, and `compile` refuses it by name.

Opsets 7 to {onnx.defs.onnx_opset_version()}. float16 and float64 networks are computed
as float32. What depends on constants only is computed at import, whatever the operator.

## Supported operators

*Versions* are the opsets in which ONNX defined or changed the operator. *Runs in* is
what the node tests below showed; a dash where no node test could be run.

"""

TESTS = f"""\

## Node tests

The onnx package defines each operator by tests of one node, with inputs and outputs.
Those of the operators above are made networks (inputs that must be constants become
initializers), calibrated on their inputs, compiled and run; those of opsets after
{NEWEST}, which onnxruntime does not promise to run, as of that one. The FP32 Graph must
give the outputs that ONNX wants; the int8 outputs may be one step from what the
operator gives for the rounded inputs and weights, as `tests/host/shared/node_tests.py`
explains.

"""

INTEGERS = re.compile(r"(tensor|weights) '\w+' (is|are) u?int\d+.*")


def render(results: list[Result]) -> str:
    passed = {r.operator for r in results if r.outcome == "passed"}
    known = {*IMPORTS, *COMPOSITIONS}
    results = [r for r in results if r.operator in known | passed]
    ran = defaultdict(set)
    for result in results:
        if result.outcome == "passed":
            ran[result.operator].add(result.detail)
    header = ("operator", "versions", "runs in", "what of it")
    rows = [
        (
            name,
            _versions(name),
            ", ".join(sorted(ran[name], reverse=True)) or "-",
            _note(name),
        )
        for name in sorted({*IMPORTS, *COMPOSITIONS, *passed})
    ]
    text = f"{INTRODUCTION}{pages.table(header, rows, left=header)}\n{TESTS}"
    count = Counter(result.outcome for result in results)
    text += (
        f"{count['passed']} passed, {count['refused']} refused, "
        f"{count['other']} computed as onnxruntime does, which differs from the test, "
        f"{count['failed']} failed.\n\n"
    )
    passed = Counter(r.operator for r in results if r.outcome == "passed")
    whole = Counter(r.operator for r in results)
    header = ("operator", "passed", "of", "refused, and why")
    rows = [
        (
            name,
            f"{passed[name]}",
            f"{whole[name]}",
            "; ".join(_refusals([r for r in results if r.operator == name])),
        )
        for name in sorted(whole)
    ]
    return f"{text}{pages.table(header, rows, left=header[-1:])}\n"


def _versions(name: str) -> str:
    schemas = onnx.defs.get_all_schemas_with_history()
    found = {s.since_version for s in schemas if s.name == name and not s.domain}
    return ", ".join(map(str, sorted(found))) or "-"


def _note(name: str) -> str:
    if name in NOTES:
        return NOTES[name]
    if name not in {*IMPORTS, *COMPOSITIONS}:
        return "By the function that ONNX defines it by."
    function = IMPORTS[name] if name in IMPORTS else COMPOSITIONS[name]
    function = getattr(function, "func", function)
    return (function.__doc__ or "").split("\n")[0].replace("|", "\\|")


def _refusals(results: list[Result]) -> list[str]:
    """A reason, and the tests that it is of."""
    reasons = defaultdict(list)
    for result in results:
        if result.outcome != "passed":
            short = result.name.removeprefix("test_")
            reason = INTEGERS.sub("is of integers", result.detail)
            reasons[reason.replace(f"{result.name}: ", "")].append(short)
    found = []
    for reason, names in reasons.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        shown = ", ".join(f"`{name}`" for name in names[:SHOWN])
        cut = reason if len(reason) <= 160 else f"{reason[:160]}..."
        found.append(f"{shown}{more}: {cut}".replace("|", "\\|").replace("\n", " "))
    return found


def main() -> int:
    """Run all, write the page, say what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE.md")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    results = [run(case) for case in collect()]
    failed = [result for result in results if result.outcome == "failed"]
    for result in failed:
        print(f"{result.name}: {result.detail}", file=sys.stderr)
    page = render(results)
    if arguments.write is None:
        print(page)
    else:
        arguments.write.write_text(page)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
