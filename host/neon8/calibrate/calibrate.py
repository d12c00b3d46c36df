# SPDX-License-Identifier: Apache-2.0
"""From an ONNX file and samples to the scale table, in one process.

observe() looks at the data, solve() chooses the scales, calibrate() does both.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from neon8.calibrate.observation import Observation
from neon8.calibrate.run.ahead import ahead
from neon8.calibrate.run.collect import Collector, open_network
from neon8.calibrate.solve import solve
from neon8.calibrate.thresholds import choose as thresholds
from neon8.data.samples import as_samples
from neon8.graph.onnx_file import ModelLike
from neon8.quant.scale_table import ScaleTable

__all__ = ["calibrate", "observe", "solve"]


def observe(
    model: ModelLike,
    samples: Iterable[Any],
    *,
    preprocess_digest: str = "",
    ignore_nonfinite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Observation:
    """Run the FP32 network in `model` on `samples`.

    samples: what data.open_samples gives, or an iterable of arrays or of dicts; one
    that occurs twice counts once.  progress: called with the number of samples done.
    Memory does not depend on how many there are. GraphError, DataError,
    CalibrationError.
    """
    network = open_network(
        model,
        preprocess_digest=preprocess_digest,
        ignore_nonfinite=ignore_nonfinite,
    )
    collector, repeated = Collector(network), 0
    with closing(ahead(as_samples(samples, network.graph))) as source:
        for count, (sample, digest) in enumerate(source, 1):
            repeated += not collector.add(sample, digest)
            if progress is not None:
                progress(count)
    if repeated:
        text = "%d samples are the same as others; each counts once"
        logging.getLogger("neon8").warning(text, repeated)
    return collector.result()


def calibrate(
    model: ModelLike,
    samples: Iterable[Any],
    *,
    method: str = "mse",
    scheme: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> ScaleTable:
    """observe() and then solve()."""
    thresholds.check(method, scheme, 8)
    observation = observe(model, samples, progress=progress)
    return solve(observation, method=method, scheme=scheme)
