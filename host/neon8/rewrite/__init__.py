# SPDX-License-Identifier: Apache-2.0
"""A Graph as a scale table changes it."""
