# SPDX-License-Identifier: Apache-2.0
"""cffi binding of the C library: Library, Model, Session, ThreadPool."""

from neon8.runtime.arrays import Memory, ModelFacts, StepInfo, TensorInfo
from neon8.runtime.model import Model
from neon8.runtime.session import Session
from neon8.runtime.threads import ThreadPool

__all__ = [
    "Memory",
    "Model",
    "ModelFacts",
    "Session",
    "StepInfo",
    "TensorInfo",
    "ThreadPool",
]
