# SPDX-License-Identifier: Apache-2.0
"""What is made of a network for each shape that its samples have."""

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import numpy as np

from neon8.arrays import Array
from neon8.data.inputs import Shape
from neon8.errors import Neon8Error

KEPT = 8
"""Shapes for which things are kept; those of the samples before are made again."""
BYTES = 1 << 30
"""What all of them may take, where that is known."""

Made = TypeVar("Made")


def shapes_of(inputs: Mapping[str, Array]) -> dict[str, Shape]:
    """The shape of each input of a sample."""
    return {name: np.shape(array) for name, array in inputs.items()}


class AtShapes(Generic[Made]):
    """Things made for shapes of inputs, of which the last few are kept.

    Threads may share it.
    """

    def __init__(
        self,
        make: Callable[[dict[str, Shape]], Made],
        *,
        most: int | None = None,
        bytes_of: Callable[[Made], int] = lambda _: 0,
    ) -> None:
        """make: given the shape of each input, the thing.

        most: how many are kept, by default KEPT.  bytes_of: what one takes.
        """
        self._make, self._most, self._bytes_of = make, most or KEPT, bytes_of
        self._lock = threading.Lock()
        self._made: dict[tuple[Shape, ...], Made] = {}  # the last used one stands last

    def at(self, shapes: dict[str, Shape], sample: str = "a sample") -> Made:
        """The thing for these shapes.  sample: its name, for errors of `make`."""
        key = tuple(shapes.values())
        with self._lock:
            made = self._made.pop(key, None)
            if made is None:
                made = self._new(shapes, sample)
            self._made[key] = made
            while len(self._made) > self._most or (
                len(self._made) > 1 and sum(map(self._bytes_of, self.kept)) > BYTES
            ):
                del self._made[next(iter(self._made))]
            return made

    def _new(self, shapes: dict[str, Shape], sample: str) -> Made:
        try:
            return self._make(shapes)
        except Neon8Error as error:
            said = ", ".join(f"{n}={'x'.join(map(str, s))}" for n, s in shapes.items())
            text = f"{sample}, with {said}: {error.text}; leave such samples out"
            hint = "or allow other sizes only, by bounds with a step as in 32..1280:32"
            raise type(error)(f"{text}, {hint}", error.details) from error

    @property
    def kept(self) -> tuple[Made, ...]:
        """What is there now."""
        return tuple(self._made.values())
