# SPDX-License-Identifier: Apache-2.0
"""The machines whose cross-built libraries are audited."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """A row of the tables below."""

    name: str  # of its folder in build/
    tools: str  # what the names of its compiler and binutils begin with
    elf: str
    bits: int
    baseline: str  # -march of what compilers may use, and every such processor runs
    dialect: str  # the line that its disassembly as source begins with
    loader: str  # the library that every program loads
    page: int  # the largest page of its kernels
    loaded: int  # bytes that the library may load

    def tool(self, name: str) -> str:
        return f"{self.tools}-{name}"


AARCH64 = Machine(
    name="aarch64",
    tools="aarch64-linux-gnu",
    elf="EM_AARCH64",
    bits=64,
    baseline="armv8-a",
    dialect="",
    loader="ld-linux-aarch64.so.1",
    page=65536,
    loaded=227_000,
)
ARMV7 = Machine(
    name="armv7",
    tools="arm-linux-gnueabihf",
    elf="EM_ARM",
    bits=32,
    baseline="armv7-a+fp",
    dialect=".syntax unified",
    loader="ld-linux-armhf.so.3",
    page=4096,
    loaded=162_500,
)
MACHINES = (AARCH64, ARMV7)
