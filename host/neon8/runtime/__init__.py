# SPDX-License-Identifier: Apache-2.0
"""cffi binding of the C library: Library, Model, Session."""

from neon8.runtime.arrays import StepInfo, TensorInfo
from neon8.runtime.model import Model, Session

__all__ = ["Model", "Session", "StepInfo", "TensorInfo"]
