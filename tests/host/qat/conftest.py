# SPDX-License-Identifier: Apache-2.0
"""torch in tests: one thread, so that sums have one order, and its own generator."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        yield
    torch.set_num_threads(before)
