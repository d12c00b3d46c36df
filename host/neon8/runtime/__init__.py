# SPDX-License-Identifier: Apache-2.0
"""cffi binding of the C library: Library, Model, Session."""
