# SPDX-License-Identifier: Apache-2.0
"""Oracle == library, byte for byte."""

from levels import levels
from neon8.compile import oracle, writer
from neon8.runtime import Model
from random_program import differing_bytes


def agreed(program, inputs, *, threads=(1,), isas=()):
    """The outputs, which are the same on each level here, or on `isas`."""
    expected = oracle.run(program, inputs)
    content = writer.dumps(program)
    for isa in isas or levels():
        with Model.from_bytes(content, isa=isa) as model:
            for count in threads:
                with model.session(count) as session:
                    result = session.run(inputs)
                assert differing_bytes(result, expected) == {}, (isa, count)
    return expected
