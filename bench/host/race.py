# SPDX-License-Identifier: Apache-2.0
"""Who runs more images in a second: everybody in turn, and the best turn counts.

The machine has other things to do, too, now and then: they only ever make a turn
slower, and what is measured within seconds of each other meets the same ones.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """rounds: turns of everybody.  seconds: of a turn, at least, without its first run.

    pause: seconds before each, in which the threads of the one before go to sleep.
    """

    rounds: int = 12
    seconds: float = 0.2
    pause: float = 0.1


def race(
    runs: Mapping[Key, Callable[[], object]],
    rules: Rules,
    *,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[Key, float]:
    """Images a second, each run being one image."""
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rules.rounds):
        for key, run in runs.items():
            sleep(rules.pause)
            best[key] = max(best[key], turn(run, rules.seconds, clock))
    return best


def turn(run: Callable[[], object], seconds: float, clock: Clock) -> float:
    """Runs a second, of as many as take `seconds`, or of one that takes longer."""
    run()  # weights and activations come back into the cache
    count, start = 0, clock()
    while True:
        run()
        count += 1
        spent = clock() - start
        if spent >= seconds:
            return count / spent
