# SPDX-License-Identifier: Apache-2.0
"""What bench.networks.shapes says of a shape."""

from bench.networks import resizable, shapes


def test_one_network():
    found = list(shapes.measured("keyword_spotter"))
    assert [one.dims for one in found] == list(
        resizable.case("keyword_spotter", small=False).shapes
    )
    arenas = [one.memory.arena for one in found]
    assert len(set(arenas)) == len(arenas)
    for one in found:
        assert one.memory.arena == one.memory.arena_least
        assert one.memory.tables > one.file
        assert min(one.first, one.again) > 0
        assert len(shapes.cells(one)) == len(shapes.HEADER)
