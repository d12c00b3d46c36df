# SPDX-License-Identifier: Apache-2.0
"""Decode and hash the next samples while the network runs on this one."""

import queue
import threading
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from neon8.data.samples import Sample

DEPTH = 2
"""Samples that wait at most: enough to even out, few enough for any memory."""


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


_Item = tuple[Sample, str] | _Failed | None


def ahead(samples: Iterable[Sample]) -> Generator[tuple[Sample, str], None, None]:
    """Each sample with its digest, both made in another thread.

    What goes wrong there is raised here, behind the samples before it.
    """
    ready: queue.Queue[_Item] = queue.Queue(DEPTH)
    stopped = threading.Event()

    def put(item: _Item) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def produce() -> None:
        last: _Item = None
        try:
            for sample in samples:
                if not put((sample, sample.digest)):
                    break
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer
            last = _Failed(error)
        put(last)

    thread = threading.Thread(target=produce, name="neon8-ahead", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, _Failed):
                raise item.error
            yield item
    finally:
        stopped.set()
        thread.join()
