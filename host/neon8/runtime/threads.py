# SPDX-License-Identifier: Apache-2.0
"""ThreadPool: threads that sessions share."""

import weakref
from typing import Any, final

from neon8.errors import SetupError
from neon8.runtime import library
from neon8.runtime.closable import Closable
from neon8.runtime.library import Library

MAX_THREADS = 64


def checked_threads(count: int) -> int:
    """`count`, if that many threads may run a session.  SetupError: they may not."""
    if not 1 <= count <= MAX_THREADS:
        raise SetupError(f"{count} threads; a session takes 1 to {MAX_THREADS}")
    return count


@final
class ThreadPool(Closable):
    """Threads that serve any number of sessions, of one model or of several.

        with ThreadPool(4) as pool:
            sessions = [model.session(pool=pool) for _ in range(8)]

    Each session is run by a thread of the caller's, with the help of the pool's, so
    that 8 runs at once have 8 + 3 threads and not 8 * 4. They sleep when no session
    runs. Close it, or use it in a `with` statement.
    """

    def __init__(self, threads: int) -> None:
        """Start the threads that help the one that calls: `threads` - 1 of them."""
        lib = library.load()
        out = lib.ffi.new("struct n8_threads **")
        if lib.lib.n8_threads_create(checked_threads(threads), out) != lib.lib.N8_OK:
            raise SetupError(f"{threads} threads cannot be started on this machine")
        self.threads = threads
        self._library = lib
        self._handle = lib.ffi.gc(out[0], lib.lib.n8_threads_destroy)
        self._sessions: weakref.WeakSet[Closable] = weakref.WeakSet()

    def __repr__(self) -> str:
        """Say how many threads there are, and if they have ended."""
        return f"<ThreadPool of {self.threads}{'' if self._handle else ', closed'}>"

    def handle_in(self, lib: Library) -> Any:
        """The pool for a session of `lib`.  SetupError: closed, another library's."""
        if self._handle is None:
            raise SetupError("the pool of threads has been closed")
        if lib is not self._library:
            raise SetupError(
                f"the pool of threads belongs to {self._library.path}, the model to "
                f"{lib.path}"
            )
        return self._handle

    def serve(self, session: Closable) -> None:
        """Close this session before the threads end."""
        self._sessions.add(session)

    def close(self) -> None:
        """End the sessions on the pool, then the threads; twice is allowed."""
        for session in tuple(self._sessions):
            session.close()
        if self._handle is not None:
            self._library.ffi.release(self._handle)
            self._handle = None
