# SPDX-License-Identifier: Apache-2.0
"""Types of arrays, by their elements; shapes stand in the docstrings."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
AnyArray = npt.NDArray[Any]
"""Numbers to compute with, of a type that only the run tells."""
FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
Int8Array = npt.NDArray[np.int8]
Int16Array = npt.NDArray[np.int16]
Int32Array = npt.NDArray[np.int32]
