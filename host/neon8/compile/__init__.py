# SPDX-License-Identifier: Apache-2.0
"""Lower a Graph and a ScaleTable to a Program, prove it, write it as a .n8 file."""
