# SPDX-License-Identifier: Apache-2.0
"""What llvm-objdump prints, read."""

from bench.kernels.assembly import Program, Step, registers
from bench.kernels.flow import Block

LISTING = """
guest:\tfile format elf64-littleaarch64

Disassembly of section .text:

0000000000400280 <add_all>:
  400280:      \tldr\tq0, [x0], #0x10
  400284:      \tsubs\tx1, x1, #0x1
  400288:      \tb.ne\t0x400280 <add_all>
  40028c:      \tret

00000000004002a0 <next>:
  4002a0:      \tadrp\tx16, 0x4d0000 <table+0x10>
  4002a4:      \tbl\t0x400280 <add_all>    // again
"""


def test_instructions_are_found_by_address():
    program = Program(LISTING)
    assert program.text[0x400280] == "ldr q0, [x0], #0x10"
    assert program.text[0x400288] == "b.ne 0x400280"
    assert program.text[0x4002A0] == "adrp x16, 0x4d0000"
    assert program.text[0x4002A4] == "bl 0x400280"
    assert len(program.text) == 6


def test_a_loop_is_taken_where_it_does_not_go_straight_on():
    program = Program(LISTING)
    steps = program.steps([Block(0x400280, 3)])
    assert steps == (
        Step("ldr q0, [x0], #0x10", taken=False),
        Step("subs x1, x1, #0x1", taken=False),
        Step("b.ne 0x400280", taken=True),
    )
    whole = program.steps([Block(0x4002A0, 2), Block(0x400280, 3), Block(0x40028C, 1)])
    assert [step.taken for step in whole] == [False, True, False, False, False, True]


def test_instructions_of_functions():
    runs = {Block(0x400280, 3): 10, Block(0x40028C, 1): 1, Block(0x4002A0, 2): 1}
    assert Program(LISTING).functions(runs) == {"add_all": 31, "next": 2}


def test_parts_of_a_register_have_its_name():
    operands = (
        "w1, x2, sp, wsp, s3, d4, q5, v6.16b, v7.b[15], #0x10, lsl #3, 0x40d0, xzr"
    )
    found = ["x1", "x2", "sp", "sp", "v3", "v4", "v5", "v6", "v7"]
    assert list(registers(operands)) == found
