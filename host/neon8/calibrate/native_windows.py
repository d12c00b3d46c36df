# SPDX-License-Identifier: Apache-2.0
"""What layers read for single pixels of their outputs, fetched by the C library."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neon8.calibrate.native_library import check, field, load
from neon8.graph.graph import Activation

_KIND = "struct n8c_window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Of `channels` planes of `size`; its kernel and dilations; what follows them."""

    channels: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    dilations: tuple[int, int]
    activation: Activation


class Windows:
    """n windows, fetched together.

    Each (n,), to be set for gather().  values, out: addresses of the first channel and
    of where the values go; out 0: nothing is fetched.  top, left: where the window
    begins, in padding too.
    """

    def __init__(self, windows: Sequence[Window]) -> None:
        self._count = len(windows)
        self._structs = load().ffi.new(f"{_KIND}[]", self._count)
        for struct, window in zip(self._structs, windows, strict=True):
            struct.channels = window.channels
            struct.height, struct.width = window.size
            struct.rows, struct.columns = window.kernel
            struct.row_step, struct.column_step = window.dilations
            struct.slope = window.activation.slope
            struct.lo, struct.hi = window.activation.lo, window.activation.hi
        self.values = field(self._structs, _KIND, "values", "u8")
        self.out = field(self._structs, _KIND, "out", "u8")
        self.top = field(self._structs, _KIND, "top", "i8")
        self.left = field(self._structs, _KIND, "left", "i8")
        self._finite = field(self._structs, _KIND, "finite", "i4")

    def gather(self) -> npt.NDArray[np.bool_]:
        """Fetch them: (n,) whether all values are finite, where something was."""
        check(load().lib.n8c_gather(self._structs, self._count))
        finite: npt.NDArray[np.bool_] = self._finite != 0
        return finite
