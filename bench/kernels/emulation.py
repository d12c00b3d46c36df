# SPDX-License-Identifier: Apache-2.0
"""guest.c and count.c: built, and one run under the other."""

import os
from collections.abc import Sequence
from pathlib import Path

from elftools.elf.elffile import ELFFile

from bench.kernels import flow
from bench.kernels.cores import Core, Machine
from bench.kernels.tools import BenchError, run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror")
CPU = Path("sys/devices/system/cpu/cpu0")
MIDR = CPU / "regs/identification/midr_el1"
CACHE = CPU / "cache/index2/size"
SECOND_INTERFACE = (8, 2)
"""The first qemu that runs plugins of version 2, and none of version 1."""


def count(
    folder: Path, core: Core, program: Path, arguments: Sequence[str | Path] = ()
) -> list[flow.Edges]:
    """What `program` runs between its functions measure_begin and measure_end.

    The first is what comes before any part of the run, which measure_part begins.
    folder: of build_counter().  The program finds a system whose only processor is
    `core`.  BenchError: it fails, or it gets to one of the two only.
    """
    root = folder / "root"
    midr, cache = root / MIDR, root / CACHE
    for path in (midr, cache):
        path.parent.mkdir(parents=True, exist_ok=True)
    midr.unlink(missing_ok=True)
    if core.midr is not None:
        midr.write_text(f"{core.midr:#018x}\n")
    cache.write_text(f"{core.cache}\n")
    counts = folder / "counts"
    counts.unlink(missing_ok=True)
    places = ",".join(f"{name}={at}" for name, at in marks(program).items())
    plugin = f"{folder / 'count.so'},out={counts},{places}"
    run(
        *(core.machine.emulator, "-cpu", core.cpu, "-L", root, "-plugin", plugin),
        *(program, *arguments),
    )
    parts = flow.read(counts)
    if not parts or any(map(flow.unbalanced, parts)):
        raise BenchError(f"{program}: does not get from measure_begin to measure_end")
    return parts


def marks(program: Path) -> dict[str, int]:
    """The addresses of measure_begin, measure_part and measure_end in a static program.

    A symbol of Thumb code is 1 more than that.
    """
    with program.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        return {
            name: symbols.get_symbol_by_name(f"measure_{name}")[0]["st_value"] & ~1
            for name in ("begin", "part", "end")
        }


def build_counter(version: str, folder: Path) -> None:
    """count.c for a version of qemu, by the compiler of this machine.  BenchError."""
    numbers = tuple(int(number) for number in version.split(".")[:2])
    interface = 2 if numbers >= SECOND_INTERFACE else 1
    run(
        *(os.environ.get("CC", "cc"), *FLAGS, "-fPIC", "-shared"),
        *("-fvisibility=hidden", f"-DVERSION={interface}"),
        *(HERE / "count.c", "-o", folder / "count.so"),
    )


def build_guest(machine: Machine, folder: Path) -> Path:
    """guest.c with the libneon8.a of a machine, static.  BenchError."""
    guest = folder / f"guest-{machine.name}"
    library = ROOT / "build" / machine.name / "libneon8.a"
    run(
        *(machine.compiler, *FLAGS, "-static", "-no-pie"),
        *("-I", ROOT / "runtime", "-I", ROOT / "runtime" / "include"),
        *(
            HERE / "guest.c",
            "-Wl,--wrap=n8_threads_run",
            library,
            "-lm",
            "-lpthread",
            "-o",
            guest,
        ),
    )
    return guest
