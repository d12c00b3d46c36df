# SPDX-License-Identifier: Apache-2.0
"""The version of package and libraries; pyproject.toml and CMake read this line."""

__version__ = "0.1.0"
