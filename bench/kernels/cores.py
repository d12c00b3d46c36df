# SPDX-License-Identifier: Apache-2.0
"""The cores of the table: how qemu plays each, and which model judges its loops."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.kernels import inorder, mca
from bench.kernels.assembly import Step


@dataclass(frozen=True, slots=True)
class Machine:
    """name: of its folder in build/.  compiler, emulator: commands."""

    name: str
    compiler: str
    emulator: str


AARCH64 = Machine("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64")
ARMV7 = Machine("armv7", "arm-linux-gnueabihf-gcc", "qemu-arm")
MACHINES = (AARCH64, ARMV7)


@dataclass(frozen=True, slots=True)
class Core:
    """name: for people.  level: of levels.inc, which neon8 is to find.

    cpu: qemu's, with that level and none above; it need not be this core.  midr: the
    core's own MIDR_EL1, by which neon8 knows whether it issues in order; None where it
    does not ask.  cache: its second level, by which neon8 slices large weights.
    """

    name: str
    level: str
    cpu: str
    midr: int | None = None
    cache: str = "512K"
    machine: Machine = AARCH64

    @property
    def title(self) -> str:
        return f"{self.name}, {self.level}"


N2 = "max,sve=off,sme=off,pauth-impdef=on"
CORES = {
    "a53": Core("Cortex-A53", "neon", "cortex-a53", 0x410FD034),
    "a55": Core("Cortex-A55", "dotprod", "cortex-a76", 0x411FD050),
    "a72": Core("Cortex-A72", "neon", "cortex-a72", 0x410FD083, "1024K"),
    "a76": Core("Cortex-A76", "dotprod", "cortex-a76", 0x414FD0B1),
    "n2": Core("Neoverse N2", "i8mm", N2, 0x410FD493, "1024K"),
    "a9": Core("Cortex-A9", "neon", "cortex-a9", machine=ARMV7),
}
"""By their names on the command line."""

IN_ORDER = {"a53": inorder.A53, "a55": inorder.A55}


def has_model(core: str) -> bool:
    """Whether a core of CORES has one."""
    return core in IN_ORDER or core in mca.CPUS


def cycles(llvm_mca: str, loops: Sequence[Sequence[Step]], core: str) -> list[float]:
    """Cycles of a pass through each loop, on a core of CORES that has a model."""
    if core in IN_ORDER:
        return [inorder.cycles(loop, IN_ORDER[core]) for loop in loops]
    return mca.cycles(llvm_mca, loops, core)
