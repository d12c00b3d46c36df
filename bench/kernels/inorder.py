# SPDX-License-Identifier: Apache-2.0
"""A model of the in-order Cortex-A53 and A55, for loops.

llvm-mca is of no use for these two: its models write results back in order, so that a
vector instruction and a load never issue together, which is what kernels for these
cores live on.

Two instructions a cycle issue, in the order of the program, each as soon as its
operands and its unit are there:

- two scalar ALUs, a scalar multiplier, a branch unit;
- a load unit of 64 bits a cycle and a store unit, on the A53 one and the same; a load
  or store that takes more than a cycle issues alone, and so does a load of a pair or
  of 128 bits;
- two vector pipes of 64 bits; whatever names 128 bits of a register, or a lane, takes
  both, and a pairwise addition to 128 bits of sums for two cycles.

On the A53 a load to a vector register never goes beside a vector instruction, except
beside the insertion of a general register, which in turn goes beside no other: ldr of
an x register, then ldr of a d register and the insertion together, load 128 bits in two
cycles of which one is free for a vector instruction. On the A55 an insertion takes no
pipe.

An address that is written back is there in the next cycle. A taken branch is the last
instruction of its cycle. The result of a multiplication reaches the next one that adds
to it as late as any other instruction. Latencies are round numbers: after what Arm
publishes of the A55, and for the A53, of which it publishes nothing, after what is
generally known. Nothing was measured here, but loops that others have measured come out
within a sixth of what they publish: tests/host/bench/test_cycles.py.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from bench.kernels.assembly import BRANCH, NO_WORK, Step, registers

WIDTH = 2
"""Instructions that issue in a cycle."""

UNITS = {
    "alu": 2,
    "multiply": 1,
    "branch": 1,
    "load": 1,
    "store": 1,
    "vector": 2,
    "insert": 2,
}
"""How many there are.  insert: what insertions and other vector instructions share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Cycles until a result may be used, by kind, and what else differs.

    alu to permute: vector instructions.  to_scalar, from_scalar: those between the
    register files.  store_bits: a cycle.  one_port: loads and stores share a unit, and
    loads to vector registers keep vector instructions out.
    """

    alu: int
    shift: int
    multiply: int
    fused: int
    float: int
    permute: int
    to_scalar: int
    from_scalar: int
    load: int
    vector_load: int
    store_bits: int
    one_port: bool


A53 = Core(
    alu=3,
    shift=3,
    multiply=4,
    fused=5,
    float=4,
    permute=3,
    to_scalar=4,
    from_scalar=4,
    load=3,
    vector_load=4,
    store_bits=64,
    one_port=True,
)
A55 = replace(
    A53,
    alu=2,
    fused=4,
    permute=2,
    to_scalar=3,
    from_scalar=3,
    store_bits=128,
    one_port=False,
)
SCALAR_MULTIPLY, SCALAR_DIVIDE = 3, 8
"""Latencies; a division keeps the multiplier for as long."""
VECTOR_DIVIDE, VECTOR_DIVIDE_BUSY = 20, 10

KINDS = (
    ("multiply", r"[sup]?mull?2?|[su]ml[as]l2?|ml[as]|(s|u|us|su)(dot|mmla)"),
    ("multiply", r"[su]adalp|sqr?dm\w+"),
    ("fused", r"fml[as]l?2?|fn?m(add|sub)"),
    ("float", r"f(?!mov)\w+|[su]cvtf"),
    ("shift", r"[su]?q?r?sh(l|ll|lu|r|rn|run)2?|s[lr]i|[su]r?sra"),
    ("shift", r"[su]?q?xtu?n2?|[su]xtl2?"),
    ("permute", r"tb[lx]|(zip|uzp|trn)[12]|ext|dup|ins|mov|movi|mvni|rev\d*"),
    ("alu", r"\w+"),
)
"""What vector instructions need: the first pattern that matches a mnemonic counts."""

UPDATES = re.compile(
    r"[su]ml[as]l2?|ml[as]|(s|u|us|su)(dot|mmla)|fml[as]l?2?|[su]adalp|sqr?dml\w+"
    r"|[su]abal?2?|[su]r?sra|s[lr]i|bsl|bi[tf]|tbx|\w+n2|bfi|bfxil|movk"
)
"""Their result is an operand, too."""
COMPARES = re.compile(r"cm[pn]|tst|f?ccm[pn]e?|fcmpe?")
SETS_FLAGS = re.compile(r"adds|subs|ands|bics|negs")
READS_FLAGS = re.compile(r"f?csel|cset\w?|cs?inc|cs?inv|cs?neg|f?ccm[pn]e?|adc|sbc")
MULTIPLIES = re.compile(r"m(ul|add|sub|neg)|[su]m(ul|add|sub|neg)[lh]")
WIDE = re.compile(r"\bq\d|\.(16b|8h|4s|2d)|\.[bhsd]\[")
LANE = re.compile(r"\}\[\d+\]")
ADDRESS = re.compile(r"\[([a-z][^\[\]]*)\](!?)(?:, (\S+))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What an instruction takes.

    units: how many of which of UNITS, for `busy` cycles; alone: in its cycle; latency:
    of `writes`; base: registers that are there in the next cycle.
    """

    units: Mapping[str, int]
    busy: int = 1
    latency: int = 1
    alone: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    base: tuple[str, ...] = ()


@cache
def use(text: str, core: Core) -> Use:
    """What an instruction, as llvm-objdump spells it, takes of a core."""
    mnemonic, _, operands = text.partition(" ")
    if NO_WORK.fullmatch(mnemonic):
        return Use(units={"alu": 1})
    if BRANCH.fullmatch(mnemonic):
        flags = ("flags",) if "." in mnemonic else ()
        return Use(units={"branch": 1}, reads=(*registers(operands), *flags))
    if mnemonic.startswith(("ld", "st", "prf")):
        return access(mnemonic, operands, core)
    first, _, rest = operands.partition(",")
    writes, reads = tuple(registers(first)), tuple(registers(rest))
    if COMPARES.fullmatch(mnemonic):
        writes, reads = ("flags",), writes + reads
    elif UPDATES.fullmatch(mnemonic) or "[" in first:
        reads += writes
    if SETS_FLAGS.fullmatch(mnemonic):
        writes += ("flags",)
    if READS_FLAGS.fullmatch(mnemonic):
        reads += ("flags",)
    if any(name.startswith("v") for name in registers(operands)):
        return vector(mnemonic, operands, reads, writes, core)
    if MULTIPLIES.fullmatch(mnemonic):
        latency = SCALAR_MULTIPLY
        return Use(units={"multiply": 1}, latency=latency, reads=reads, writes=writes)
    if mnemonic in {"udiv", "sdiv"}:
        busy = SCALAR_DIVIDE
        return Use(
            units={"multiply": 1},
            busy=busy,
            latency=busy,
            alone=True,
            reads=reads,
            writes=writes,
        )
    return Use(units={"alu": 1}, reads=reads, writes=writes)


def access(mnemonic: str, operands: str, core: Core) -> Use:
    """A load, a store or a prefetch."""
    found = ADDRESS.search(operands)
    inside, before, after = found.groups() if found else ("", "", None)
    data = operands[: found.start()] if found else operands
    moved, reads = tuple(registers(data)), tuple(registers(f"{inside} {after}"))
    base = reads[:1] if before or after else ()
    if mnemonic.startswith("prf"):
        return Use(units={"load": 1}, reads=reads)
    of_vectors = any(name.startswith("v") for name in moved)  # none is xzr alone
    lane = LANE.search(data) is not None
    bits = 32 if data.startswith("w") else 64
    if WIDE.search(data) and not lane and not re.fullmatch(r"ld\dr", mnemonic):
        bits = 128
    if mnemonic.startswith("st"):
        busy = max(1, bits * len(moved) // core.store_bits if of_vectors else 1)
        return Use(
            units={"load" if core.one_port else "store": 1},
            busy=busy,
            alone=busy > 1,
            reads=reads + moved,
            base=base,
        )
    busy = max(1, bits * len(moved) // 64)
    latency = (core.vector_load if of_vectors else core.load) + busy - 1
    return Use(
        units={"load": 1, "vector": 2} if of_vectors and core.one_port else {"load": 1},
        busy=busy,
        latency=latency + mnemonic.startswith(("ld2", "ld3", "ld4")),
        alone=bits == 128 or len(moved) > 1,
        reads=reads + (moved if lane else ()),
        writes=moved,
        base=base,
    )


def vector(
    mnemonic: str,
    operands: str,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    core: Core,
) -> Use:
    """A vector instruction that is neither load nor store."""
    divides = mnemonic in {"fdiv", "fsqrt"}
    count = 2 if WIDE.search(operands) or divides else 1
    units = {"vector": count, "insert": count} if core.one_port else {"vector": count}
    kind = next(kind for kind, words in KINDS if re.fullmatch(words, mnemonic))
    latency, busy = getattr(core, kind), 1
    if divides:
        latency, busy = VECTOR_DIVIDE, VECTOR_DIVIDE_BUSY
    elif mnemonic in {"tbl", "tbx"}:
        busy = len(list(registers(operands))) - 2  # registers of the table
        latency += busy - 1
    elif any(name.startswith("x") for name in writes):
        latency = core.to_scalar
    elif any(name.startswith("x") for name in reads):
        latency = core.from_scalar
        if mnemonic in {"ins", "mov", "fmov"}:
            units = {"insert": 2} if core.one_port else {}
    elif mnemonic in {"sadalp", "uadalp"} and count == 2:
        latency, busy = latency + 1, 2
    return Use(
        units=units,
        busy=busy,
        latency=latency,
        reads=reads,
        writes=writes,
    )


PASSES = 12
"""After which a loop goes on as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """An instruction, the cycle of its issue, what it uses and what it waited for."""

    text: str
    cycle: int
    units: tuple[str, ...]
    waits: str


class Pipeline:
    """Where a core is: the cycle, what has issued in it, when what will be there."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.cycle = 0
        self.issued = 0
        self.ready: dict[str, int] = {}
        self.free = {unit: [0] * count for unit, count in UNITS.items()}

    def issue(self, step: Step) -> Issued:
        what = use(step.text, self.core)
        slots = WIDTH if what.alone else 1
        for unit in what.units:
            self.free[unit].sort()
        next_slot = self.cycle + (self.issued + slots > WIDTH)
        free = {unit: self.free[unit][count - 1] for unit, count in what.units.items()}
        ready = {name: self.ready.get(name, 0) for name in what.reads}
        at = max(next_slot, *free.values(), *ready.values())
        found = Issued(
            text=step.text,
            cycle=at,
            units=tuple(what.units),
            waits=waits_for(at, next_slot, free, ready),
        )
        self.issued = slots + (self.issued if at == self.cycle else 0)
        self.cycle = at
        for unit, count in what.units.items():
            self.free[unit][:count] = [at + what.busy] * count
        for name in what.writes:
            self.ready[name] = at + what.latency
        for name in what.base:
            self.ready[name] = at + 1
        if step.taken:
            self.issued = WIDTH
        return found


def waits_for(
    at: int, next_slot: int, free: Mapping[str, int], ready: Mapping[str, int]
) -> str:
    """What kept an instruction from an earlier slot: a register, a unit, or nothing."""
    if at == next_slot:
        return ""
    late = [name for name, cycle in ready.items() if cycle == at]
    return (
        late[0] if late else next(unit for unit, cycle in free.items() if cycle == at)
    )


def timeline(loop: Sequence[Step], core: Core) -> list[Issued]:
    """When each instruction issues in a pass through a loop that has run for a while.

    Cycles count from the first instruction of the pass.
    """
    pipeline = Pipeline(core)
    for _ in range(PASSES):
        issued = [pipeline.issue(step) for step in loop]
    first = issued[0].cycle
    return [replace(each, cycle=each.cycle - first) for each in issued]


def cycles(loop: Sequence[Step], core: Core) -> float:
    """Cycles of one pass through a loop that has run for a while."""
    passes = PASSES if len(loop) < 200 else 4
    pipeline = Pipeline(core)
    ends = []
    for _ in range(2 * passes):
        for step in loop:
            pipeline.issue(step)
        ends.append(pipeline.cycle)
    return (ends[-1] - ends[passes - 1]) / passes
