# SPDX-License-Identifier: Apache-2.0
"""Networks as other tools quantize them, and what onnxruntime computes of them."""

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, quantize_static

from neon8.compile import oracle
from neon8.compile.compiler import compile_model
from neon8.compile.lower import lower
from neon8.rewrite.own_scales import load_quantized
from neon8.runtime import Model
from onnx_nets import net, node, save

ZERO = np.int8(0)


class Net:
    """Grows from `x`; each method adds nodes and gives the name of their result."""

    def __init__(self, *shape, opset=13, seed=0):
        self.inputs = {"x": shape}
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self.nodes = []
        self.arrays = {}
        self.count = 0

    def array(self, values, name=""):
        """A new initializer."""
        self.count += 1
        name = f"{name or 'c'}{self.count}"
        self.arrays[name] = np.asarray(values)
        return name

    def add(self, operator, *inputs, output="", name="", **attributes):
        """A node; inputs are names."""
        self.count += 1
        output = output or f"{operator.lower()}{self.count}"
        made = node(operator, "", output, name or output, **attributes)
        made.input.extend(inputs)
        self.nodes.append(made)
        return output

    def pair(self, source, scale, zero_point=ZERO, *, output="", **attributes):
        """QuantizeLinear and DequantizeLinear."""
        scale = self.array(np.asarray(scale, np.float32), "s")
        constants = [scale, self.array(zero_point, "z")]
        q = self.add("QuantizeLinear", source, *constants, **attributes)
        return self.add("DequantizeLinear", q, *constants, output=output, **attributes)

    def integers(self, values, scale, zero_point=None, **attributes):
        """DequantizeLinear of a constant."""
        values = np.asarray(values)
        scale = np.asarray(scale, np.float32)
        names = [self.array(values, "q"), self.array(scale, "s")]
        if zero_point is not None:
            names.append(self.array(np.asarray(zero_point, values.dtype), "z"))
        return self.add("DequantizeLinear", *names, **attributes)

    def conv(self, source, weights, scale, *, s_in=None, bias=None, **attributes):
        """A convolution with int8 weights of one scale, or of one for each channel."""
        per = {"axis": 0} if np.ndim(scale) else {}
        inputs = [source, self.integers(weights, scale, **per)]
        if bias is not None:
            unit = np.float32(s_in) * np.asarray(scale, np.float32)
            inputs.append(self.integers(np.asarray(bias, np.int32), unit, **per))
        return self.add("Conv", *inputs, **attributes)

    def weights(self, *shape, lowest=-127):
        """Random int8 weights."""
        return self.rng.integers(lowest, 128, shape).astype(np.int8)

    def model(self, outputs):
        """The ONNX model."""
        return net(self.nodes, self.inputs, outputs, self.arrays, opset=self.opset)


class Reader(CalibrationDataReader):
    """Samples for onnxruntime's own quantization."""

    def __init__(self, samples):
        self.samples = iter(samples)

    def get_next(self):
        return next(self.samples, None)


def quantized_by_ort(folder, model, samples, **options):
    """The file that quantize_static makes of a float model."""
    source = save(folder, model, "float.onnx")
    target = folder / "quantized.onnx"
    quantize_static(str(source), str(target), Reader(samples), **options)
    return target


def ort(path, inputs, *, fused=True, exact=True):
    """The outputs of onnxruntime; fused: with its integer kernels.

    exact: not those whose sums may saturate without VNNI; there are not all of them.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    if not fused:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def program(path):
    """What the compiler makes of a quantized file."""
    return lower(*load_quantized(path))


def steps(path):
    """The kinds of steps, in order."""
    return [op.operation.lower() for op in program(path).ops]


def grids(path):
    """Output -> the step of its last QuantizeLinear, 0 where it is float."""
    graph, table = load_quantized(path)
    return {
        name: table.tensors[name].scale if name in table.tensors else 0.0
        for name in graph.outputs
    }


def differences(path, samples, *, fused=True, exact=True):
    """How many steps our library is from onnxruntime, over all samples and outputs.

    The oracle has to agree with the library in every byte.
    """
    made = program(path)
    scales = grids(path)
    found = []
    with (
        Model.from_bytes(compile_model(path), source="q") as model,
        model.session() as session,
    ):
        for sample in samples:
            ours = session.run(sample)
            theirs = ort(path, sample, fused=fused, exact=exact)
            again = oracle.run(made, sample)
            for name, value in ours.items():
                assert value.tobytes() == again[name].tobytes(), name
                step = scales[name] or np.abs(theirs[name]).max() * 1e-5
                found.append(np.rint((value - theirs[name]) / step).ravel())
    return np.abs(np.concatenate(found))


def noise(shape, count=4, *, seed=5, name="x"):
    """Random inputs."""
    rng = np.random.default_rng(seed)
    return [{name: rng.normal(0, 1, shape).astype(np.float32)} for _ in range(count)]


def of_type(model, name, kind):
    """`model`, whose input or output `name` is of another type."""
    for value in (*model.graph.input, *model.graph.output):
        if value.name == name:
            value.type.tensor_type.elem_type = kind
    onnx.checker.check_model(model)
    return model
