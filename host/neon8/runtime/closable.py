# SPDX-License-Identifier: Apache-2.0
"""Closable: what holds memory, threads or a process until it is closed."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing as of Python 3.11


class Closable(ABC):
    """To be closed by hand or by leaving a `with` block; not to be copied."""

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

    def __reduce__(self) -> NoReturn:
        """Refuse copy and pickle: closing one would free the other's memory."""
        message = f"{type(self).__name__}: cannot be copied or pickled; open another"
        raise TypeError(message)
