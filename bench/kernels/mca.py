# SPDX-License-Identifier: Apache-2.0
"""llvm-mca for loops on the out-of-order Cortex-A72, A76 and Neoverse N2.

Its neoverse-n1 stands for the A76, from which that core is made; what it calls
cortex-a76 has the tables of another. Some instructions are rewritten before it sees
them, because LLVM 19 takes them for slower than they are:

- a load or store that writes its address back: on neoverse-n2 the address waits for the
  data. It becomes a plain one and an addition.
- a load into one lane: it waits for the other lanes from its very beginning. It becomes
  a load into a register that the loop does not use, and an insertion.
- calls, which take 100 cycles, and returns: they become branches.

What no loop is about (system registers, hints) is a nop, and branches go to the next
instruction: where to makes no difference.
"""

import json
import re
from collections.abc import Sequence

from bench.kernels import tools
from bench.kernels.assembly import BRANCH, NO_WORK, Step, registers

CPUS = {"a72": "cortex-a72", "a76": "neoverse-n1", "n2": "neoverse-n2"}
FEATURES = "+v8.6a,+dotprod,+i8mm"

SHORT, LONG = 20, 60
"""Passes: what the second adds to the first is the loop without its start and end."""
LENGTHY, FEWER = 100, 10
"""From so many instructions on, a tenth of the passes says as much."""

AFTER = re.compile(r"((?:ld|st)\S* .*\[)(\w+)\], (#-?\w+|x\d+)")
BEFORE = re.compile(r"((?:ld|st)\S* .*\[)(\w+), (#-?\w+)\]!")
LANE = re.compile(r"ld[1-4] \{ (.*) \}\[(\d+)\], (\[\w+\])")


def cycles(llvm_mca: str, loops: Sequence[Sequence[Step]], core: str) -> list[float]:
    """Cycles of a pass through each loop that has run for a while.  core: of CPUS."""
    texts = [rewritten([step.text for step in loop]) for loop in loops]
    found = [0.0] * len(texts)
    for lengthy, divisor in ((False, 1), (True, FEWER)):
        numbers = [i for i, t in enumerate(texts) if (len(t) >= LENGTHY) == lengthy]
        some = [texts[number] for number in numbers]
        first, last = SHORT // divisor, LONG // divisor
        short, long = (total(llvm_mca, some, CPUS[core], n) for n in (first, last))
        for number, a, b in zip(numbers, short, long, strict=True):
            found[number] = (b - a) / (last - first)
    return found


def total(
    llvm_mca: str, loops: Sequence[Sequence[str]], cpu: str, passes: int
) -> list[int]:
    """Cycles of so many passes.  BenchError: llvm-mca does not know an instruction."""
    if not loops:
        return []
    marked = (
        (f"# LLVM-MCA-BEGIN {number}", *loop, f"# LLVM-MCA-END {number}")
        for number, loop in enumerate(loops)
    )
    text = tools.run(
        *(llvm_mca, "-mtriple=aarch64", f"-mcpu={cpu}", f"-mattr={FEATURES}", "-json"),
        *(f"-iterations={passes}", "-instruction-info=0", "-resource-pressure=0"),
        source="\n".join(line for lines in marked for line in lines) + "\n",
    )
    answers = [region["SummaryView"] for region in json.loads(text)["CodeRegions"]]
    if len(answers) != len(loops):
        raise tools.BenchError(
            f"llvm-mca: {len(answers)} answers to {len(loops)} loops"
        )
    return [answer["TotalCycles"] for answer in answers]


def rewritten(loop: Sequence[str]) -> list[str]:
    """The loop as llvm-mca is to see it."""
    lines = [line for text in loop for line in plain(text)]
    used = {name for line in lines for name in registers(line)}
    free = next((str(i) for i in range(31, -1, -1) if f"v{i}" not in used), None)
    if free is None:
        return lines
    return [part for line in lines for part in split_lane(line, free)]


def plain(text: str) -> list[str]:
    """An instruction as llvm-mca is to see it, but for loads into lanes."""
    mnemonic, _, operands = text.partition(" ")
    if NO_WORK.fullmatch(mnemonic):
        return ["nop"]
    if mnemonic in {"adr", "adrp"}:
        return [f"{mnemonic} {operands.partition(',')[0]}, #0"]
    if mnemonic in {"b", "bl", "br", "blr", "ret"}:
        return ["b #4"]
    if BRANCH.fullmatch(mnemonic):
        return [f"{mnemonic} {re.sub(r'0x[0-9a-f]+$', '#4', operands)}"]
    if found := AFTER.fullmatch(text):
        access, base, step = found.groups()
        return [f"{access}{base}]", addition(base, step)]
    if found := BEFORE.fullmatch(text):
        access, base, step = found.groups()
        return [addition(base, step), f"{access}{base}]"]
    return [text]


def addition(base: str, step: str) -> str:
    if step.startswith("#-"):
        return f"sub {base}, {base}, #{step[2:]}"
    return f"add {base}, {base}, {step}"


def split_lane(line: str, free: str) -> list[str]:
    """A load into lanes as a load and insertions.  free: number of a register."""
    if not (found := LANE.fullmatch(line)):
        return [line]
    parts = re.findall(r"(v\d+)\.(\w)", found[1])
    kind = parts[0][1] if len(parts) == 1 else "q"
    load = f"ldr {kind}{free}, {found[3]}"
    return [load, *(f"mov {v}.{e}[{found[2]}], v{free}.{e}[0]" for v, e in parts)]
