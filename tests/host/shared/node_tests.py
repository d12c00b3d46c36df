# SPDX-License-Identifier: Apache-2.0
"""The node tests of the onnx package, each as a network from file to int8 outputs.

A node test is a model of one node, its inputs and the outputs that ONNX defines. It is
calibrated on these inputs, compiled, and run by the library.
"""

import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from onnx import numpy_helper

import graph_executor
import neon8
from neon8.calibrate.run.reference import Reference
from neon8.compile import writer
from neon8.compile.domains import NO_SCALES
from neon8.compile.lower import lower
from neon8.errors import Neon8Error
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.ir.graph import FLOATS, INTEGERS, Graph
from neon8.ir.program import Program
from neon8.operators.boxes import Suppression
from neon8.operators.conversion import DequantizeOp, QuantizeOp
from neon8.operators.convolution import Conv2d
from neon8.operators.opaque import Opaque
from neon8.operators.recurrent import Recurrent
from neon8.operators.reference import centred, quantize
from neon8.operators.registry import COMPOSITIONS, IMPORTS
from neon8.quant.scale_table import ScaleTable

NEWEST = 26
"""The newest opset that onnxruntime promises to run, and so to calibrate; a test of a
newer one is run as of this."""
OLDEST = 7
"""The oldest one that neon8 reads; a test of an older one of the same operator is run
as of this."""
NEWEST_IR = 10
"""The same of the file's own version."""
STEPS = 1.01
"""In the output's: one rounding is half a step, and another half where a value that
lies between two levels falls to the other side by a float32 error or by a table's
rounding of its argument; a hundredth for float32 itself."""
PARTS = 2.0
"""By how much a part of an operator may enlarge what was rounded before it."""
FLOAT = 2e-4
"""For float32 outputs, relative to the largest: float32 sums in another order."""
FLOAT16, BFLOAT16 = 1e-3, 1e-2
"""What the outputs of a test may be off, relative to them, where it is of these."""
WRONG = ("failed", "the Graph does not compute the outputs of the test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """outcome: "passed", "refused", "other" or "failed"; detail: where it runs, or why.

    other: onnxruntime, which calibrates and is the FP32 network, computes something
    else than ONNX wants, and so does neon8.
    """

    name: str
    operator: str
    outcome: str
    detail: str


def collect():
    """Tests of one node, which neon8 knows or which ONNX defines by others."""
    from onnx.backend.test.case import node

    # The bodies of operators that are functions are not wanted, and take most time.
    with (
        warnings.catch_warnings(),
        mock.patch.object(node, "function_testcase_helper", return_value=([], 0)),
    ):
        warnings.simplefilter("ignore")
        cases = node.collect_testcases()
    return [
        case
        for case in cases
        if len(case.model.graph.node) == 1
        and _known(case.model.graph.node[0].op_type)
        and case.model.graph.node[0].domain in ("", "ai.onnx")
    ]


def _known(operator: str) -> bool:
    """Newer operators than onnxruntime's have no tests that could be run."""
    if operator in {*IMPORTS, *COMPOSITIONS}:
        return True
    if not onnx.defs.has(operator, NEWEST):
        return False
    schema = onnx.defs.get_schema(operator, NEWEST)
    return schema.has_function or schema.has_context_dependent_function


def run(case) -> Result:
    """One node test."""
    operator = case.model.graph.node[0].op_type
    outcome, detail = _run(case)
    return Result(name=case.name, operator=operator, outcome=outcome, detail=detail)


def _run(case) -> tuple[str, str]:
    inputs, outputs = ([_array(v) for v in values] for values in case.data_sets[0])
    if not all(isinstance(value, np.ndarray) for value in (*inputs, *outputs)):
        return "refused", "its values are sequences or optional"
    values = dict(zip((v.name for v in case.model.graph.input), inputs, strict=True))
    wanted = dict(zip((v.name for v in case.model.graph.output), outputs, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        reason = "has no inputs of real numbers"
        for constants in _variants(values):
            free = {n: v for n, v in values.items() if n not in constants}
            _save(path, case.model, {n: values[n] for n in constants}, free)
            try:
                file = open_onnx(path)
                graph = load(file)
                opaque = [n for n in graph.nodes if isinstance(n, Opaque)]
                if opaque:
                    reason = opaque[0].reason
                    continue
                # Plain: what is wanted of the integers is what rounding makes of them.
                table = _table(path, graph, free)
                blob = (
                    neon8.compile_model(graph, table)
                    if table.tensors
                    else writer.dumps(lower(graph, table, partial=True))
                )
            except Neon8Error as error:
                reason = str(error).replace(str(path), case.name)
                continue
            composed = file.original is not None
            values, expected = _plain(free), _padded(graph, _plain(wanted))
            narrow = any(v.dtype.name == "bfloat16" for v in wanted.values())
            rtol = BFLOAT16 if narrow else FLOAT16
            outcome = _judge(
                graph, table, blob, values, expected, composed=composed, rtol=rtol
            )
            if outcome == WRONG and _as_reference(path, graph, free, values):
                return "other", "is computed as onnxruntime does, not as the test wants"
            return outcome
    return "refused", reason


def _array(value):
    """As numpy has it, with the types of ml_dtypes; what is no tensor stays."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _plain(values):
    """Numbers as float32 and int64, strings as they are."""
    return {
        name: value.astype(np.float32 if value.dtype.name in FLOATS else np.int64)
        if value.dtype.name in (*FLOATS, *INTEGERS)
        else value
        for name, value in values.items()
    }


def _table(path, graph: Graph, free) -> ScaleTable:
    """Without scales where onnxruntime cannot run it, or a value is not finite."""
    table = replace(NO_SCALES, model_digest=graph.digest)
    if any(tensor.observed for tensor in graph.tensors.values()):
        with suppress(Neon8Error):
            return neon8.calibrate_model(path, [free], method="minmax", plain=True)
    return table


def _as_reference(path, graph: Graph, free, values) -> bool:
    """True if onnxruntime gives the outputs of the Graph."""
    try:
        reference = Reference(path).run(free)
    except Neon8Error:
        return False
    exact = _compute(graph, values)
    return all(_close(exact[name], reference[name]) for name in graph.outputs)


def _padded(graph: Graph, wanted):
    """With rows of -1 where the Graph has as many rows as there can be  (38)."""
    if not any(isinstance(node, Suppression) for node in graph.nodes):
        return wanted
    return {
        name: np.pad(
            value,
            [(0, graph.tensors[name].dims[0] - len(value)), (0, 0)],
            constant_values=-1,
        )
        for name, value in wanted.items()
    }


def _variants(values) -> list[tuple[str, ...]]:
    """Which inputs are constants: none; all that are no floats; all but one or two."""
    names = tuple(values)
    others = tuple(n for n, v in values.items() if v.dtype.name not in FLOATS)
    found = [(), others, names[1:], names[2:]]
    return [each for each in dict.fromkeys(found) if len(each) < len(names)]


def _save(path, model, constants, free) -> None:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.input[:]
    made.graph.input.extend(v for v in model.graph.input if v.name in free)
    made.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in constants.items()
    )
    made.ir_version = min(max(made.ir_version, 4), NEWEST_IR)
    operator = made.graph.node[0].op_type
    for entry in made.opset_import:
        entry.version = min(entry.version, NEWEST)
        if _is_old(operator, entry.version):
            entry.version = OLDEST
    path.write_bytes(made.SerializeToString())


def _is_old(operator: str, opset: int) -> bool:
    """True if the operator of an opset before OLDEST is still the same in that."""
    if opset >= OLDEST or not onnx.defs.has(operator, OLDEST):
        return False
    return onnx.defs.get_schema(operator, OLDEST).since_version <= opset


def _judge(graph, table, blob, free, wanted, *, composed, rtol) -> tuple[str, str]:
    """wanted: the outputs that ONNX defines."""
    with (
        neon8.Model.from_bytes(blob, source="node") as model,
        model.session() as session,
    ):
        found = session.run(free)
    program = lower(graph, table, partial=not table.tensors)
    exact = _compute(graph, free)
    rounded = _compute(_rounded_weights(graph, table), _rounded(free, program))
    inner = _between(graph, table) if composed else 0.0
    for name, want in wanted.items():
        if not _close(exact[name], want, rtol):
            return WRONG
        step = 0.0
        made = next(op for op in program.ops if op.output == name)
        if isinstance(made, DequantizeOp):
            step = float(program.tensors[made.inputs[0]].scale)
        slack = (
            STEPS * step
            + inner
            + FLOAT * np.abs(want[np.isfinite(want)]).max(initial=0)
        )
        slack += sum(
            _dynamic(node, graph, exact)
            for node in graph.nodes
            if isinstance(node, Recurrent)
        )
        error = np.minimum(
            _error(found[name], exact[name]), _error(found[name], rounded[name])
        ).max(initial=0)
        if not error <= slack:
            return "failed", f"output {name!r} is {error:.4g} off, {slack:.4g} may be"
    return "passed", "float32" if program.islands else "int8"


def _between(graph: Graph, table: ScaleTable) -> float:
    """What rounding between the parts of an operator costs: steps of each tensor.

    As if no part made an error larger.
    """
    ends = (*graph.inputs, *graph.outputs)
    inner = [entry.scale for name, entry in table.tensors.items() if name not in ends]
    return STEPS * PARTS * sum(inner)


def _dynamic(node: Recurrent, graph: Graph, values) -> float:
    """What the rounding of (21) costs, to first order, from the first step to the last.

    In each product w x, both are within 1/254 of the largest of their row and vector; a
    gate or a state is off by no more than the sum before it, as no function of them is
    steeper than 1; and every step of the sequence adds as much to the state.
    """
    x = np.abs(values[node.inputs[0]])
    sums = 0.0
    for matrix, largest in ((node.weight, x.max()), (node.recurrence, 1.0)):
        rows = np.abs(matrix)
        each = rows.sum(axis=-1) + rows.shape[-1] * rows.max(axis=-1)
        sums += float(each.max()) * float(largest) / 254
    return sums * graph.tensors[node.inputs[0]].dims[0]


def _error(found, wanted):
    """0 where both are infinite, or NaN."""
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0, np.abs(found - wanted))


def _close(found, wanted, rtol=FLOAT16) -> bool:
    """For float32, or what has fewer bits where the test is of that."""
    return np.allclose(found, wanted, rtol=rtol, atol=1e-5, equal_nan=True)


def _compute(graph: Graph, inputs) -> dict[str, np.ndarray]:
    return graph_executor.run(graph, inputs)


def _rounded(inputs, program: Program) -> dict[str, np.ndarray]:
    """The inputs as int8 has them, where they become int8."""
    found = dict(inputs)
    for op in program.ops:
        if isinstance(op, QuantizeOp) and op.inputs[0] in inputs:
            tensor = program.tensors[op.output]
            levels = quantize(inputs[op.inputs[0]].astype(np.float32), tensor)
            found[op.inputs[0]] = centred(levels, tensor) * tensor.scale
    return found


def _rounded_weights(graph: Graph, table: ScaleTable) -> Graph:
    """The network with the weights of its convolutions as int8 has them."""
    nodes = []
    for node in graph.nodes:
        if isinstance(node, Conv2d) and node.name in table.layers:
            scales = np.array(table.layers[node.name].weight_scales)
            scales = np.broadcast_to(scales, len(node.weight)).reshape(-1, 1, 1, 1)
            weight = np.clip(np.rint(node.weight / scales), -127, 127) * scales
            nodes.append(replace(node, weight=weight))
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))
