# SPDX-License-Identifier: Apache-2.0
"""The calibrator's C code on one tensor, for each instruction set of this processor."""

import functools

import numpy as np

from neon8.calibrate.statistics import native
from neon8.errors import SetupError
from neon8.ir.graph import Activation

F = np.float32


@functools.cache
def isas():
    """Those that this processor has; the plain one is always among them."""
    found = []
    for isa in (1, 2, 3):
        try:
            native.Plan([]).observe([], isa=isa)
        except SetupError:
            continue
        found.append(isa)
    return found


def taken(samples, isa, activation=None):
    """Statistics of samples of one shape (1, C, ...): raw ones and activated ones."""
    shape = np.shape(samples[0])
    wanted = native.Wanted(channels=shape[1], histogram=True, per_channel=True)
    raw, activated = native.bank([wanted, wanted]).each
    job = native.Job(shape, raw, activated, activation or Activation())
    plan = native.Plan([job])
    for sample in samples:
        plan.observe([np.array(sample, F)], isa=isa)
    return raw, activated


def histogram_of(values, isa):
    """The statistics of an array of any shape."""
    return taken([np.reshape(values, (1, 1, -1))], isa)[0].histogram()


def facts(statistics):
    """All that there is in a Histogram or in ChannelStatistics, comparable."""
    result = {}
    for name in statistics.__dataclass_fields__:
        field = getattr(statistics, name)
        if isinstance(field, float):
            field = (field, np.signbit(field).item())
        if isinstance(field, np.ndarray):
            field = (field.dtype, np.signbit(field).tolist(), field.tolist())
        result[name] = field
    return result
