# SPDX-License-Identifier: Apache-2.0
"""Oracle == library, byte for byte, on random networks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agreement import agreed
from random_program import random_inputs, random_program

EXAMPLES = 4 * settings().max_examples


@settings(max_examples=EXAMPLES)
@given(
    seed=st.integers(0, 2**32 - 1),
    threads=st.sampled_from([1, 1, 1, 2, 3]),
)
def test_library_equals_oracle(seed, threads):
    program = random_program(seed)
    agreed(program, random_inputs(program, seed), threads=[threads])
