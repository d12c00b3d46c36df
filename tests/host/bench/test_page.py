# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/performance.md that bench-kernels writes."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import pages
from bench.kernels import page
from bench.kernels.cases import ROWS
from bench.kernels.cores import CORES, has_model
from bench.kernels.page import Figure
from bench.kernels.report import COMMAND, names
from bench.kernels.tools import Tools
from neon8.version import __version__

ROOT = Path(__file__).resolve().parents[3]
TOOLS = Tools(
    llvm_mca="",
    llvm_objdump="",
    versions={"qemu-aarch64": "7.2.22", "LLVM": "19.1.7"},
)
FIGURES = [
    Figure(
        layer=layer,
        core=core,
        macs=26_361_344,
        instructions=instructions,
        cycles=cycles,
        kernel=f"n8_igemm_{core}",
    )
    for layer, core, instructions, cycles in (
        ("net", "n2", 3_052_000, 1e6),
        ("net", "a53", 8_920_499, 6.44e6),
        ("fc2048-1000", "a53", 500_000, 6e6),
        ("fc2048-1000", "n2", 241_000, 7e6),
    )
]
TEXT = f"""\
neon8 {__version__}; qemu-aarch64 7.2.22, LLVM 19.1.7.

Multiply-accumulates (MACs) per modelled cycle, one thread:

| layer | MMACs | Cortex-A53, neon | Neoverse N2, i8mm |
| :-- | --: | --: | --: |
| FC 2048→1000 | 26.4 | 4.39 | 3.77 |
| the small net | 26.4 | 4.09 | 26.36 |

Executed instructions in thousands, and MACs per instruction:

| layer | MMACs | Cortex-A53, neon | Neoverse N2, i8mm |
| :-- | --: | --: | --: |
| FC 2048→1000 | 26.4 | 500 (52.72) | 241 (109.38) |
| the small net | 26.4 | 8920 (2.96) | 3052 (8.64) |

The function that executes most of them:

| layer | MMACs | Cortex-A53, neon | Neoverse N2, i8mm |
| :-- | --: | --: | --: |
| FC 2048→1000 | 26.4 | `igemm_a53` | `igemm_n2` |
| the small net | 26.4 | `igemm_a53` | `igemm_n2` |"""


def test_tables_in_the_order_of_layers_and_cores():
    assert page.text(FIGURES, TOOLS) == TEXT


def test_a_core_without_a_model_is_counted_only():
    counted = replace(FIGURES[0], core="a9", cycles=None)
    titles = [part for part in page.text([counted], TOOLS).split("\n\n") if ":" in part]
    assert len(titles) == 4
    assert titles[1] == (
        "| layer | MMACs | Cortex-A9, neon |\n| :-- | --: | --: |\n"
        "| the small net | 26.4 | 3052 (8.64) |"
    )
    assert page.brief(counted) == "8.64"


def test_the_page_has_every_layer_and_core():
    written = pages.read(ROOT / "docs" / "performance.md", COMMAND)
    for row in ROWS.values():
        assert written.count(f"| {row.name} |") == 3
    for key, core in CORES.items():
        assert written.count(f" {core.title} |") == 2 + has_model(key)


def test_names_come_in_the_order_of_the_table():
    assert names(CORES)("n2,a53") == ["a53", "n2"]
    with pytest.raises(Exception, match="'a54' is not one of a53, a55, a76, n2, a9"):
        names(CORES)("a54")
