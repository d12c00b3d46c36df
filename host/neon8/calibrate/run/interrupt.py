# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C as an event instead of an exception."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, so that nothing is left half done; the second one kills.

    Only the main thread hears of it; in others nothing changes.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        if event.is_set():
            signal.default_int_handler(number, frame)
        event.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
