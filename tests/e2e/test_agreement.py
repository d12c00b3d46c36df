# SPDX-License-Identifier: Apache-2.0
"""Oracle == library, byte for byte, on random networks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from levels import levels
from neon8.compile import oracle, writer
from neon8.runtime import Model
from random_program import differing_bytes, random_inputs, random_program

EXAMPLES = 6 * settings().max_examples


@settings(max_examples=EXAMPLES)
@given(
    seed=st.integers(0, 2**32 - 1),
    threads=st.sampled_from([1, 1, 1, 2, 3]),
)
def test_library_equals_oracle(seed, threads):
    program = random_program(seed)
    inputs = random_inputs(program, seed)
    expected = oracle.run(program, inputs)
    content = writer.dumps(program)
    for isa in levels():
        with Model.from_bytes(content, isa=isa) as model:
            result = model.session(threads).run(inputs)
        assert differing_bytes(result, expected) == {}, isa
