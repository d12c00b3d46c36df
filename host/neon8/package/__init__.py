# SPDX-License-Identifier: Apache-2.0
"""From an .n8 file to a folder that a user's build takes: library, wrapper, example."""

KINDS = ("cmake", "android", "python", "deb", "static-binary")
"""Each is a module here, which package.py describes."""
