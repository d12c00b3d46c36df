# SPDX-License-Identifier: Apache-2.0
"""What makes a scale table better, or explains it, by running the int8 network."""
