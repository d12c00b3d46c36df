# SPDX-License-Identifier: Apache-2.0
"""Improve or explain a scale table by running the int8 network."""
