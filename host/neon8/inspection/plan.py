# SPDX-License-Identifier: Apache-2.0
"""The plan of a model as a table: what each step does, with what, and where."""

from collections.abc import Collection, Sequence

from neon8 import text
from neon8.runtime import StepInfo

WINDOWS = {"conv2d", "max_pool", "average_pool"}

MOVES = {"concat", "gather", "permute", "reshape"}
"""Operations that only move values, of either type."""

GIVE_FLOAT = {"conv2d", "average_pool"}
"""Operations on levels that may write float32, which the outputs take for nothing."""

WHY = {
    **dict.fromkeys(GIVE_FLOAT, "writes float32 since what reads it does"),
    "softmax": "exponentials have no grid of 256 levels in common",
}
"""Why an operation takes or gives float32, where the file does not say."""

LEGEND = (
    "kernel: its symbol; copy: values are moved; none: they lie right already",
    "acc bound: largest |accumulator| for any input, proved below 2147483648",
    "int16 depth: products that may be summed in int16 before widening",
    "memory: where the output begins in the arena, and what it shares the place with",
)

CHOICES = (
    "proved: products that may be summed in int16; no |accumulator| reaches the power;",
    "  F(2,3): weights for int8 Winograd, whose inputs must span at most 127 as well",
    "not: a kernel of the same level that is preferred where nothing speaks against it",
    "other levels and cores: --isa LEVEL, --target aarch64, --cpu CORE",
)


def table(steps: Sequence[StepInfo]) -> list[text.Part]:
    """One line for each step, and what the columns mean."""
    rows = [
        (
            number,
            step.name,
            step.operation,
            geometry(step),
            text.shape(step.shape),
            scheme(step),
            text.number(step.scale) if step.quantized else text.UNKNOWN,
            step.kernel,
            step.macs,
            step.packed,
            *proofs(step),
            memory(step),
        )
        for number, step in enumerate(steps)
    ]
    header = (
        *("", "layer", "operation", "window", "output", "scheme", "scale", "kernel"),
        *("MACs", "packed", "weights", "acc bound", "int16 depth", "memory"),
    )
    return [text.Table("steps", rows, header), "", *LEGEND]


def choices(steps: Sequence[StepInfo]) -> list[text.Part]:
    """One line for each convolution: what is proved of it, and what chose its kernel.

    Nothing where there are none.
    """
    rows = [
        (
            number,
            step.name,
            certificate(step),
            step.kernel,
            step.chosen,
            step.passed or text.UNKNOWN,
            step.lack or text.UNKNOWN,
        )
        for number, step in enumerate(steps)
        if step.int16_depth
    ]
    if not rows:
        return []
    header = ("", "layer", "proved", "kernel", "why", "not", "why not")
    return [
        text.Table("kernels of convolutions", rows, header),
        "",
        *CHOICES,
        "",
    ]


def certificate(step: StepInfo) -> str:
    """'int16 depth 4, sums below 2^19, F(2,3) half': of (11), (12) and (23)."""
    bits = int(step.acc_bound).bit_length()
    proved = f"int16 depth {step.int16_depth}, sums below 2^{bits}"
    return f"{proved}, F(2,3) {step.winograd}" if step.winograd else proved


def scheme(step: StepInfo) -> str:
    """Scheme of the output, its bits in int16; or float32."""
    if not step.quantized:
        return step.dtype
    more = "" if step.dtype == "int8" else f", {step.hi.bit_length() + 1} bits"
    if step.zero_point == 0 and step.lo == -step.hi:
        return f"symmetric{more}"
    least = -128 if step.dtype == "int8" else step.lo
    kind = "unsigned" if step.zero_point == least else f"asymmetric {step.zero_point}"
    return f"{kind}{more}"


def memory(step: StepInfo) -> str:
    """Where the output is."""
    place = f"at {step.offset}"
    return {
        "place": f"{place}, in place of {step.shared}",
        "view": f"{place}, view of {step.shared}",
        "slice": f"{place}, slice of {step.shared}",
        "tail": f"{place}, end of {step.shared}",
        "caller": "the caller's",
    }.get(step.sharing, place)


def proofs(step: StepInfo) -> tuple[object, object, object]:
    """Weights and what they prove; nothing where there are none."""
    if step.int16_depth == 0:
        return text.UNKNOWN, text.UNKNOWN, text.UNKNOWN
    lo, hi = step.weights
    return text.span(lo, hi), step.acc_bound, step.int16_depth


def geometry(step: StepInfo) -> str:
    """'3x3', '3x3 /2', '3x3 /2 g32', '24 tables'; nothing where there is neither."""
    if step.tables > 1:
        return f"{step.tables} tables"
    if step.operation not in WINDOWS:
        return ""
    words = [text.shape(step.window)]
    if step.stride != (1, 1):
        same = step.stride[0] == step.stride[1]
        words.append(f"/{step.stride[0]}" if same else f"/{text.shape(step.stride)}")
    if step.groups != 1:
        words.append(f"g{step.groups}")
    return " ".join(words)


def islands(steps: Sequence[StepInfo], floats: Collection[str]) -> list[text.Part]:
    """Runs of steps that hand float32 to one another, and why.

    floats: inputs of the network that are float32. What only turns them into int8,
    and what only turns int8 into an output of the network, is no island.
    """
    real = {*floats, *(step.output for step in steps if step.dtype == "float32")}
    groups: dict[str, list[int]] = {}  # by the tensors that they make
    for number, step in enumerate(steps):
        if step.output not in real or step.operation == "dequantize":
            continue
        if step.operation in GIVE_FLOAT and not _read_as_float(step, steps):
            continue
        members = [number]
        joined = [groups[name] for name in step.inputs if name in groups]
        for group in joined:
            members += [one for one in group if one not in members]
        for one in members:
            groups[steps[one].output] = members
    found = {id(group): sorted(group) for group in groups.values()}
    rows = [
        (
            " ".join(map(str, group)),
            where([steps[one] for one in group], steps),
            ", ".join(dict.fromkeys(steps[one].operation for one in group)),
            "; ".join(dict.fromkeys(why(steps[one]) for one in group)),
        )
        for group in sorted(found.values())
    ]
    if not rows:
        return ["float islands: none"]
    return [text.Table("float islands", rows, ("steps", "where", "what", "why"))]


def where(group: Sequence[StepInfo], steps: Sequence[StepInfo]) -> str:
    """Whether int8 goes on after these steps."""
    made = {step.output for step in group}
    later = (step for step in steps if step.operation == "quantize")
    inside = any(made.intersection(step.inputs) for step in later)
    return "between int8 steps" if inside else "before the outputs"


def why(step: StepInfo) -> str:
    """Why it computes in float32: what the compiler said, else what it does tells."""
    if step.reason:
        return step.reason
    if step.operation in MOVES:
        return "moves what is float32 already"
    return WHY.get(step.operation, f"{step.operation} has no int8 form")


def _read_as_float(step: StepInfo, steps: Sequence[StepInfo]) -> bool:
    return any(step.output in other.inputs for other in steps)
