# SPDX-License-Identifier: Apache-2.0
"""The machines that an .n8 file runs on: this one, and what qemu emulates on it."""

from dataclasses import dataclass

NATIVE = "native"


@dataclass(frozen=True, slots=True)
class Emulation:
    """How a machine is emulated.

    target: its name, which is also that of its builds; qemu: the command; cpus: cores
    that are worth trying, of all that qemu knows.
    """

    target: str
    qemu: str
    cpus: tuple[str, ...]


EMULATIONS = {
    emulation.target: emulation
    for emulation in (
        Emulation(
            target="aarch64",
            qemu="qemu-aarch64",
            cpus=("cortex-a53", "neoverse-n1", "max"),
        ),
        Emulation(
            target="armv7",
            qemu="qemu-arm",
            cpus=("cortex-a7", "cortex-a9", "cortex-a15", "max"),
        ),
    )
}

TARGETS = (NATIVE, *EMULATIONS)
DEFAULT_CPU = "max"
