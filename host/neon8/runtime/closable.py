# SPDX-License-Identifier: Apache-2.0
"""Closable: what holds memory, threads or a process until it is closed."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing as of Python 3.11


class Closable(ABC):
    """To be closed by hand or by leaving a `with` block."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds; closing twice is allowed."""

    def __enter__(self) -> "Self":
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
