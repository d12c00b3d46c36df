# SPDX-License-Identifier: Apache-2.0
"""The commands, one module each: run(arguments) gives the text for standard output.

A module is imported only when its command was asked for.
"""
